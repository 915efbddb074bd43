"""How evenly nodes are used as they are, kept for all pods that ask.

Half of the balanced-allocation score has nothing to do with the pod: the balance of the node
without it. It is kept per row and made anew where pods came or went, or the node's amounts changed.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.framework.results.cached import changed_rows
from asched.core.plugins.scoring.amounts import default_amounts
from asched.core.plugins.scoring.balanced_allocation import balance
from asched.core.plugins.scoring.blocks import by_blocks
from asched.core.state.cluster import Cluster
from asched.core.state.nodes import Aspect
from asched.core.state.view import NodeView

I64 = npt.NDArray[np.int64]

ASPECTS: Final = int(Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE)


class Evenness:
    """The balance between cpu and memory of every node, 0..100."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._cursor = -1
        self._values: I64 = np.zeros(0, dtype=np.int64)

    def of_all(self) -> I64:
        """int64[N] for all rows; not to be written to."""
        nodes = self._cluster.nodes
        rows = None
        if self._cursor >= 0 and len(self._values) == nodes.height:
            rows = changed_rows(self._cluster, self._cursor, ASPECTS)
        if rows is None:
            requested, allocatable = default_amounts(NodeView(nodes), nonzero=False)
            self._values = by_blocks(balance, requested, allocatable)
        elif len(rows):
            requested, allocatable = default_amounts(NodeView(nodes, rows), nonzero=False)
            self._values[rows] = balance(requested, allocatable)
        self._cursor = nodes.log.end
        return self._values
