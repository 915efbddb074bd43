"""Cpu and memory of every node as floats, and how evenly they are used, cached for all pods.

Most pods are scored by these two resources. Where every node offers both, in amounts that floats
represent exactly, scoring one more pod is an addition and a division, without checks for overflow
or empty nodes. What does not depend on the pod is cached per row, and recomputed for rows where
pods came or went, or the node's amounts changed.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.view import NodeView
from asched.core.framework.results.by_row import ByRow, Rows
from asched.core.plugins.scoring.amounts import default_amounts
from asched.core.plugins.scoring.balanced_allocation import balance, balance_one
from asched.core.plugins.scoring.blocks import by_blocks
from asched.core.plugins.scoring.quotient import EXACT_MAX

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

ASPECTS: Final = int(Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE)
#: Twice a hundred times this is an exact float.
AMOUNT_MAX: Final = EXACT_MAX // 200


class AsFloats(ByRow[None]):
    """`parts` float64[2, N] is the result of `part_of` for (requested, allocatable), both as
    floats.
    """

    __slots__ = ("_nonzero", "_part_of", "is_plain", "offered", "parts")

    def __init__(
        self, cluster: Cluster, part_of: Callable[[Any, Any], Any], *, nonzero: bool
    ) -> None:
        """`nonzero`: requested with the defaults for containers without requests."""
        super().__init__(cluster.nodes, ASPECTS)
        self._part_of = part_of
        self._nonzero = nonzero
        self.parts: F64 = np.zeros((2, 0))
        #: float64[2, N]; 1 for a row without a node
        self.offered: F64 = np.zeros((2, 0))
        #: whether every node offers both, in amounts up to AMOUNT_MAX; else the rest is not
        #: computed
        self.is_plain = False

    def serves(self, amounts: Sequence[int]) -> bool:
        """Bring this up to date; whether a pod of such amounts can be scored by it."""
        self.update(None)
        return self.is_plain and max(amounts) <= AMOUNT_MAX

    def of(self, nodes: NodeView) -> tuple[F64, F64]:
        """(parts, offered) for the rows of a view."""
        rows = slice(None) if nodes.rows is None else nodes.rows
        return self.parts[:, rows], self.offered[:, rows]

    def _make_all(self, _: None) -> None:
        view = NodeView(self._nodes)
        requested, allocatable = default_amounts(view, nonzero=self._nonzero)
        lacking = allocatable <= 0
        most = max(requested.max(initial=0), allocatable.max(initial=0))
        self.is_plain = bool(most <= AMOUNT_MAX and not (lacking & view.live).any())
        if self.is_plain:
            self.offered = np.where(lacking, 1.0, allocatable)
            self.parts = self._part_of(requested.astype(np.float64), self.offered)

    def _make_rows(self, _: None, rows: Rows) -> bool:
        columns = self._nodes.columns
        requested = columns.read("nonzero" if self._nonzero else "requested")
        allocatable, live = columns.read("allocatable"), columns.read("live")
        for row in rows:
            for at in (0, 1):
                held, offered = float(requested.item(at, row)), float(allocatable.item(at, row))
                if offered <= 0.0 and not live.item(row):
                    offered = 1.0
                if not (self.is_plain and 0.0 < offered <= AMOUNT_MAX and held <= AMOUNT_MAX):
                    return False
                self.offered[at, row] = offered
                self.parts[at, row] = self._part_of(held, offered)
        return True


class Evenness(AsFloats):
    """The half of the balanced-allocation score that does not depend on the pod: the balance of the
    node without it. `parts` are the requested amounts.
    """

    __slots__ = ("values",)

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, lambda held, _: held, nonzero=False)
        #: int64[N] in 0..100, where `is_plain`
        self.values: I64 = np.zeros(0, dtype=np.int64)

    def _make_all(self, _: None) -> None:
        super()._make_all(None)
        if self.is_plain:
            requested, allocatable = default_amounts(NodeView(self._nodes), nonzero=False)
            self.values = by_blocks(balance, requested, np.maximum(allocatable, 1))

    def _make_rows(self, _: None, rows: Rows) -> bool:
        if not super()._make_rows(None, rows):
            return False
        parts, offered = self.parts, self.offered
        for row in rows:
            held = (parts.item(0, row), parts.item(1, row))
            self.values[row] = balance_one(held, (offered.item(0, row), offered.item(1, row)))
        return True
