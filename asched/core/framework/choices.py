"""Choices for Reserve other than the first possible one.

Of the devices and volumes that satisfy a pod's claims Reserve takes the first, as kube-scheduler
does. Other choices may leave more for the rest of its gang: the search for places asks for their
number (`ReservePlugin.choices`) and selects one here, during the search and the trial of its
result.
"""

from collections.abc import Mapping
from typing import Final

from asched.core.cluster.cluster import Cluster

#: Number of choices tried for each pod on a node. A guess.
CHOICES_MAX: Final = 64


class Choices:
    """For `Cluster.singleton`."""

    def __init__(self, _cluster: Cluster) -> None:
        self._numbers: dict[str, tuple[str, Mapping[str, int]]] = {}  # by pod uid

    def insist(self, uid: str, node: str, numbers: Mapping[str, int]) -> None:
        """Select the choice of each plugin for a pod on a node, counted from 0."""
        if any(numbers.values()):
            self._numbers[uid] = node, numbers

    def drop(self, uid: str) -> None:
        self._numbers.pop(uid, None)

    def number(self, uid: str, node: str, plugin: str) -> int:
        """The selected choice."""
        where, numbers = self._numbers.get(uid, ("", {}))
        return numbers.get(plugin, 0) if where == node else 0
