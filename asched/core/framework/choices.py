"""What Reserve is to choose for pods, where it is not the first that will do.

Of all devices and volumes that serve a pod's claims Reserve takes the first, as kube-scheduler
does. Others may leave more to the rest of its gang: the search for places asks how many there are
(`ReservePlugin.choices`), and says here which of them it means, for as long as it and the trial of
what it found last.
"""

from collections.abc import Mapping
from typing import Final

from asched.core.state.cluster import Cluster

#: So many of them are tried for each pod on a node. A guess.
CHOICES_MAX: Final = 64


class Choices:
    """For `Cluster.singleton`."""

    def __init__(self, _cluster: Cluster) -> None:
        self._numbers: dict[str, tuple[str, Mapping[str, int]]] = {}  # by pod uid

    def insist(self, uid: str, node: str, numbers: Mapping[str, int]) -> None:
        """On a node, a pod gets this one from each plugin, counted from 0."""
        if any(numbers.values()):
            self._numbers[uid] = node, numbers

    def drop(self, uid: str) -> None:
        self._numbers.pop(uid, None)

    def number(self, uid: str, node: str, plugin: str) -> int:
        """Which one it gets."""
        where, numbers = self._numbers.get(uid, ("", {}))
        return numbers.get(plugin, 0) if where == node else 0
