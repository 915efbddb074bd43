"""When pods end, as far as that is known.

    activeDeadlineSeconds of the pod   hard: its kubelet ends it, and gives it its grace period
    activeDeadlineSeconds of its Job   hard: the Job controller deletes it, which takes as long
    label MAX_EXEC_TIME of either      soft: Kueue suspends the job then, if it manages the job
    annotation DURATION                soft: the pod goes on if its owner is wrong
    what pods like it took             soft, where a profile learns durations
    nothing of these                   it is not known to end

The earliest hard end counts. Soft ends count only where an administrator says so (`softEnds`), and
then only without a hard one, in the order of the table. A pod that has not started yet is taken to
start START_S from now, for UNSTARTED_S.

A pod's owner may write most of this, so an end is believed once: the first that was read of a
running pod counts, later ones only if they are earlier, and a pod that runs on after it (after a
hard one, LATE_S longer) is not known to end any more.

Bounds  an entry per placed pod; LIKES_MAX kinds of pods of which durations are learnt, SAMPLES_MAX
        of each; the kind unused for longest goes.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable
from functools import lru_cache
from math import ceil, inf
from typing import Final, NamedTuple

from asched.core.model.kinds import JOB
from asched.core.model.pod import Pod
from asched.core.model.timestamp import microseconds
from asched.core.model.workload import Job
from asched.core.state.cluster import Cluster
from asched.core.state.pods import PodInfo

#: On a pod: for how many seconds it will run, as its owner expects.
DURATION: Final = "asched.dev/expected-duration-seconds"
#: On a job, or a pod that Kueue admits by itself: Kueue lets it run so long once it was admitted.
#: Any owner may write it, whether or not Kueue knows the job.
MAX_EXEC_TIME: Final = "kueue.x-k8s.io/max-exec-time-seconds"
#: From a placement to the start time that the kubelet writes. A guess: it has to hear of the pod.
START_S: Final = 10.0
#: What the API server fills in.
GRACE_S: Final = 30
#: A placed pod that has not started for so long may never start.
UNSTARTED_S: Final = 300.0
#: A pod that a kubelet or controller should have ended is taken to end so much later, and so on ...
OVERDUE_S: Final = 30.0
#: ... for so long: its node may be gone.
LATE_S: Final = 300.0
#: The Job controller that Kubernetes brings; others may let Jobs run on.
JOB_CONTROLLER: Final = "kubernetes.io/job-controller"
#: Entries of gone pods are swept out beyond so many.
PLACED_MIN: Final = 64
LIKES_MAX: Final = 1_024
SAMPLES_MAX: Final = 32
#: Fewer tell nothing. A guess.
SAMPLES_MIN: Final = 5
#: Nine of ten pods like it ended earlier.
QUANTILE: Final = 0.9


class ExpectedEnd(NamedTuple):
    """Seconds since 1970. `is_hard`: a kubelet or controller sees to it."""

    at_s: float
    is_hard: bool


class Ends:
    """For `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        #: whether soft ends count, and are learnt
        self.believes_soft = self.learns = False
        #: the first end of either kind that was read of running pods, by uid and kind
        self._first: dict[tuple[str, bool], float] = {}
        #: when pods that have not started were first seen on their nodes, by uid
        self._placed_s: dict[str, float] = {}
        self._samples: OrderedDict[Hashable, deque[float]] = OrderedDict()

    def of(self, info: PodInfo, now_s: float) -> ExpectedEnd | None:
        """When a pod ends if it runs, or starts now; None if that is not known."""
        if not info.pod.spec.node_name:  # not bound: it may be on a node for an attempt only
            return self._end(info, now_s + START_S)
        uid = info.pod.uid
        started_s = _seconds(info.pod.status.start_time)
        if started_s is None:
            self._sweep()
            placed_s = self._placed_s.setdefault(uid, now_s)
            if now_s - placed_s > UNSTARTED_S:
                return None
            late = max(ceil((now_s - placed_s) / START_S), 1)
            return self._end(info, placed_s + START_S * late)
        self._placed_s.pop(uid, None)
        end = self._end(info, started_s)
        if end is None:
            return None
        first_s = self._first.get((uid, end.is_hard))
        if first_s is None or end.at_s < first_s:
            self._sweep()
            self._first[uid, end.is_hard] = first_s = end.at_s
        late_s = max(now_s - first_s, 0.0)
        if late_s > (LATE_S if end.is_hard else 0.0):
            return None
        return ExpectedEnd(first_s + OVERDUE_S * ceil(late_s / OVERDUE_S), end.is_hard)

    def _sweep(self) -> None:
        placed = self._cluster.placed
        if len(self._placed_s) + len(self._first) > 2 * len(placed) + PLACED_MIN:
            self._placed_s = {uid: at for uid, at in self._placed_s.items() if uid in placed}
            self._first = {key: at for key, at in self._first.items() if key[0] in placed}

    def _end(self, info: PodInfo, from_s: float) -> ExpectedEnd | None:
        """By what is written just now, of a pod that starts at that time."""
        hard_s = self._deadline(info.pod, from_s)
        if hard_s is not None:
            return ExpectedEnd(hard_s, is_hard=True)
        lasts_s = self._expected_s(info) if self.believes_soft else None
        return None if lasts_s is None else ExpectedEnd(from_s + lasts_s, is_hard=False)

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

    def _deadline(self, pod: Pod, from_s: float) -> float | None:
        spec, found = pod.spec, inf
        grace_s = spec.termination_grace_period_seconds
        grace_s = GRACE_S if grace_s is None else max(grace_s, 0)
        if spec.active_deadline_seconds is not None:
            found = from_s + spec.active_deadline_seconds
        job = self._job(pod)
        if job is not None and job.spec.managed_by in (None, JOB_CONTROLLER):
            begun_s, lasts_s = _seconds(job.status.start_time), job.spec.active_deadline_seconds
            if begun_s is not None and lasts_s is not None:
                found = min(found, begun_s + lasts_s)
        return found + grace_s if found < inf else None

    def _job(self, pod: Pod) -> Job | None:
        owner = pod.metadata.controller
        if owner is None or owner.kind != JOB.name:
            return None
        job: Job | None = self._cluster.told(JOB, f"{pod.metadata.namespace}/{owner.name}")
        return job if job is not None and job.metadata.uid == owner.uid else None

    def _expected_s(self, info: PodInfo) -> float | None:
        job = self._job(info.pod)
        for metadata in (info.pod.metadata, job.metadata if job is not None else None):
            lasts_s = _whole(((metadata and metadata.labels) or {}).get(MAX_EXEC_TIME, ""))
            if lasts_s is not None:
                return lasts_s
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
