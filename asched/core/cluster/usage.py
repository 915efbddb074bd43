"""What placed pods use: resources by namespace (held places for future pods included), host ports
and volume claims; and the number of placed pods by priority.

Bounds  an entry for each namespace with placed pods, and for each resource that they use.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final

from asched.core.cluster.pods import PodInfo

#: (protocol, port) -> address -> users, on one row.
PortsUsed = dict[tuple[str, int], dict[str, int]]

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
        self.is_kept = False  #: whether it is in use
        self._by_namespace: dict[str, Counter[str]] = {}
        self._counted: set[str] = set()
        #: the total usage of the namespaces that count; read-only
        self.together: Counter[str] = Counter()

    def kept(self) -> "NamespaceUsage":
        """The object itself, maintained from now on."""
        if not self.is_kept:
            self.is_kept = True
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
        if not self.is_kept:
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


class Occupancy:
    """`ports[protocol, port][row][ip]` and `claims["namespace/name"][row]` count the pods that use
    them.
    """

    def __init__(self) -> None:
        self.ports: dict[tuple[str, int], dict[int, dict[str, int]]] = {}
        self.claims: dict[str, dict[int, int]] = {}

    def move(self, info: PodInfo, row: int, amount: int, *, on_trial: bool = False) -> None:
        """A pod was added to (+1) or left (-1) a row.

        In a trial a port is free as soon as one of its users leaves, as upstream (two pods should
        not have it anyway); `ports_of` and `put_back` undo that.
        """
        for ip, protocol, port in info.cls.host_ports:
            by_row = self.ports.setdefault((protocol, port), {})
            used = by_row.setdefault(row, {})
            used[ip] = max(amount, 0) if on_trial else used.get(ip, 0) + amount
            if not used[ip]:
                del used[ip]
            if not used:
                self._clear((protocol, port), row)
        for name in info.cls.claim_names:
            self._move_claim(f"{info.pod.metadata.namespace}/{name}", row, amount)

    def ports_of(self, infos: Iterable[PodInfo], row: int) -> PortsUsed:
        """The users, on a row, of the ports that these pods use."""
        keys = {(protocol, port) for i in infos for _, protocol, port in i.cls.host_ports}
        return {key: dict(self.ports.get(key, {}).get(row, ())) for key in keys}

    def put_back(self, saved: PortsUsed, row: int) -> None:
        """Restore the result of `ports_of`."""
        for key, used in saved.items():
            if used:
                self.ports.setdefault(key, {})[row] = used
            else:
                self._clear(key, row)

    def _clear(self, key: tuple[str, int], row: int) -> None:
        by_row = self.ports.get(key, {})
        by_row.pop(row, None)
        if not by_row:
            self.ports.pop(key, None)

    def _move_claim(self, key: str, row: int, amount: int) -> None:
        rows = self.claims.setdefault(key, {})
        rows[row] = rows.get(row, 0) + amount
        if not rows[row]:
            del rows[row]
        if not rows:
            del self.claims[key]
