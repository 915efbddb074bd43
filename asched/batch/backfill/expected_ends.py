"""Expected ends of pods.

    activeDeadlineSeconds of the pod   hard: its kubelet ends it, with its grace period
    activeDeadlineSeconds of its Job   hard: the Job controller deletes it, with the same delay
    label MAX_EXEC_TIME of either      soft: Kueue then suspends the job, if it manages the job
    annotation DURATION                soft: the pod continues if its owner is wrong
    durations of similar pods          soft, where a profile learns durations
    none of these                      the end is unknown

The earliest hard end counts. Soft ends count only if configured (`softEnds`), and then only
without a hard one, in the order of the table. A pod that has not started yet is assumed to start
START_S from now, for UNSTARTED_S.

A pod's owner may write most of these fields, so an end is used once: the first one read of a
running pod counts, later ones only if they are earlier, and the end of a pod that outlasts it (a
hard one by LATE_S) is unknown.

Kubelets and controllers write when a pod or Job started, as a date. It is converted to steady
time when it is first read, so that an end does not move when the wall clock is set.

Bounds  READ_MAX entries per placed pod; LIKES_MAX kinds of pods with learnt durations,
        SAMPLES_MAX of each; the least recently used kind is dropped.
"""

from collections import deque
from collections.abc import Hashable
from functools import lru_cache
from math import ceil, inf
from typing import Final, NamedTuple

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.model.kinds import JOB
from asched.core.model.lru import Lru
from asched.core.model.pod import Pod
from asched.core.model.timestamp import microseconds
from asched.core.model.workload import Job
from asched.names import PREFIX

#: Annotation of a pod: its duration in seconds, as expected by its owner.
DURATION: Final = f"{PREFIX}/expected-duration-seconds"
#: Label of a job, or of a pod that Kueue admits: Kueue's limit of its run time after admission. Any
#: owner may write it, whether or not Kueue manages the job.
MAX_EXEC_TIME: Final = "kueue.x-k8s.io/max-exec-time-seconds"
#: From a placement to the start time written by the kubelet. A guess.
START_S: Final = 10.0
#: The API server's default.
GRACE_S: Final = 30
#: A placed pod that has not started for this long may never start.
UNSTARTED_S: Final = 300.0
#: The end of an overdue pod is assumed to be this much later, repeatedly ...
OVERDUE_S: Final = 30.0
#: ... for this long: its node may be gone.
LATE_S: Final = 300.0
#: The Job controller of Kubernetes; other controllers may let Jobs continue.
JOB_CONTROLLER: Final = "kubernetes.io/job-controller"
#: Entries of deleted pods are removed beyond PLACED_MIN and this number for each placed pod; it has
#: four at most.
READ_MAX: Final = 5
PLACED_MIN: Final = 64
LIKES_MAX: Final = 1_024
SAMPLES_MAX: Final = 32
#: Fewer samples are ignored. A guess.
SAMPLES_MIN: Final = 5
#: Nine of ten similar pods ended earlier.
QUANTILE: Final = 0.9


class ExpectedEnd(NamedTuple):
    """Steady time. `is_hard`: a kubelet or controller enforces it."""

    at_s: float
    is_hard: bool


class Ends:
    """For `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        #: whether soft ends count, and are learnt
        self.believes_soft = self.learns = False
        #: the first end of either kind read of running pods, by uid and kind
        self._first: dict[tuple[str, bool], float] = {}
        #: when pods that have not started were first seen on their nodes, by uid
        self._placed_s: dict[str, float] = {}
        #: starts of pods, and of their Jobs, by uid of the pod: the date, and its steady time
        self._starts: dict[tuple[str, bool], tuple[str, float]] = {}
        self._samples = Lru[Hashable, deque[float]](LIKES_MAX)

    def of(self, info: PodInfo, now_s: float) -> ExpectedEnd | None:
        """The end of a pod that runs, or would start now; None if unknown."""
        if not info.pod.spec.node_name:  # not bound: possibly placed for an attempt only
            return self._end(info, now_s + START_S)
        uid = info.pod.uid
        started_s = self._started_s(info.pod)
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
        count = len(self._placed_s) + len(self._first) + len(self._starts)
        if count > READ_MAX * len(placed) + PLACED_MIN:
            self._placed_s = {uid: at for uid, at in self._placed_s.items() if uid in placed}
            self._first = {key: at for key, at in self._first.items() if key[0] in placed}
            self._starts = {key: at for key, at in self._starts.items() if key[0] in placed}

    def _started_s(self, pod: Pod, job: Job | None = None) -> float | None:
        """The steady time at which a pod started, or its Job; None if it has not."""
        date = (pod if job is None else job).status.start_time
        at_s = _seconds(date)
        if date is None or at_s is None:
            return None
        key = pod.uid, job is not None
        known = self._starts.get(key)
        if known is None or known[0] != date:
            self._sweep()
            known = self._starts[key] = (date, at_s - self._cluster.wall_ahead_s)
        return known[1]

    def _end(self, info: PodInfo, from_s: float) -> ExpectedEnd | None:
        """The end by the present fields, for this start time."""
        hard_s = self._deadline(info.pod, from_s)
        if hard_s is not None:
            return ExpectedEnd(hard_s, is_hard=True)
        lasts_s = self._expected_s(info) if self.believes_soft else None
        return None if lasts_s is None else ExpectedEnd(from_s + lasts_s, is_hard=False)

    def ended(self, info: PodInfo, now_s: float) -> None:
        """Record the duration of a pod that has ended, for similar pods."""
        started_s = self._started_s(info.pod)
        if not self.learns or started_s is None or info.pod.is_terminating:
            return
        like = _like(info)
        samples = self._samples.get(like) or deque(maxlen=SAMPLES_MAX)
        samples.append(max(now_s - started_s, 0.0))
        self._samples.put(like, samples)

    def _deadline(self, pod: Pod, from_s: float) -> float | None:
        spec, end_s = pod.spec, inf
        grace_s = spec.termination_grace_period_seconds
        grace_s = GRACE_S if grace_s is None else max(grace_s, 0)
        if spec.active_deadline_seconds is not None:
            end_s = from_s + spec.active_deadline_seconds
        job = self._job(pod)
        if job is not None and job.spec.managed_by in (None, JOB_CONTROLLER):
            begun_s, lasts_s = self._started_s(pod, job), job.spec.active_deadline_seconds
            if begun_s is not None and lasts_s is not None:
                end_s = min(end_s, begun_s + lasts_s)
        return end_s + grace_s if end_s < inf else None

    def _job(self, pod: Pod) -> Job | None:
        owner = pod.metadata.controller
        if owner is None or owner.kind != JOB.name:
            return None
        job: Job | None = self._cluster.stored(JOB, f"{pod.metadata.namespace}/{owner.name}")
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
    """Seconds in plain digits; None for other texts."""
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _like(info: PodInfo) -> Hashable:
    """The kind of a pod: namespace, kind of owner, image and requests."""
    pod = info.pod
    owner, containers = pod.metadata.controller, pod.spec.containers
    image = containers[0].image if containers else ""
    kind = owner.kind if owner is not None else ""
    return pod.metadata.namespace, kind, image, tuple(sorted(info.cls.accounted.items()))


@lru_cache(maxsize=1 << 14)
def _seconds(text: str | None) -> float | None:
    """Since 1970; None for invalid times."""
    try:
        return microseconds(text) / 1e6 if text else None
    except ValueError:
        return None
