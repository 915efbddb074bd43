"""The pods of every node in order of importance, as columns: what a dry run takes away first.

More important is who has the higher priority, and among equals who started earlier; a pod that has
not started counts as starting now. Slots are filled from the most important pod on, so those below
any priority are a node's last slots. Of each pod a slot holds its *bulk* (priority and amounts,
interned) and its start; the pods themselves stand in lists beside the columns.

Rows are lined up anew only where the row log says that pods came, went or started.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.model.timestamp import microseconds
from asched.core.state.cluster import Cluster
from asched.core.state.nodes import LIVE_ONLY, PODS_MOVED, START_TIMES
from asched.core.state.pods import PodInfo

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

#: Start of a pod that has not started: later than all others.
NOW: Final = np.iinfo(np.int64).max
#: Priority of an empty slot: nobody is above it.
NOBODY: Final = np.iinfo(np.int64).max
#: Aspects that change a row's line.
ASPECTS: Final = PODS_MOVED | LIVE_ONLY | START_TIMES
#: Slots grow by this many at least.
SLOTS_STEP: Final = 8
#: Distinct (priority, amounts) kept before all is lined up anew. A guess.
BULKS_MAX: Final = 1 << 16


def start_of(info: PodInfo) -> int:
    """When the pod started, in microseconds since the epoch; `NOW` if it did not or nobody can
    tell.
    """
    text = info.pod.status.start_time
    if text is None:
        return NOW
    try:
        return microseconds(text)
    except ValueError:
        return NOW


def in_line(infos: Iterable[PodInfo]) -> list[PodInfo]:
    """The most important pod first; between equals the uid decides, so that runs can be
    replayed.
    """
    return sorted(infos, key=_importance)


def _importance(info: PodInfo) -> tuple[int, int, str]:
    return -info.pod.priority, start_of(info), info.pod.uid


class Lineup:
    """`bulks` int32[K, N] and `starts` int64[K, N] by slot and row; `priorities` int64[B] and
    `amounts` int64[R, B] by bulk. Bulk 0 is the empty slot.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._cursor = -1
        self._forget()

    def catch_up(self) -> None:
        """Line up the rows that changed. Not to be called on trial."""
        nodes = self._cluster.nodes
        if self._cursor == nodes.log.end:
            self._reserve_bulks()
            return
        entries = nodes.log.since(self._cursor) if self._cursor >= 0 else None
        if entries is None or len(self._bulk_ids) > BULKS_MAX:
            self._forget()
            rows: Iterable[int] = range(nodes.height)
        else:
            rows = {row for row, aspects in entries if aspects & ASPECTS}
        self._reserve_rows()
        for row in rows:
            self._line_up(row)
        self._cursor = nodes.log.end
        self._reserve_bulks()

    def pods(self, row: int) -> list[PodInfo]:
        """The pods of a row, slot by slot."""
        return self._pods[row]

    def depth(self, rows: npt.NDArray[np.integer]) -> int:
        """How many slots the fullest of the rows uses."""
        return int(self._sizes[rows].max(initial=0))

    def _forget(self) -> None:
        self._bulk_ids: dict[tuple[int, tuple[tuple[str, int], ...]], int] = {}
        self._bulks_written = 1
        self._pods: list[list[PodInfo]] = []
        self._sizes: I64 = np.zeros(0, dtype=np.int64)
        self.bulks: I32 = np.zeros((SLOTS_STEP, 0), dtype=np.int32)
        self.starts: I64 = np.zeros((SLOTS_STEP, 0), dtype=np.int64)
        self.priorities: I64 = np.full(1, NOBODY, dtype=np.int64)
        self.amounts: I64 = np.zeros((0, 1), dtype=np.int64)

    def _line_up(self, row: int) -> None:
        pods = in_line(self._cluster.pods_on(row).values())
        if len(pods) > len(self.bulks):
            self._reserve_slots(len(pods))
        self._pods[row] = pods
        size = len(pods)
        self._sizes[row] = size
        self.bulks[:size, row] = [self._bulk_of(info) for info in pods]
        self.bulks[size:, row] = 0
        self.starts[:size, row] = [start_of(info) for info in pods]

    def _bulk_of(self, info: PodInfo) -> int:
        key = (info.pod.priority, tuple(info.cls.accounted.items()))
        found = self._bulk_ids.get(key)
        if found is None:
            found = self._bulk_ids[key] = len(self._bulk_ids) + 1
        return found

    def _reserve_rows(self) -> None:
        nodes = self._cluster.nodes
        while len(self._pods) < nodes.height:
            self._pods.append([])
        more = nodes.columns.capacity - len(self._sizes)
        if more > 0:
            self._sizes = np.pad(self._sizes, (0, more))
            self.bulks = np.pad(self.bulks, ((0, 0), (0, more)))
            self.starts = np.pad(self.starts, ((0, 0), (0, more)))

    def _reserve_slots(self, size: int) -> None:
        more = max(size - len(self.bulks), SLOTS_STEP, len(self.bulks) // 2)
        self.bulks = np.pad(self.bulks, ((0, more), (0, 0)))
        self.starts = np.pad(self.starts, ((0, more), (0, 0)))

    def _reserve_bulks(self) -> None:
        """Write the bulks that are new, and follow the node table's resources."""
        nodes = self._cluster.nodes
        resources = nodes.columns.size_of("R")
        if len(self._bulk_ids) < self._bulks_written and len(self.amounts) == resources:
            return
        fresh = list(self._bulk_ids.items())[self._bulks_written - 1 :]
        columns = [
            {nodes.resource_row(name): amount for name, amount in amounts}
            for (_, amounts), _ in fresh
        ]
        resources = nodes.columns.size_of("R")
        if fresh:
            added = [priority for (priority, _), _ in fresh]
            self.priorities = np.concatenate((self.priorities, np.array(added, dtype=np.int64)))
        grown: I64 = np.zeros((resources, len(self.priorities)), dtype=np.int64)
        if grown.shape != self.amounts.shape:
            grown[: self.amounts.shape[0], : self.amounts.shape[1]] = self.amounts
            self.amounts = grown
        for (_, bulk), column in zip(fresh, columns, strict=True):
            for index, amount in column.items():
                self.amounts[index, bulk] = amount
        self._bulks_written += len(fresh)
