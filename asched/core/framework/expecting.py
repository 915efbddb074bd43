"""Pods for which room is being made on a node, by key and by node."""

from collections.abc import Collection, Mapping
from typing import Final


class Expecting:
    """Pods for which room is being made, by key, each on one node; indexed both ways, since it is
    read for every pod that leaves a node.
    """

    def __init__(self, nodes: Mapping[str, str] | None = None) -> None:
        #: Key of a pod -> name of the node. Read-only outside.
        self.node_of: dict[str, str] = {}
        self._keys_at: dict[str, set[str]] = {}
        for key, node in (nodes or {}).items():
            self.put(key, node)

    def put(self, key: str, node: str) -> None:
        self.drop(key)
        self.node_of[key] = node
        self._keys_at.setdefault(node, set()).add(key)

    def drop(self, key: str) -> None:
        """Remove a pod; unknown keys are ignored."""
        node = self.node_of.pop(key, None)
        if node is not None:
            keys = self._keys_at[node]
            keys.discard(key)
            if not keys:
                del self._keys_at[node]

    def keys_at(self, node: str) -> Collection[str]:
        return self._keys_at.get(node, ())

    def __len__(self) -> int:
        return len(self.node_of)


NONE_EXPECTED: Final = Expecting()
