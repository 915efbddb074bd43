"""Counts of the operations that updated cached results."""

from asched.core.cluster.nodes import NodeTable
from asched.core.cluster.view import NodeView
from asched.core.framework.meter import Meter


class OperationCounts:
    """Counts of operations since the start, for benchmarks and regression tests. `meter`, if set,
    times plugins.
    """

    def __init__(self) -> None:
        self.meter: Meter | None = None
        self.full_passes = 0
        self.row_passes = 0
        self.rows = 0
        self._view: NodeView | None = None

    def all_rows(self, nodes: NodeTable) -> NodeView:
        """The view of all rows of the node table, reused while no row comes or goes: a pod of the
        row different makes 517 calls; with a new view each time 522.
        """
        view = self._view
        if view is None or view.size != nodes.height:
            view = self._view = NodeView(nodes)
        return view
