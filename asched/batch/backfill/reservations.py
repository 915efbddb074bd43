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

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from asched.batch.backfill.ends import Ends
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import ALL_ASPECTS, START_TIMES
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.model.quantity import within_int64

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
Rows = npt.NDArray[np.intp]

#: Prefix of the uid of a pod that waits alone, in place of a group's key.
POD_OWNER: Final = "pod:"
#: Suffix of the uid of a pod that is tried at another time than now.
CLONE: Final = "/start"


class NodeNeed(NamedTuple):
    """The promise on one node: `accounted` as in `PodClass`, and a number of `pods`."""

    accounted: Mapping[str, int]
    pods: int


class StartOrder(NamedTuple):
    """Smaller goes first: priority, then the time since when it is tried (s of turns), then the
    number assigned with the first promise.
    """

    negated_priority: int
    since_s: float
    number: int


class Reservation(msgspec.Struct, eq=False):
    """Times in seconds since 1970. `needs` by node name; `likes`: a pod of each of its classes.
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


class Left:
    """The amounts left on the rows of one reservation: `rows` intp[n], `amounts` int64[R+1, n],
    whose last line counts pods.
    """

    __slots__ = ("amounts", "at", "cursor", "rows", "version")

    def __init__(self, rows: Rows, amounts: I64, cursor: int, version: tuple[int, int]) -> None:
        self.rows = rows
        self.amounts = amounts
        self.at = {row: index for index, row in enumerate(rows.tolist())}
        self.cursor = cursor
        self.version = version


def vector(cluster: Cluster, accounted: Mapping[str, int], pods: int) -> I64:
    """int64[R+1]: amounts by axis; resources that no node has are left out."""
    nodes = cluster.nodes
    found = np.zeros(len(nodes.columns.read("allocatable")) + 1, dtype=np.int64)
    for name, amount in accounted.items():
        at = nodes.find_resource(name)
        if at is not None:
            found[at] = within_int64(amount)  # the sum of several pods may be larger
    found[-1] = pods
    return found


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

    # --- for their owners ------------------------------------------------------------------------

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
        if self._cluster.wall_clock_s > self._flip_s:
            self._flip_s = inf
            self._cluster.note_counts()

    def _moved(self) -> None:
        self.version += 1
        self._flip_s = inf
        self._cluster.note_counts()

    # --- which pods they restrict ----------------------------------------------------------------

    def binding(self, info: PodInfo) -> list[Reservation]:
        """Reservations that keep a pod off rows, if it starts now."""
        if not self._by_owner or info.cls.number in self._unbound:
            return []
        now_s = self._cluster.wall_clock_s
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
            rows = range(nodes.size) if nodes.rows is None else nodes.rows.tolist()
            for at, row in enumerate(rows):
                codes[at] = any(
                    not self._leaves_room(reservation, info, row) for reservation in binding
                )
            return codes
        need = vector(self._cluster, info.cls.accounted, 1)
        asked = need > 0
        for reservation in binding:
            left = self.left(reservation)
            short = (left.amounts[asked] < need[asked, None]).any(axis=0)
            refused = left.rows[short]
            if nodes.rows is None:
                codes[refused] = 1
            elif len(refused):
                codes[np.isin(nodes.rows, refused)] = 1
        return codes

    def _leaves_room(self, reservation: Reservation, info: PodInfo, row: int) -> bool:
        node = self._cluster.nodes.node_at[row]
        if node is None or node.name not in reservation.needs:
            return True
        need = vector(self._cluster, info.cls.accounted, 1)
        left = self._left_on(reservation, row, self._others(reservation))
        return bool((left[need > 0] >= need[need > 0]).all())

    # --- amounts left ----------------------------------------------------------------------------

    def left(self, reservation: Reservation) -> Left:
        """The amounts left at its start beside it and all others, up to date."""
        nodes, known = self._cluster.nodes, reservation.left
        width = len(nodes.columns.read("allocatable"))
        version, end = (self.version, width), nodes.log.end
        if known is not None and known.version == version and known.cursor == end:
            return known
        rows = [nodes.row_of[name] for name in reservation.needs if name in nodes.row_of]
        if known is not None and known.version == version:
            moved = nodes.log.rows(known.cursor, ALL_ASPECTS | START_TIMES)
            if moved is not None and rows == list(known.at):  # the row of a node may have changed
                others = self._others(reservation)
                for row in moved:
                    at = known.at.get(row)
                    if at is not None:
                        known.amounts[:, at] = self._left_on(reservation, row, others)
                known.cursor = end
                return known
        amounts = np.zeros((width + 1, len(rows)), dtype=np.int64)
        others = self._others(reservation)
        for at, row in enumerate(rows):
            amounts[:, at] = self._left_on(reservation, row, others)
        reservation.left = Left(np.array(rows, dtype=np.intp), amounts, end, version)
        return reservation.left

    def is_broken(self, reservation: Reservation) -> bool:
        """Whether its room will be missing at its start, also because of reservations before it."""
        nodes = self._cluster.nodes
        if any(name not in nodes.row_of for name in reservation.needs):
            return True
        left = self.left(reservation)
        unschedulable = nodes.columns.read("unschedulable")[left.rows]
        if unschedulable.any():
            return True
        if not (left.amounts < 0).any():
            return False
        before = [other for other in self._others(reservation) if other.order < reservation.order]
        short = np.flatnonzero((left.amounts < 0).any(axis=0)).tolist()
        rows = left.rows[short].tolist()
        return any(bool((self._left_on(reservation, row, before) < 0).any()) for row in rows)

    def _others(self, reservation: Reservation) -> list[Reservation]:
        """Reservations with room in use at the start of this one."""
        every = self._by_owner.values()
        return [
            other
            for other in every
            if other is not reservation and other.is_active(reservation.start_s)
        ]

    def _left_on(self, reservation: Reservation, row: int, others: Iterable[Reservation]) -> I64:
        cluster = self._cluster
        left = self.free_at(row, reservation.start_s)
        node = cluster.nodes.node_at[row]
        assert node is not None
        for claimant in (reservation, *others):
            need = claimant.needs.get(node.name)
            if need is not None:
                left -= vector(cluster, need.accounted, need.pods)
        return left

    def free_at(self, row: int, at_s: float) -> I64:
        """int64[R+1]: the amounts of a row not used at that time by its present pods."""
        cluster, read = self._cluster, self._cluster.nodes.columns.read
        free = np.empty(len(read("allocatable")) + 1, dtype=np.int64)
        free[:-1] = read("allocatable")[:, row] - read("requested")[:, row]
        free[-1] = read("allowed_pods")[row] - read("pod_count")[row]
        for info, _ in self.leaving(row, at_s):
            free += vector(cluster, info.cls.accounted, 1)
        return free

    def leaving(self, row: int, at_s: float) -> Iterator[tuple[PodInfo, bool]]:
        """(pod, whether its end is hard) of the pods on a row that will have ended at that time."""
        now_s = self._cluster.wall_clock_s
        for info in self._cluster.pods_on(row).values():
            end = self._ends.of(info, now_s)
            if end is not None and end.at_s <= at_s:
                yield info, end.is_hard
