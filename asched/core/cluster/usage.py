"""Resource usage by namespace, of placed pods and of held places for future pods; and the number of
placed pods by priority.

Bounds  an entry for each namespace with placed pods, and for each resource that they use.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final

from asched.core.cluster.pods import PodInfo

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


class Priorities(Counter[int]):
    def down(self, priority: int) -> None:
        """Remove one pod; the lowest priority is found by a scan."""
        self[priority] -= 1
        if not self[priority]:
            del self[priority]

    def are_below(self, priority: int) -> bool:
        """Whether any pod has a lower priority."""
        return any(other < priority for other in self)


class NamespaceUsage:
    """Amounts as in `PodClass.accounted`, of pods by uid; maintained from the first use on."""

    def __init__(
        self,
        placed: Mapping[str, PodInfo],
        held: Callable[[], Iterable[PodInfo]] = tuple,
    ) -> None:
        self._placed = placed
        self._held = held
        self._is_kept = False
        self._by_namespace: dict[str, Counter[str]] = {}
        self._counted: set[str] = set()
        #: the total usage of the namespaces that count; read-only
        self.together: Counter[str] = Counter()

    def kept(self) -> "NamespaceUsage":
        """The object itself, maintained from now on."""
        if not self._is_kept:
            self._is_kept = True
            for info in chain(self._placed.values(), self._held()):
                self.move(info, 1)
        return self

    def of(self, namespace: str) -> Mapping[str, int]:
        return self._by_namespace.get(namespace, _NOTHING)

    def count(self, namespace: str, *, counts: bool) -> None:
        """Set whether a namespace is part of the total."""
        if counts == (namespace in self._counted):
            return
        if counts:
            self._counted.add(namespace)
        else:
            self._counted.discard(namespace)
        for name, amount in self.of(namespace).items():
            _add(self.together, name, amount if counts else -amount)

    def move(self, info: PodInfo, sign: int) -> None:
        self.add(info.pod.metadata.namespace, info.cls.accounted, sign)

    def add(self, namespace: str, amounts: Mapping[str, int], sign: int) -> None:
        """Add or remove usage of a namespace."""
        if not self._is_kept:
            return
        used = self._by_namespace.setdefault(namespace, Counter())
        counts = namespace in self._counted
        for name, amount in amounts.items():
            _add(used, name, sign * amount)
            if counts:
                _add(self.together, name, sign * amount)
        if not used:  # no placed pods, or none with requests
            del self._by_namespace[namespace]


def _add(total: Counter[str], name: str, amount: int) -> None:
    total[name] += amount
    if not total[name]:
        del total[name]
