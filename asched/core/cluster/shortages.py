"""Groups whose `minResources` are not free, by the free amounts of all nodes together.

Source  kubernetes-sigs/scheduler-plugins pkg/coscheduling/core (CheckClusterResource)
Bounds  SHORT_MAX groups are remembered; a sum over the nodes for each resource after each change.
"""

from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import Final

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.model.arrays import Mask
from asched.core.model.lru import Lru
from asched.core.model.quantity import Quantity, QuantityError
from asched.core.model.requests import PODS, nano, to_units, written

#: Groups whose shortage is remembered; the one noted first goes.
SHORT_MAX: Final = 4_096
#: Resources that a message names.
NAMED_MAX: Final = 10


def amounts_of(resources: Mapping[str, Quantity]) -> dict[str, int]:
    """`minResources` in the units of the columns; pods are counted otherwise. What cannot be read
    is nothing.
    """
    exact = {}
    for name, quantity in resources.items():
        with suppress(QuantityError):
            exact[name] = nano(quantity)
    return {n: a for n, a in to_units(exact).items() if a > 0 and n != PODS}


class Shortages:
    """Groups that could start but for their `minResources`: for `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._wanted: Lru[str, dict[str, int]] = Lru(SHORT_MAX)
        self._totals: dict[str, float] = {}
        self._totals_at = -1

    def note(self, key: str, wanted: Mapping[str, int]) -> None:
        """All that the group's pods and its minResources need together, by resource."""
        self._wanted.put(key, dict(wanted))

    def drop(self, key: str) -> None:
        self._wanted.pop(key)

    def may_fit(self, key: str) -> bool:
        """Whether the free amounts of all nodes together suffice now, or nothing is known of it."""
        wanted = self._wanted.get(key)
        return wanted is None or all(self.free(n) >= amount for n, amount in wanted.items())

    def that_may_fit(self) -> list[str]:
        return [key for key in self._wanted if self.may_fit(key)]

    def __contains__(self, key: str) -> bool:
        return key in self._wanted

    def free(self, name: str) -> float:
        """How much of a resource is left on all nodes that take pods."""
        if self._totals_at != self._cluster.nodes.log.end:
            self._totals_at = self._cluster.nodes.log.end
            self._totals.clear()
        total = self._totals.get(name)
        if total is None:
            place = self._cluster.nodes.find_resource(name)
            if place is None:
                return 0.0
            total = self._totals[name] = self._sum(place)
        return total

    def _sum(self, place: int) -> float:
        nodes = self._cluster.nodes
        read, height = nodes.columns.read, nodes.height
        takes: Mask = read("live")[:height] & ~read("unschedulable")[:height]
        takes = takes & (read("pod_count")[:height] < read("allowed_pods")[:height])
        free = read("allocatable")[place, :height] - read("requested")[place, :height]
        return float(np.where(takes, np.maximum(free, 0), 0).sum(dtype=np.float64))


def amounts_text(amounts: Mapping[str, int]) -> str:
    """As an event names them."""
    some = [
        f"{name} {written(name, amount)}" for name, amount in islice(amounts.items(), NAMED_MAX)
    ]
    more = len(amounts) - len(some)
    return ", ".join(some) + (f" and {more} more" if more else "")
