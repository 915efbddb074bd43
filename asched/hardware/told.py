"""Rows about whose objects something was told: what plugins derive from objects of one kind that
are called like nodes, brought up to date like anything else that is kept by row.
"""

from asched.core.model.kinds import Kind
from asched.plugin import Cluster, RowLog


class ToldRows(RowLog):
    """A log for `ByRow`; `follow` it before each update."""

    __slots__ = ("_cluster", "_kind", "_seen")

    def __init__(self, cluster: Cluster, kind: Kind) -> None:
        super().__init__()
        self._cluster = cluster
        self._kind = kind
        self._seen = cluster.object_log.end

    def follow(self) -> None:
        """Take in what was told since."""
        log = self._cluster.object_log
        if log.end == self._seen:
            return
        told = log.since(self._seen)
        self._seen = log.end
        if told is None:
            self.forget()
            return
        row_of, mine = self._cluster.nodes.row_of, self._kind.resource
        for resource, name in told:
            row = row_of.get(name) if resource == mine else None
            if row is not None:
                self.add(row, 1)
