"""What placed pods ask for, by namespace; and how many of them have which priority.

Bounds  an entry for each namespace with placed pods, and for each resource that they name.
"""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from asched.core.state.pods import PodInfo

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


class Priorities(Counter[int]):
    def down(self, priority: int) -> None:
        """One pod less; whoever asks for the least looks at all of them."""
        self[priority] -= 1
        if not self[priority]:
            del self[priority]

    def are_below(self, priority: int) -> bool:
        """Whether any pod is less important."""
        return any(one < priority for one in self)


class Usage:
    """Amounts as in `PodClass.accounted`, of pods by uid; kept from when somebody first asks."""

    def __init__(self, placed: Mapping[str, PodInfo]) -> None:
        self._placed = placed
        self._is_kept = False
        self._by_namespace: dict[str, Counter[str]] = {}

    def kept(self) -> "Usage":
        """Itself, kept from now on."""
        if not self._is_kept:
            self._is_kept = True
            for info in self._placed.values():
                self.move(info, 1)
        return self

    def of(self, namespace: str) -> Mapping[str, int]:
        return self._by_namespace.get(namespace, _NOTHING)

    def move(self, info: PodInfo, sign: int) -> None:
        if not self._is_kept:
            return
        namespace = info.pod.metadata.namespace
        used = self._by_namespace.setdefault(namespace, Counter())
        for name, amount in info.cls.accounted.items():
            used[name] += sign * amount
            if not used[name]:
                del used[name]
        if not used:  # nobody is placed there, or nobody asks for anything
            del self._by_namespace[namespace]
