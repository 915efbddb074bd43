"""When pods end, as far as anybody knows.

    activeDeadlineSeconds of the pod   hard: its kubelet ends it, and gives it its grace period
    activeDeadlineSeconds of its Job   hard: the controller deletes it, which takes as long
    label MAX_EXEC_TIME of either      hard: Kueue suspends the job then
    annotation DURATION                soft: nobody ends it then
    what pods like it took             soft, where a profile learns durations
    nothing of these                   it is not known to end

The earliest hard end counts; without one, the first of the soft ones. Who has not started yet is
taken to start START_S from now.

Bounds  LIKES_MAX kinds of pods of which durations are learnt, SAMPLES_MAX of each; the kind unused
        for longest goes.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable
from functools import lru_cache
from math import ceil, inf
from typing import Final, NamedTuple

from asched.core.model.kinds import JOB
from asched.core.model.meta import ObjectMeta
from asched.core.model.pod import Pod
from asched.core.model.timestamp import microseconds
from asched.core.model.workload import Job
from asched.core.state.cluster import Cluster
from asched.core.state.pods import PodInfo

#: On a pod: for how many seconds it will run, as its owner expects.
DURATION: Final = "asched.dev/expected-duration-seconds"
#: On a job, or a pod that Kueue admits by itself: Kueue lets it run so long once it was admitted.
MAX_EXEC_TIME: Final = "kueue.x-k8s.io/max-exec-time-seconds"
#: From a placement to the start time that the kubelet writes. A guess: it has to hear of the pod.
START_S: Final = 10.0
#: What the API server fills in.
GRACE_S: Final = 30
#: Who should have ended by now is taken to end so much later, and so on; with soft ends by ...
OVERDUE_S: Final = 30.0
#: ... this part of the time that was expected, if that is more.
OVERDUE_SHARE: Final = 0.25
#: Fewer pods that were placed are not worth a look at who went.
PLACED_MIN: Final = 64
LIKES_MAX: Final = 1_024
SAMPLES_MAX: Final = 32
#: Fewer tell nothing. A guess.
SAMPLES_MIN: Final = 5
#: Nine of ten pods like it ended earlier.
QUANTILE: Final = 0.9


class End(NamedTuple):
    """Seconds since 1970. `is_hard`: somebody sees to it."""

    at_s: float
    is_hard: bool


class Ends:
    """For `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        #: whether soft ends are learnt
        self.learns = False
        #: when pods that have not started were first seen on their nodes, by uid
        self._placed_s: dict[str, float] = {}
        self._samples: OrderedDict[Hashable, deque[float]] = OrderedDict()

    def of(self, info: PodInfo, now_s: float) -> End | None:
        """When a pod ends if it runs, or starts now; None if nobody knows. It stays the same until
        that time has passed.
        """
        from_s = self._started_s(info, now_s)
        hard = self._deadline(info.pod, from_s, now_s)
        if hard is not None:
            late = max(ceil((now_s - hard) / OVERDUE_S), 0)
            return End(hard + OVERDUE_S * late, is_hard=True)
        lasts_s = self._expected_s(info)
        if lasts_s is None:
            return None
        at_s = from_s + lasts_s
        while at_s < now_s:
            at_s += max(OVERDUE_S, OVERDUE_SHARE * (at_s - from_s))
        return End(at_s, is_hard=False)

    def _started_s(self, info: PodInfo, now_s: float) -> float:
        """As its kubelet says, or as is to be expected of a pod that is placed, or would be now."""
        if not info.node_name:
            return now_s + START_S
        uid = info.pod.uid
        started_s = _seconds(info.pod.status.start_time)
        if started_s is not None:
            self._placed_s.pop(uid, None)
            return started_s
        if len(self._placed_s) > 2 * len(self._cluster.placed) + PLACED_MIN:
            placed = self._cluster.placed
            self._placed_s = {uid: at for uid, at in self._placed_s.items() if uid in placed}
        placed_s = self._placed_s.setdefault(uid, now_s)
        return placed_s + START_S * max(ceil((now_s - placed_s) / START_S), 1)

    def ended(self, info: PodInfo, now_s: float) -> None:
        """A pod that ran is gone: what it took counts for pods like it."""
        started_s = _seconds(info.pod.status.start_time)
        if not self.learns or started_s is None or info.pod.is_terminating:
            return
        like = _like(info)
        samples = self._samples.setdefault(like, deque(maxlen=SAMPLES_MAX))
        self._samples.move_to_end(like)
        samples.append(max(now_s - started_s, 0.0))
        if len(self._samples) > LIKES_MAX:
            self._samples.popitem(last=False)

    def _deadline(self, pod: Pod, from_s: float, now_s: float) -> float | None:
        spec, found = pod.spec, inf
        grace_s = spec.termination_grace_period_seconds
        grace_s = GRACE_S if grace_s is None else max(grace_s, 0)
        if spec.active_deadline_seconds is not None:
            found = from_s + spec.active_deadline_seconds
        found = min(found, from_s + _max_exec_s(pod.metadata))
        owner = pod.metadata.controller
        if owner is not None and owner.kind == JOB.name:
            job: Job | None = self._cluster.told(JOB, f"{pod.metadata.namespace}/{owner.name}")
            if job is not None and job.metadata.uid == owner.uid:
                begun_s = _seconds(job.status.start_time)
                lasts_s = _max_exec_s(job.metadata)
                if job.spec.active_deadline_seconds is not None:
                    lasts_s = min(lasts_s, job.spec.active_deadline_seconds)
                found = min(found, (now_s if begun_s is None else begun_s) + lasts_s)
        return found + grace_s if found < inf else None

    def _expected_s(self, info: PodInfo) -> float | None:
        expected_s = _whole((info.pod.metadata.annotations or {}).get(DURATION, ""))
        if expected_s is not None:
            return expected_s
        if not self.learns:
            return None
        samples = self._samples.get(_like(info))
        if samples is None or len(samples) < SAMPLES_MIN:
            return None
        return sorted(samples)[ceil(QUANTILE * len(samples)) - 1]


def _whole(text: str) -> float | None:
    """Seconds as people write them; None for what is no number of them."""
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _max_exec_s(metadata: ObjectMeta) -> float:
    lasts_s = _whole((metadata.labels or {}).get(MAX_EXEC_TIME, ""))
    return inf if lasts_s is None else lasts_s


def _like(info: PodInfo) -> Hashable:
    """Pods of a namespace with owners of one kind that run the same image in as much room."""
    pod = info.pod
    owner, containers = pod.metadata.controller, pod.spec.containers
    image = containers[0].image if containers else ""
    kind = owner.kind if owner is not None else ""
    return pod.metadata.namespace, kind, image, tuple(sorted(info.cls.accounted.items()))


@lru_cache(maxsize=1 << 14)
def _seconds(text: str | None) -> float | None:
    """Since 1970; None for what is no time."""
    try:
        return microseconds(text) / 1e6 if text else None
    except ValueError:
        return None
