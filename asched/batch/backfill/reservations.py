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

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from asched.batch.backfill.expected_ends import Ends
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import ALL_ASPECTS, START_TIMES
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.room import free_amounts, has_room, have_room, vector
from asched.core.cluster.view import NodeView
from asched.core.config.args import BackfillArgs
from asched.core.cycle.freed_places import FreedPlaces
from asched.core.model.arrays import I64
from asched.core.model.lru import Lru
from asched.core.model.timestamp import rfc3339

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
    profile: str
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
    free: "FreeAmounts | None" = None

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


class FreeAmounts(msgspec.Struct, eq=False):
    """The amounts left on the rows of one reservation: `rows` intp[n], `amounts` int64[R+1, n],
    whose last row counts pods; `at`: the place of each row.
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
        keeping_off = []
        for reservation in self._by_owner.values():
            is_own = any(like.cls is info.cls for like in reservation.likes)
            if is_own or reservation.priority < info.pod.priority:
                continue
            if reservation.start_s < now_s + lasts_s:
                keeping_off.append(reservation)
            else:
                self._flip_s = min(self._flip_s, reservation.start_s - lasts_s)
        return keeping_off

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
            free = self.free(reservation)
            short = ~have_room(free.amounts, need)
            codes[np.isin(nodes.row_numbers(), free.rows[short])] = 1
        return codes

    def _leaves_room(self, reservation: Reservation, info: PodInfo, row: int) -> bool:
        node = self._cluster.nodes.node_at[row]
        if node is None or node.name not in reservation.needs:
            return True
        need = vector(self._cluster.nodes, info.cls.accounted, 1)
        return has_room(self._free_on(reservation, row, self._others(reservation)), need)

    def free(self, reservation: Reservation) -> FreeAmounts:
        """The amounts left at its start with it and all others, up to date."""
        nodes, known = self._cluster.nodes, reservation.free
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
            at = {row: number for number, row in enumerate(rows)}
            index = np.array(rows, dtype=np.intp)
            known = reservation.free = FreeAmounts(index, amounts, at, version)
            moved = rows
        others = self._others(reservation)
        for row in moved:
            if row in known.at:
                known.amounts[:, known.at[row]] = self._free_on(reservation, row, others)
        known.cursor = end
        return known

    def is_broken(self, reservation: Reservation) -> bool:
        """Whether its room will be missing at its start, also because of reservations before it.
        What it does not ask for may be missing.
        """
        nodes = self._cluster.nodes
        if any(name not in nodes.row_of for name in reservation.needs):
            return True
        free = self.free(reservation)
        if nodes.columns.read("unschedulable")[free.rows].any():
            return True
        before = [other for other in self._others(reservation) if other.order < reservation.order]
        rows = free.rows[(free.amounts < 0).any(axis=0)].tolist()
        return not all(self._is_kept(reservation, row, before) for row in rows)

    def _is_kept(self, reservation: Reservation, row: int, before: Iterable[Reservation]) -> bool:
        """Whether a row has the room of the reservation at its start."""
        need = self._need_on(reservation, row)
        return has_room(self._free_on(reservation, row, before) + need, need)

    def _others(self, reservation: Reservation) -> list[Reservation]:
        """Reservations with room in use at the start of this one."""
        every = self._by_owner.values()
        active = [other for other in every if other.is_active(reservation.start_s)]
        return [other for other in active if other is not reservation]

    def _free_on(self, reservation: Reservation, row: int, others: Iterable[Reservation]) -> I64:
        free = self.free_at(row, reservation.start_s)
        for claimant in (reservation, *others):
            free -= self._need_on(claimant, row)
        return free

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
