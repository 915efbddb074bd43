"""How evenly nodes are used as they are, kept for all pods that ask.

Half of the balanced-allocation score has nothing to do with the pod: the balance of the node
without it. It is kept per row and made anew where pods came or went, or the node's amounts changed.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.framework.results.by_row import ROWS_FEW, ByRow, Rows
from asched.core.plugins.scoring.amounts import default_amounts
from asched.core.plugins.scoring.balanced_allocation import balance, balance_one
from asched.core.plugins.scoring.blocks import by_blocks
from asched.core.state.cluster import Cluster
from asched.core.state.nodes import Aspect
from asched.core.state.view import NodeView

I64 = npt.NDArray[np.int64]

ASPECTS: Final = int(Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE)


class Evenness(ByRow[None]):
    """The balance between cpu and memory of every node, 0..100."""

    __slots__ = ("_values",)

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.nodes, ASPECTS)
        self._values: I64 = np.zeros(0, dtype=np.int64)

    def of_all(self) -> I64:
        """int64[N] for all rows; not to be written to."""
        self.update(None)
        return self._values

    def _make_all(self, _: None) -> None:
        requested, allocatable = default_amounts(NodeView(self._nodes), nonzero=False)
        self._values = by_blocks(balance, requested, allocatable)

    def _make_rows(self, _: None, rows: Rows) -> bool:
        if len(rows) <= ROWS_FEW and self._make_few(rows):
            return True
        at = np.array(rows, dtype=np.int32)
        requested, allocatable = default_amounts(NodeView(self._nodes, at), nonzero=False)
        self._values[at] = balance(requested, allocatable)
        return True

    def _make_few(self, rows: Rows) -> bool:
        """In plain numbers; False if a node does not offer both resources."""
        read = self._nodes.columns.read
        requested, allocatable = read("requested"), read("allocatable")
        for row in rows:
            offered = (allocatable.item(0, row), allocatable.item(1, row))
            if not (offered[0] and offered[1]):
                return False
            held = (requested.item(0, row), requested.item(1, row))
            self._values[row] = balance_one(held, offered)
        return True
