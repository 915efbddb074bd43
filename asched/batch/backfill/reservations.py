"""Reservations: room that is promised to a waiting pod or group from some time on.

    put ──> pods that end after its start are kept off its rows, unless they leave enough
    drop ─> no pods are kept off any more

A reservation is not a hold (`holds.py`): nothing is counted before its start, since pods that will
have ended by then still use the room. What counts is what is *left* on each of its rows at its
start: the allocatable amounts, less all pods that are there then, all reservations that have begun
by then and not ended, and this one. Usage grows only at starts, so that a pod which fits at each
start before its own end fits all the time.

It restricts later pods: those of lower and of the same priority, except the classes it is made for.
Expected ends change with time, so `tick` must be called once a turn.

Bounds  RESERVATIONS_MAX of `args.py`; one entry per node of each.
"""

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from math import ceil, inf
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from asched.batch.placement.bounds import I64
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import ALL_ASPECTS, START_TIMES
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.room import free_amounts, has_room, have_room, vector
from asched.core.cluster.view import NodeView
from asched.core.config.args import BackfillArgs
from asched.core.cycle.intake import FreedPlaces
from asched.core.model.kinds import JOB
from asched.core.model.lru import Lru
from asched.core.model.pod import Pod
from asched.core.model.timestamp import microseconds, rfc3339
from asched.core.model.workload import Job

# Expected ends of pods.
#
#     activeDeadlineSeconds of the pod   hard: its kubelet ends it, with its grace period
#     activeDeadlineSeconds of its Job   hard: the Job controller deletes it, with the same delay
#     label MAX_EXEC_TIME of either      soft: Kueue then suspends the job, if it manages the job
#     annotation DURATION                soft: the pod continues if its owner is wrong
#     durations of similar pods          soft, where a profile learns durations
#     none of these                      the end is unknown
#
# The earliest hard end counts. Soft ends count only if configured (`softEnds`), and then only
# without a hard one, in the order of the table. A pod that has not started yet is assumed to start
# START_S from now, for UNSTARTED_S.
#
# A pod's owner may write most of these fields, so an end is used once: the first one read of a
# running pod counts, later ones only if they are earlier, and the end of a pod that outlasts it (a
# hard one by LATE_S) is unknown.
#
# Kubelets and controllers write when a pod or Job started, as a date. It is converted to steady
# time when it is first read, so that an end does not move when the wall clock is set.
#
# Bounds  READ_MAX entries per placed pod; LIKES_MAX kinds of pods with learnt durations,
#         SAMPLES_MAX of each; the least recently used kind is dropped.

#: Annotation of a pod: its duration in seconds, as expected by its owner.
DURATION: Final = "asched.dev/expected-duration-seconds"
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
        spec, found = pod.spec, inf
        grace_s = spec.termination_grace_period_seconds
        grace_s = GRACE_S if grace_s is None else max(grace_s, 0)
        if spec.active_deadline_seconds is not None:
            found = from_s + spec.active_deadline_seconds
        job = self._job(pod)
        if job is not None and job.spec.managed_by in (None, JOB_CONTROLLER):
            begun_s, lasts_s = self._started_s(pod, job), job.spec.active_deadline_seconds
            if begun_s is not None and lasts_s is not None:
                found = min(found, begun_s + lasts_s)
        return found + grace_s if found < inf else None

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


I32 = npt.NDArray[np.int32]
Rows = npt.NDArray[np.intp]

#: End times that are stored.
OWNERS_MAX: Final = 1_024
#: Owners that wait for a promise, and lost promises that are stored.
WAITING_MAX: Final = 64
#: Prefix of the uid of a pod that waits alone, in place of a group's key.
POD_OWNER: Final = "pod:"
#: Suffix of the uid of a pod that is tried at another time than now.
CLONE: Final = "/start"


class NodeNeed(NamedTuple):
    """The promise on one node: `accounted` as in `PodClass`, and a number of `pods`."""

    accounted: Mapping[str, int]
    pods: int


NO_NEED: Final = NodeNeed({}, 0)


class StartOrder(NamedTuple):
    """Smaller goes first: priority, then the time since when it is tried (s of turns), then the
    number assigned with the first promise.
    """

    negated_priority: int
    since_s: float
    number: int


class Reservation(msgspec.Struct, eq=False):
    """Times are steady. `needs` by node name; `likes`: a pod of each of its classes.
    `is_hard`: all ends that it depends on are. `first_s`: the start promised first, and `cause` why
    it is later. `there`: uids of pods on its nodes when it was made, of which `awaited` (key, uid)
    had to end by its start. It was last checked at `made_s`, with the node log at `seen`; since
    `woken_s` its owner is to be tried.
    """

    owner: str
    scheduler_name: str
    order: StartOrder
    start_s: float
    end_s: float
    is_hard: bool
    needs: Mapping[str, NodeNeed]
    likes: tuple[PodInfo, ...]
    first_s: float
    there: frozenset[str] = frozenset()
    awaited: tuple[tuple[str, str], ...] = ()
    cause: str = ""
    made_s: float = 0.0
    seen: int = -2
    woken_s: float | None = None
    left: "Left | None" = None

    @property
    def priority(self) -> int:
        return -self.order.negated_priority

    @property
    def namespace(self) -> str:
        return self.likes[0].pod.metadata.namespace

    def is_active(self, at_s: float) -> bool:
        return self.start_s <= at_s < self.end_s


