"""A row log of changed objects: for values that plugins derive from objects of one kind with names
of nodes, so that they are updated like other values by row.
"""

from asched.core.model.kinds import Kind
from asched.plugin import Cluster, RowLog


class ChangedRows(RowLog):
    """A log for `ByRow`; call `follow` before each update."""

    __slots__ = ("_cluster", "_kind", "_seen")

    def __init__(self, cluster: Cluster, kind: Kind) -> None:
        super().__init__()
        self._cluster = cluster
        self._kind = kind
        self._seen = cluster.object_log.end

    def follow(self) -> None:
        """Process the changes since the last call."""
        log = self._cluster.object_log
        if log.end == self._seen:
            return
        changes = log.since(self._seen)
        self._seen = log.end
        if changes is None:
            self.forget()
            return
        row_of, own_resource = self._cluster.nodes.row_of, self._kind.resource
        for resource, name in changes:
            row = row_of.get(name) if resource == own_resource else None
            if row is not None:
                self.add(row, 1)
