"""GpuSharing: prefer nodes where a pod's GPUs, or its part of a GPU, leave the rest most useful.

Rejects   nodes where fewer devices than the pod requests have enough left, even if all pods there
          were packed as tightly as possible; evicting some helps.
Prefers   by the strategy of its args. Among equals the first node wins, not a random one:
          scores are whole points, and on fresh nodes nearly everything ties.
Retry     a pod with devices leaves its node; a node appears, or changes its allocatable amounts or
          labels.
Cost      for each changed node and pod class the ways to place the pod there; fragmentation checks
          each expected pod for each way (a node: 0.2 ms), the other strategies none. All nodes are
          scored again when the number of placed pods has changed by half since the last estimate.
Bounds    SHAPES_MAX: of the pods seen the most frequent shapes are expected.
Source    Weng et al., USENIX ATC 2023, for all strategies but CuttingStock, which is our own
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np

from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from asched.hardware.gpu.args import (
    BEST_FIT,
    CLUSTERING,
    CUTTING_STOCK,
    DOT_PRODUCT,
    EXPECTING,
    FRAGMENTATION_GRADIENT_DESCENT,
    PACKING,
    GpuSharingArgs,
)
from asched.hardware.gpu.fragmentation import Fragmentation, descent_points, expected
from asched.hardware.gpu.ledger import ASPECTS, GpuLedger
from asched.hardware.gpu.points import best_fit, clustering, dot_product, packing, ranked, spread
from asched.hardware.gpu.shares import GpuDemand, GpuShares, best_of, fits, has_devices, placements
from asched.hardware.gpu.stock import Stock
from asched.plugin import (
    I64,
    Action,
    Cluster,
    Codes,
    FilterPlugin,
    Hint,
    NodeView,
    PodInfo,
    Reason,
    Registration,
    Scope,
    ScorePlugin,
    Trigger,
)

SHAPES_MAX: Final = 64
#: The workload is derived again when the number of placed pods has changed by this factor.
LEARN_AGAIN: Final = 1.5
#: Rows processed together, so that their arrays stay in the processor's cache.
BLOCK_ROWS: Final = 128
#: Raw points of nodes without devices for the pod; and the number of distinguished steps per
#: device.
NEVER: Final = -(10**12)
STEPS: Final = 1_000_000

NO_DEVICE: Final = Reason("node(s) had too little left of each GPU", resolvable=True)

_SIMPLE: Final[dict[str, Callable[[GpuShares, GpuDemand], I64]]] = {
    DOT_PRODUCT: dot_product,
    BEST_FIT: best_fit,
    PACKING: packing,
}
#: From points of nodes with room to scores, where these differ.
_FINAL: Final = {BEST_FIT: spread, CUTTING_STOCK: ranked}


class GpuSharing(FilterPlugin, ScorePlugin):
    name = "GpuSharing"
    scope = Scope.NODE
    reasons = (NO_DEVICE,)
    depends_on = ASPECTS
    normalizes = True
    fixes_ties = True

    def __init__(self, args: GpuSharingArgs, cluster: Cluster) -> None:
        self._cluster = cluster
        self._args = args
        self._strategy = self._args.strategy
        self._ledger = GpuLedger(cluster, self._args)
        self._learns = not self._args.workload and self._strategy in EXPECTING
        self._learnt_from = 0
        self._version = 0
        self._expect([(shape.demand, shape.weight) for shape in args.workload])

    def registrations(self) -> Sequence[Registration]:
        offers = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL
        gone = Registration(Trigger(POD.resource, Action.DELETE), self._pod_gone)
        return (gone, Registration(Trigger(NODE.resource, offers)))

    def share_key(self, pod: PodInfo) -> Hashable:
        return self._ledger.demand(pod.cls)

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:
        """Changes when the expected pods change."""
        if self._learns:
            self._ledger.refresh()
            placed = self._ledger.total_demands.total()
            if not self._learnt_from <= placed * LEARN_AGAIN <= self._learnt_from * LEARN_AGAIN**2:
                self._expect(self._ledger.total_demands.most_common(SHAPES_MAX))
                self._learnt_from = placed
                self._version += 1
        return self._version

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        demand = self._ledger.demand(pod.cls)
        if not demand.number:
            return np.zeros(nodes.size, dtype=np.int32)
        return (~has_devices(self._ledger.shares(nodes), demand)).astype(np.int32)

    def _pod_gone(self, _pod: Pod, old: Pod, _new: Pod | None) -> Hint:
        freed = self._ledger.demand(self._cluster.classes.class_of(old))
        return Hint.QUEUE if old.spec.node_name and freed.number else Hint.SKIP

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        demand = self._ledger.demand(pod.cls)
        shares = self._ledger.shares(nodes)
        raw = np.full(nodes.size, NEVER, dtype=np.int64)
        fitting = np.flatnonzero(fits(shares, demand))
        if self._strategy == CLUSTERING:
            found = clustering(shares, demand, *self._ledger.kinds(nodes, demand))
            raw[fitting] = found[fitting]
            return raw
        for start in range(0, len(fitting), BLOCK_ROWS):
            rows = fitting[start : start + BLOCK_ROWS]
            raw[rows] = self._raw(shares.take(rows), demand)
        return raw

    def normalize(self, raw: I64, data: Any) -> I64:
        has_room = raw > NEVER
        found = np.zeros(len(raw), dtype=np.int64)
        if has_room.any():
            final = _FINAL.get(self._strategy)
            found[has_room] = raw[has_room] if final is None else final(raw[has_room])
        return found

    def _raw(self, shares: GpuShares, demand: GpuDemand) -> I64:
        simple = _SIMPLE.get(self._strategy)
        if simple is not None:
            return simple(shares, demand)
        if self._strategy == CUTTING_STOCK:
            ways = placements(shares, demand)
            costs = self._stock.costs(shares, demand, ways)
            scores = np.rint(-STEPS * costs).astype(np.int64)
        else:
            ways, gradient = self._fragmentation.gradient(shares, demand)
            scores = descent_points(gradient)
        index, _ = best_of(ways, scores, len(shares.cpu))
        return scores[index]

    def _expect(self, counts: Sequence[tuple[GpuDemand, int]]) -> None:
        if self._strategy == CUTTING_STOCK:
            self._stock = Stock(counts)
        elif self._strategy == FRAGMENTATION_GRADIENT_DESCENT:
            self._fragmentation = Fragmentation(expected(counts))
