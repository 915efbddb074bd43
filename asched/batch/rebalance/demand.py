"""How many pods must leave a node at least so that others fit there, by amounts alone.

`MovableAmounts` sums up, for each node, what the largest pods that may move use of each resource.
The counts are lower bounds: whatever else keeps a pod from a node, it has to fit into what is free.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.order_free import POD_PLACE, left_of
from asched.core.framework.placements import Mask
from asched.core.model.requests import PODS

I64 = npt.NDArray[np.int64]

#: More moves than any plan has.
NEVER: Final = 1 << 30
#: Pods of a class that are counted on a node. If a node may take more, none is counted.
COUNTED_MAX: Final = 64


class MovableAmounts:
    """What the pods that may move use. `axes`: the resources, as in `order_free.takes_of`."""

    def __init__(self, cluster: Cluster, movable: Sequence[PodInfo], moves_max: int) -> None:
        self._cluster = cluster
        nodes = cluster.nodes
        self._names = nodes.resources.values
        self.axes = [POD_PLACE, *range(len(nodes.columns.read("allocatable")))]
        self.moves_max = moves_max
        #: by number of a class of pods that may move: the largest share of what the largest node
        #: offers that one uses
        self.sizes: dict[int, float] = {}
        read, height = nodes.columns.read, nodes.height
        offered = np.vstack((read("allowed_pods"), read("allocatable")))[:, :height]
        most = np.maximum(offered.max(axis=1, initial=1), 1)
        by_row: dict[int, list[list[int]]] = {}
        of_class: dict[int, list[int]] = {}
        for info in movable:
            number = info.cls.number
            if number not in of_class:
                accounted = info.cls.accounted
                amounts = [1, *(accounted.get(self._names[at + 1], 0) for at in self.axes[1:])]
                of_class[number] = amounts
                self.sizes[number] = float((np.array(amounts) / most)[1:].max())
            by_row.setdefault(info.row, []).append(of_class[number])
        #: int64[moves + 1, axes, N]: what the largest pods of a row use together
        self.tops: I64 = np.zeros((moves_max + 1, len(self.axes), nodes.height), dtype=np.int64)
        for row, listed in by_row.items():
            largest = -np.sort(-np.array(listed, dtype=np.int64), axis=0)[:moves_max]
            self.tops[1 : len(largest) + 1, :, row] = np.cumsum(largest, axis=0)
            self.tops[len(largest) + 1 :, :, row] = self.tops[len(largest), :, row]

    def free(self) -> I64:
        """int64[axes, N]: what is free now."""
        return left_of(NodeView(self._cluster.nodes), self.axes)

    def needs(self, takes: Mapping[int, int]) -> I64:
        """int64[axes, 1]: the needs of a pod."""
        return np.array([[takes.get(at, 0)] for at in self.axes], dtype=np.int64)

    def tightest(self, fits: Mask) -> list[int]:
        """Rows in the order of what is free on them, compared with what they offer."""
        rows = np.flatnonzero(fits)
        shares = self.free_shares()[rows]
        found: list[int] = rows[np.argsort(shares, kind="stable")].tolist()
        return found

    def free_shares(self) -> npt.NDArray[np.float64]:
        """float[N]: what is free of all resources, in shares of what the node offers."""
        read, height = self._cluster.nodes.columns.read, self._cluster.nodes.height
        shares = self.free()[1:] / np.maximum(read("allocatable")[:, :height], 1)
        found: npt.NDArray[np.float64] = shares.sum(axis=0)
        return found

    def short_of(self, demands: Iterable["Demand"]) -> str:
        """The first resource of which all nodes together have too little, or an empty text."""
        needed = sum(demand.needs[:, 0] * demand.count for demand in demands)
        read, height = self._cluster.nodes.columns.read, self._cluster.nodes.height
        takes = read("live")[:height] & ~read("unschedulable")[:height]
        free = np.maximum(self.free(), 0)[:, takes].sum(axis=1)
        short = np.flatnonzero(free < needed)
        if not short.size:
            return ""
        at = self.axes[int(short[0])]
        return PODS if at == POD_PLACE else str(self._names[at + 1])


class Demand:
    """`count` equal pods that need these amounts each, on the rows bool[N]. `is_order_free`: the
    order in which they are placed does not matter.
    """

    def __init__(
        self,
        amounts: MovableAmounts,
        takes: Mapping[int, int],
        rows: Mask,
        count: int,
        *,
        is_order_free: bool,
    ) -> None:
        self._amounts = amounts
        self.needs = amounts.needs({POD_PLACE: 1, **takes})
        self._rows = rows
        self.count = count
        self.is_order_free = is_order_free
        free = amounts.free()
        #: int64[pods on the row, N]: the moves for so many pods, and for the last of them
        each = range(1, min(count, COUNTED_MAX) + 1)
        moves = np.array([self._moves(free, number) for number in each])
        self._is_counted = count <= COUNTED_MAX or bool((moves[-1] >= NEVER).all())
        self._totals, self._marginals = moves, np.diff(moves, axis=0, prepend=0)
        self._marginals[moves >= NEVER] = NEVER
        #: rows by the moves for one pod, then by free room, so that small pods suffice to move
        self._by_rank = np.lexsort((-amounts.free_shares(), moves[0]))
        self._ranks = np.empty_like(self._by_rank)
        self._ranks[self._by_rank] = np.arange(len(self._by_rank))
        self._sums: dict[int, I64] = {}
        offered = np.maximum((free + amounts.tops[-1]).max(axis=1, initial=1), 1)
        #: the largest share of a row that a pod needs
        self.size = float((self.needs[:, 0] / offered).max())

    def least(self, pods: int, after: int = 0) -> int:
        """The least number of moves for so many pods on rows of the rank `after` or higher."""
        if not self._is_counted:
            return 0
        sums = self._sums.get(after)
        if sums is None:
            marginals = self._marginals[:, self._by_rank[after:]].ravel()
            few = (
                np.partition(marginals, self.count - 1)
                if len(marginals) > self.count
                else marginals
            )
            sums = self._sums[after] = np.cumsum(np.sort(few[: self.count]))
        if pods > len(sums):
            return NEVER
        return int(sums[pods - 1]) if pods else 0

    def used_on(self, rows: Mapping[int, int]) -> int:
        """The least number of moves for so many pods on these rows."""
        if not self._is_counted:
            return 0
        return sum(int(self._totals[pods - 1, row]) for row, pods in rows.items())

    def rank_of(self, row: int) -> int:
        return int(self._ranks[row])

    def in_order(self, fits: Mask, after: int) -> list[int]:
        """The rows of a mask by rank, from the rank `after` on."""
        rows = self._by_rank[after:]
        found: list[int] = rows[fits[rows]].tolist()
        return found

    def moves_now(self) -> I64:
        """int64[N]: the least number of pods that must leave each row now for one pod."""
        return self._moves(self._amounts.free(), 1)

    def _moves(self, free: I64, pods: int) -> I64:
        tops = self._amounts.tops
        moves = np.full(free.shape[1], NEVER, dtype=np.int64)
        for number in range(len(tops) - 1, -1, -1):
            lacks = (self.needs > 0) & (free + tops[number] < self.needs * pods)
            moves[~lacks.any(axis=0)] = number
        moves[~self._rows] = NEVER
        return moves
