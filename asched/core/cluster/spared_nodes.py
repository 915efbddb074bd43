"""Nodes that are left out for a pod for some time.

Bounds  so many pods; the least recently used are dropped.
"""

from collections.abc import Collection

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.model.arrays import I64
from asched.core.model.lru import Lru


class SparedNodes:
    """By uid of a pod. `pause_s`: how long a node is left out."""

    def __init__(self, cluster: Cluster, pods_max: int, pause_s: float) -> None:
        self._cluster, self._pause_s = cluster, pause_s
        #: uid -> node -> until when, in steady seconds
        self._until_s: Lru[str, dict[str, float]] = Lru(pods_max)

    def __len__(self) -> int:
        return len(self._until_s)

    def add(self, uid: str, node: str) -> None:
        """Leave a node out from now on, if it is not."""
        now_s = self._cluster.steady_s
        known = {name: end_s for name, end_s in self._until_s_of(uid).items() if end_s > now_s}
        known.setdefault(node, now_s + self._pause_s)
        self._until_s.put(uid, known)

    def forget(self, uid: str) -> None:
        self._until_s.pop(uid)

    def names(self, uid: str) -> Collection[str]:
        """The nodes that are left out now."""
        now_s = self._cluster.steady_s
        return [node for node, end_s in self._until_s_of(uid).items() if end_s > now_s]

    def rows(self, uid: str) -> I64:
        """The rows of those that exist."""
        row_of = self._cluster.nodes.row_of
        return np.array([row_of[node] for node in self.names(uid) if node in row_of], np.int64)

    def _until_s_of(self, uid: str) -> dict[str, float]:
        return self._until_s.get(uid) or {}