def date_of(cluster: Cluster, at_s: float) -> str:
    """A steady time as a date, for conditions and pages, by the present wall clock."""
    return rfc3339(round(at_s + cluster.wall_ahead_s, 3))


class Left(msgspec.Struct, eq=False):
    """The amounts left on the rows of one reservation: `rows` intp[n], `amounts` int64[R+1, n],
    whose last line counts pods; `at`: the place of each row.
    """

    rows: Rows
    amounts: I64
    at: dict[int, int]
    version: tuple[int, int]
    cursor: int = -1


class Reservations:
    """All reservations, by owner. For `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ends = cluster.singleton(Ends)
        self._by_owner: dict[str, Reservation] = {}
        #: whether any profile makes or respects reservations
        self.is_on = False
        #: changes with every change of reservations
        self.version = 0
        #: classes of pods that are tried at another time than now: not restricted
        self._unbound: frozenset[int] = frozenset()
        self._flip_s = inf

    def __len__(self) -> int:
        return len(self._by_owner)

    def all(self) -> list[Reservation]:
        """All in order; a copy, for readers in other threads."""
        return sorted(self._by_owner.values(), key=lambda reservation: reservation.order)

    def of(self, owner: str) -> Reservation | None:
        return self._by_owner.get(owner)

    def put(self, reservation: Reservation) -> None:
        """Replace the owner's reservation."""
        self._by_owner[reservation.owner] = reservation
        self._moved()

    def drop(self, owner: str) -> Reservation | None:
        found = self._by_owner.pop(owner, None)
        if found is not None:
            self._moved()
        return found

    def suspend(self, classes: Iterable[int]) -> None:
        """Do not restrict these classes until `suspend(())`."""
        self._unbound = frozenset(classes)
        if self._by_owner:
            self._cluster.note_counts()

    def tick(self) -> None:
        """As time passes, other reservations may restrict some pods."""
        if self._cluster.steady_s > self._flip_s:
            self._flip_s = inf
            self._cluster.note_counts()

    def _moved(self) -> None:
        self.version += 1
        self._flip_s = inf
        self._cluster.note_counts()

    def binding(self, info: PodInfo) -> list[Reservation]:
        """Reservations that keep a pod off rows, if it starts now."""
        if not self._by_owner or info.cls.number in self._unbound:
            return []
        now_s = self._cluster.steady_s
        end = self._ends.of(info, now_s)
        lasts_s = inf if end is None else end.at_s - now_s
        found = []
        for reservation in self._by_owner.values():
            is_own = any(like.cls is info.cls for like in reservation.likes)
            if is_own or reservation.priority < info.pod.priority:
                continue
            if reservation.start_s < now_s + lasts_s:
                found.append(reservation)
            else:
                self._flip_s = min(self._flip_s, reservation.start_s - lasts_s)
        return found

    def codes(self, info: PodInfo, nodes: NodeView) -> I32:
        """int32[M]: 1 on rows of the view that a pod must avoid."""
        codes = np.zeros(nodes.size, dtype=np.int32)
        binding = self.binding(info)
        if not binding:
            return codes
        if self._cluster.topology.on_trial:
            for at, row in enumerate(nodes.row_numbers().tolist()):
                codes[at] = any(not self._leaves_room(known, info, row) for known in binding)
            return codes
        need = vector(self._cluster.nodes, info.cls.accounted, 1)
        for reservation in binding:
            left = self.left(reservation)
            short = ~have_room(left.amounts, need)
            codes[np.isin(nodes.row_numbers(), left.rows[short])] = 1
        return codes

    def _leaves_room(self, reservation: Reservation, info: PodInfo, row: int) -> bool:
        node = self._cluster.nodes.node_at[row]
        if node is None or node.name not in reservation.needs:
            return True
        need = vector(self._cluster.nodes, info.cls.accounted, 1)
        return has_room(self._left_on(reservation, row, self._others(reservation)), need)

    def left(self, reservation: Reservation) -> Left:
        """The amounts left at its start beside it and all others, up to date."""
        nodes, known = self._cluster.nodes, reservation.left
        width = len(nodes.columns.read("allocatable"))
        version, end = (self.version, width), nodes.log.end
        if known is not None and known.version == version and known.cursor == end:
            return known
        rows = [nodes.row_of[name] for name in reservation.needs if name in nodes.row_of]
        moved: Iterable[int] | None = None
        if known is not None and known.version == version and rows == list(known.at):
            moved = nodes.log.rows(known.cursor, ALL_ASPECTS | START_TIMES)
        if known is None or moved is None:
            amounts = np.zeros((width + 1, len(rows)), dtype=np.int64)
            at = {row: index for index, row in enumerate(rows)}
            known = reservation.left = Left(np.array(rows, dtype=np.intp), amounts, at, version)
            moved = rows
        others = self._others(reservation)
        for row in moved:
            if row in known.at:
                known.amounts[:, known.at[row]] = self._left_on(reservation, row, others)
        known.cursor = end
        return known

    def is_broken(self, reservation: Reservation) -> bool:
        """Whether its room will be missing at its start, also because of reservations before it.
        What it does not ask for may be missing.
        """
        nodes = self._cluster.nodes
        if any(name not in nodes.row_of for name in reservation.needs):
            return True
        left = self.left(reservation)
        if nodes.columns.read("unschedulable")[left.rows].any():
            return True
        before = [other for other in self._others(reservation) if other.order < reservation.order]
        rows = left.rows[(left.amounts < 0).any(axis=0)].tolist()
        return not all(self._is_kept(reservation, row, before) for row in rows)

    def _is_kept(self, reservation: Reservation, row: int, before: Iterable[Reservation]) -> bool:
        """Whether a row has the room of the reservation at its start."""
        need = self._need_on(reservation, row)
        return has_room(self._left_on(reservation, row, before) + need, need)

    def _others(self, reservation: Reservation) -> list[Reservation]:
        """Reservations with room in use at the start of this one."""
        every = self._by_owner.values()
        active = [other for other in every if other.is_active(reservation.start_s)]
        return [other for other in active if other is not reservation]

    def _left_on(self, reservation: Reservation, row: int, others: Iterable[Reservation]) -> I64:
        left = self.free_at(row, reservation.start_s)
        for claimant in (reservation, *others):
            left -= self._need_on(claimant, row)
        return left

    def _need_on(self, reservation: Reservation, row: int) -> I64:
        """int64[R+1]: the amounts of a reservation on a row."""
        node = self._cluster.nodes.node_at[row]
        assert node is not None
        need = reservation.needs.get(node.name, NO_NEED)
        return vector(self._cluster.nodes, need.accounted, need.pods)

    def free_at(self, row: int, at_s: float) -> I64:
        """int64[R+1]: the amounts of a row not used at that time by its present pods."""
        free = free_amounts(self._cluster.nodes, row)
        for info, _ in self.leaving(row, at_s):
            free += vector(self._cluster.nodes, info.cls.accounted, 1)
        return free

    def leaving(self, row: int, at_s: float) -> Iterator[tuple[PodInfo, bool]]:
        """(pod, whether its end is hard) of the pods on a row that will have ended at that time."""
        now_s = self._cluster.steady_s
        for info in self._cluster.pods_on(row).values():
            end = self._ends.of(info, now_s)
            if end is not None and end.at_s <= at_s:
                yield info, end.is_hard


