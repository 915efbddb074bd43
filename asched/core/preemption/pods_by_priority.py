"""The pods of every node in order of importance, as columns: a dry run removes the last ones first.

The pod with the higher priority is more important, and among equals the one that started earlier; a
pod that has not started counts as starting now. Slots are filled from the most important pod on, so
that the pods below any priority are a node's last slots. For each pod a slot holds its *bulk*
(priority and amounts, interned) and its start; the pods themselves are in lists next to the
columns.

The slots of all rows are in one array, those of a row side by side with some spare, so that one
node with thousands of pods costs only what its pods cost. A row is sorted again only if the row log
says that pods came, went or started.
"""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import LIVE_ONLY, PODS_MOVED, START_TIMES
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.vocab import Vocab
from asched.core.model.arrays import I32, I64
from asched.core.model.timestamp import microseconds

#: Start of a pod that has not started: later than all others.
NOW: Final = np.iinfo(np.int64).max
#: Priority of an empty slot: above that of any pod.
NO_POD: Final = np.iinfo(np.int64).max
#: Aspects that change the order of a row.
ASPECTS: Final = PODS_MOVED | LIVE_ONLY | START_TIMES
#: Slots of a row grow by this many at least, and by half.
SLOTS_STEP: Final = 8
#: A row with more than this many times the slots it uses is shrunk.
SPARE_MAX: Final = 4

#: Rows sorted between two checks of the budget of work; steps of it for a row, and for a pod.
ROWS_AT_ONCE: Final = 64
ROW_STEPS, POD_STEPS = 0.5, 0.3

#: Priority, and the requests of the pod.
Bulk = tuple[int, tuple[tuple[str, int], ...]]


def start_of(info: PodInfo) -> int:
    """When the pod started, in microseconds since the epoch; `NOW` if it has not, or if it is
    unknown.
    """
    text = info.pod.status.start_time
    if text is None:
        return NOW
    try:
        return microseconds(text)
    except ValueError:
        return NOW


def by_importance(infos: Iterable[PodInfo]) -> list[PodInfo]:
    """Sort the most important pod first; among equals by uid, so that runs can be replayed."""
    return sorted(infos, key=_importance)


def _importance(info: PodInfo) -> tuple[int, int, str]:
    return -info.pod.priority, start_of(info), info.pod.uid


