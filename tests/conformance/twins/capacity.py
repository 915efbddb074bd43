"""CapacityScheduling by hand: quotas of namespaces, and who has to go from a node.

Read off kubernetes-sigs/scheduler-plugins pkg/capacityscheduling (PreFilter, SelectVictimsOnNode),
in plain numbers: an amount is a mapping of resources, everything is summed anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Amounts = Mapping[str, int]

NATIVE = ("cpu", "memory", "ephemeral-storage")
NO_LIMIT = 1 << 63


@dataclass(frozen=True)
class Quota:
    """None: the list is not given."""

    min: Amounts | None
    max: Amounts | None


@dataclass(frozen=True)
class Pod:
    name: str
    namespace: str
    priority: int
    asks: Amounts
    node: str = ""
    nominated: str = ""


def plus(*parts: Amounts) -> dict[str, int]:
    return {r: sum(part.get(r, 0) for part in parts) for part in parts for r in part}


def is_more(one: Amounts, other: Amounts, limit: Amounts, missing: int) -> bool:
    """Natives are always compared; of the others those that `one` names."""
    for resource in NATIVE:
        if one.get(resource, 0) + other.get(resource, 0) > limit.get(resource, 0):
            return True
    for resource in set(one) - set(NATIVE):
        bound = limit.get(resource, missing)
        if one[resource] + other.get(resource, 0) > bound:
            return True
    return False


class State:
    def __init__(self, quotas: Mapping[str, Quota], pods: Sequence[Pod]) -> None:
        self.quotas = quotas
        self.placed = [pod for pod in pods if pod.node]
        self.nominated = [pod for pod in pods if pod.nominated and not pod.node]

    def used(self, namespace: str, gone: Iterable[Pod] = ()) -> dict[str, int]:
        left = [p for p in self.placed if p.namespace == namespace and p not in gone]
        return plus({}, *(pod.asks for pod in left))

    def min_of(self, namespace: str) -> Amounts:
        return self.quotas[namespace].min or {}

    def is_over_min(self, namespace: str, more: Amounts, gone: Iterable[Pod] = ()) -> bool:
        used = self.used(namespace, gone)
        if not more:
            return is_more(used, {}, self.min_of(namespace), 0)
        return is_more(more, used, self.min_of(namespace), 0)

    def is_over_max(self, namespace: str, more: Amounts, gone: Iterable[Pod] = ()) -> bool:
        most = self.quotas[namespace].max
        if most is None:
            most = dict.fromkeys(NATIVE, NO_LIMIT)
        return is_more(more, self.used(namespace, gone), most, NO_LIMIT)

    def is_over_all(self, more: Amounts, gone: Iterable[Pod] = ()) -> bool:
        used = plus({}, *(self.used(namespace, gone) for namespace in self.quotas))
        guaranteed = plus({}, *(self.min_of(namespace) for namespace in self.quotas))
        return is_more(plus(used, more), {}, guaranteed, 0)

    def wanted(self, pod: Pod) -> tuple[Amounts, Amounts]:
        ours, everybodys = dict(pod.asks), dict(pod.asks)
        for other in self.nominated:
            if other.name == pod.name or other.namespace not in self.quotas:
                continue
            if other.namespace == pod.namespace:
                if other.priority >= pod.priority:
                    ours, everybodys = plus(ours, other.asks), plus(everybodys, other.asks)
            elif not self.is_over_min(other.namespace, {}):
                everybodys = plus(everybodys, other.asks)
        return ours, everybodys

    def refuses(self, pod: Pod) -> str:
        """ "max", "min" or nothing."""
        if pod.namespace not in self.quotas:
            return ""
        ours, everybodys = self.wanted(pod)
        if self.is_over_max(pod.namespace, ours):
            return "max"
        return "min" if self.is_over_all(everybodys) else ""

    def victims(self, pod: Pod, node: str, room: Amounts) -> set[str] | None:
        """Who has to go from a node that offers so much; None if that does not help."""
        here = sorted((p for p in self.placed if p.node == node), key=lambda p: p.priority)
        has_quota = pod.namespace in self.quotas
        ours, everybodys = self.wanted(pod)
        borrows = has_quota and self.is_over_min(pod.namespace, ours)
        gone: list[Pod] = []
        for one in here:
            if has_quota and one.namespace in self.quotas:
                if borrows:
                    goes = one.namespace == pod.namespace and one.priority < pod.priority
                else:
                    goes = one.namespace != pod.namespace
                    goes = goes and self.is_over_min(one.namespace, {}, gone)
            else:
                goes = not has_quota and one.namespace not in self.quotas
                goes = goes and one.priority < pod.priority
            if goes:
                gone.append(one)
        if not gone or not self._fits(pod, here, gone, room):
            return None
        if has_quota and self._is_over(pod, pod.asks, pod.asks, gone):
            return None
        for one in sorted(gone, key=lambda p: -p.priority):
            left = [other for other in gone if other is not one]
            fits = self._fits(pod, here, left, room)
            if fits and not (has_quota and self._is_over(pod, ours, everybodys, left)):
                gone = left
        return {one.name for one in gone}

    def _is_over(self, pod: Pod, ours: Amounts, everybodys: Amounts, gone: list[Pod]) -> bool:
        return self.is_over_max(pod.namespace, ours, gone) or self.is_over_all(everybodys, gone)

    def _fits(self, pod: Pod, here: Sequence[Pod], gone: Sequence[Pod], room: Amounts) -> bool:
        used = plus(pod.asks, *(one.asks for one in here if one not in gone))
        return all(amount <= room.get(resource, 0) for resource, amount in used.items())