class StartTimes(msgspec.Struct, eq=False):
    """Outcomes of promises, and the owners that wait for one. Made by `Cluster.singleton`."""

    cluster: Cluster
    args: Mapping[str, BackfillArgs] = msgspec.field(default_factory=dict)
    runners: object = None
    #: owners that wait for a reservation: order, and the key of a pod
    waiting: dict[str, tuple[StartOrder, str]] = msgspec.field(default_factory=dict)
    numbers: int = 0
    #: owners that an earlier process promised a start, until they have one again (or waited)
    recalled: set[str] = msgspec.field(default_factory=set)
    has_recalled: bool = False
    #: by owner: the start that was promised first, and why it is lost
    lost: Lru[str, tuple[float, str]] = msgspec.field(default_factory=lambda: Lru(WAITING_MAX))
    #: by owner: the time after which no start is promised any more
    ends_s: dict[str, float] = msgspec.field(default_factory=dict)
    #: what waiting pods are notified of in the next turn: that a promise was dropped or moved, and
    #: that places of a trial are free. A notification at once would arrive during an attempt at the
    #: same pods, and cause another attempt.
    has_moved: bool = False
    freed: FreedPlaces = msgspec.field(default_factory=FreedPlaces)
    #: the owner of the running search, and whether its pods are on nodes for a trial now, so that
    #: no conclusions can be drawn
    searching: str = ""
    is_trying: bool = False
    #: by `CHANGES`
    outcomes: Counter[str] = msgspec.field(default_factory=Counter)
    #: promises that were moved to a later time, by cause
    causes: Counter[str] = msgspec.field(default_factory=Counter)
    #: nodes' log at the last turn; pods by row as they were known then
    cursor: int = -2
    known: dict[int, dict[str, PodInfo]] = msgspec.field(default_factory=dict)
    ended_early_s: float = -inf
    reservations_max: int = 0

    def until(self, owner: str, at_s: float) -> float:
        """The latest start that may be promised to an owner; `at_s` at the first search for it."""
        until_s = self.ends_s.setdefault(owner, at_s)
        if len(self.ends_s) > OWNERS_MAX:
            del self.ends_s[next(iter(self.ends_s))]
        return until_s

    def number_of(self, owner: str, old: Reservation | None) -> int:
        """The serial number of an owner; a new one if it has none."""
        if old is not None:
            return old.order.number
        if owner in self.waiting:
            return self.waiting[owner][0].number
        self.numbers += 1
        return self.numbers