class PodsByPriority:
    """`bulks` int32[P] and `starts` int64[P] by place (`places` maps slots to places); `priorities`
    int64[B] and `amounts` int64[R, B] by bulk. Place 0 is empty; bulk 0 is that of an empty slot.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._cursor = -1
        self._behind: dict[int, None] = {}  # rows to be sorted
        self._pods: list[list[PodInfo]] = []
        self._offsets: I64 = np.zeros(0, dtype=np.int64)
        self._capacities: I64 = np.zeros(0, dtype=np.int64)
        self._sizes: I64 = np.zeros(0, dtype=np.int64)
        self._end = 1  # of the assigned places ...
        self._given = 0  # ... and how many of them rows have
        self.bulks: I32 = np.zeros(1, dtype=np.int32)
        self.starts: I64 = np.zeros(1, dtype=np.int64)
        self._known: Vocab[Bulk] = Vocab((NO_POD, ()))
        self._seen = self._resources_seen = -1
        self.priorities: I64 = np.zeros(0, dtype=np.int64)
        self.amounts: I64 = np.zeros((0, 0), dtype=np.int64)

    def catch_up(self, *, in_one_go: bool = False) -> None:
        """Sort the rows that changed. Not to be called on trial. Raises OutOfTurn if these are too
        many for one turn, unless `in_one_go`, for callers that cannot start again.
        """
        nodes, behind = self._cluster.nodes, self._behind
        if self._cursor != nodes.log.end:
            rows = nodes.log.rows(self._cursor, ASPECTS)
            behind.update(dict.fromkeys(range(nodes.height) if rows is None else rows))
            self._follow_rows()
            self._cursor = nodes.log.end
        while behind:
            self._insert_some(in_one_go=in_one_go)
        self._write_bulks()

    def _insert_some(self, *, in_one_go: bool) -> None:
        """Sort as many changed rows as allowed before the next check of the budget."""
        cluster, behind = self._cluster, self._behind
        rows = list(islice(behind, ROWS_AT_ONCE))
        if len(rows) == ROWS_AT_ONCE:
            pods = sum(len(cluster.pods_on(row)) for row in rows)
            spend = cluster.budget.note if in_one_go else cluster.budget.charge
            spend(ROWS_AT_ONCE * ROW_STEPS + pods * POD_STEPS)
        for row in rows:
            self._insert(row, by_importance(cluster.pods_on(row).values()))
            del behind[row]

    def pods(self, row: int) -> list[PodInfo]:
        """The pods of a row, slot by slot."""
        return self._pods[row]

    def below(self, row: int, priority: int) -> list[PodInfo]:
        """The pods of lower priority: its last slots."""
        pods = self._pods[row]
        return pods[bisect_left(pods, True, key=lambda info: info.pod.priority < priority) :]

    def sizes(self, rows: npt.NDArray[np.integer]) -> I64:
        """int64[M]: how many slots each row uses."""
        sizes: I64 = self._sizes[rows]
        return sizes

    def places(self, rows: npt.NDArray[np.integer]) -> I64:
        """int64[K, M] by slot and row, K the slots of the fullest row; 0 where a row has no such
        slot.
        """
        sizes = self._sizes[rows]
        slots = np.arange(int(sizes.max(initial=0)))[:, None]
        places: I64 = np.where(slots < sizes, self._offsets[rows] + slots, 0)
        return places

    def _insert(self, row: int, pods: list[PodInfo]) -> None:
        size, before = len(pods), int(self._sizes[row])
        fresh = [
            self._known.take((info.pod.priority, tuple(info.cls.accounted.items())))
            for info in pods
        ]
        start = int(self._offsets[row])
        for bulk in self.bulks[start : start + before].tolist():
            self._known.release(bulk)
        capacity = int(self._capacities[row])
        if size > capacity or capacity > SPARE_MAX * max(size, SLOTS_STEP):
            start = self._move(row, size)
        self._pods[row] = pods
        self._sizes[row] = size
        self.bulks[start : start + size] = fresh
        self.starts[start : start + size] = [start_of(info) for info in pods]

    def _move(self, row: int, size: int) -> int:
        """Give a row other places, which are not written yet."""
        capacity = -(-(size + size // 2) // SLOTS_STEP) * SLOTS_STEP
        self._given += capacity - int(self._capacities[row])
        self._sizes[row] = self._capacities[row] = self._offsets[row] = 0
        if self._end + capacity > len(self.bulks) or self._end > 2 * self._given + SLOTS_STEP:
            self._close_up()
        if not capacity:
            return 0
        self._offsets[row], self._capacities[row] = self._end, capacity
        self._end += capacity
        return int(self._offsets[row])

    def _close_up(self) -> None:
        """Place all rows side by side again, with half as many free places more."""
        rows = np.flatnonzero(self._capacities)
        capacities = self._capacities[rows]
        offsets = 1 + np.cumsum(capacities) - capacities
        end = 1 + int(capacities.sum())
        source = np.arange(1, end) + np.repeat(self._offsets[rows] - offsets, capacities)
        length = 1 + self._given + self._given // 2
        for name in ("bulks", "starts"):
            old = getattr(self, name)
            fresh = np.zeros(length, dtype=old.dtype)
            fresh[1:end] = old[source]
            setattr(self, name, fresh)
        self._offsets[rows] = offsets
        self._end = end

    def _follow_rows(self) -> None:
        """Shrink and grow with the node table."""
        nodes, capacity = self._cluster.nodes, self._cluster.nodes.columns.capacity
        for row in range(nodes.height, len(self._pods)):
            self._behind.pop(row, None)
            self._insert(row, [])
            self._given -= int(self._capacities[row])
            self._capacities[row] = 0
        del self._pods[nodes.height :]
        if capacity != len(self._sizes):
            for name in ("_sizes", "_capacities", "_offsets"):
                old = getattr(self, name)[:capacity]
                setattr(self, name, np.pad(old, (0, capacity - len(old))))
        if len(self.bulks) > SPARE_MAX * (self._given + SLOTS_STEP):
            self._close_up()
        self._pods += [[] for _ in range(nodes.height - len(self._pods))]

    def _write_bulks(self) -> None:
        """Write the new bulks; all of them if resources have moved on axis R."""
        nodes, known = self._cluster.nodes, self._known
        resources = nodes.columns.size_of("R")
        if (nodes.resources.end, resources) != (self._resources_seen, len(self.amounts)):
            self._seen, self._resources_seen = -1, nodes.resources.end
        if self._seen == known.end:
            return
        size = len(known)
        if self._seen < 0 or not size <= len(self.priorities) <= SPARE_MAX * size:
            self.priorities = np.zeros(size + size // 2, dtype=np.int64)
            self.amounts = np.zeros((resources, len(self.priorities)), dtype=np.int64)
            self._seen = -1
        for bulk in known.births(self._seen):
            self.priorities[bulk], amounts = known.values[bulk]
            self.amounts[:, bulk] = 0
            for name, amount in amounts:
                index = nodes.find_resource(name)
                if index is not None:
                    self.amounts[index, bulk] = amount
        self._seen = known.end
