"""How evenly nodes are used as they are, kept for all pods that ask.

Half of the balanced-allocation score has nothing to do with the pod: the balance of the node
without it. It is kept per row and made anew where pods came or went, or the node's amounts changed.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.framework.results.by_row import ByRow, Rows
from asched.core.plugins.scoring.amounts import default_amounts
from asched.core.plugins.scoring.balanced_allocation import balance
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
        at = np.array(rows, dtype=np.int32)
        requested, allocatable = default_amounts(NodeView(self._nodes, at), nonzero=False)
        self._values[at] = balance(requested, allocatable)
        return True
