"""The NUMA zones of all rows as columns, and whether a request fits into one of them.

    NodeResourceTopology ──> write(row) ──> available [Z, N] per resource, costs [Z, Z, N]

A place on axis Z is the zone's rank by its number. What the cache subtracts for pods that no agent
has reported yet is subtracted from every zone, and never below zero.

Source  kubernetes-sigs/scheduler-plugins pkg/noderesourcetopology/filter.go
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from asched.hardware.numa.demand import NumaDemand, Request, is_affine, is_host_level
from asched.hardware.numa.topology import (
    NUMA_NODE,
    POD,
    SINGLE_NUMA_NODE,
    NodeResourceTopology,
    TopologyZone,
    manager_of,
    units,
    zone_number,
)
from asched.hardware.rows import Mask
from asched.plugin import I64, NodeView

#: In place of an amount: the zone does not list the resource.
NOT_LISTED: Final = -1
#: Cost of zones without costs.
FARTHEST: Final = 255
ALWAYS_OFFERED: Final = ("cpu", "memory", "pods", "ephemeral-storage")


class Zones:
    """M rows, Z at least 1. `available[resource]` is int64[Z, M], NOT_LISTED where a zone does not
    list it.
    """

    def __init__(self, size: int, width: int) -> None:
        self.count: I64 = np.zeros(size, dtype=np.int64)
        self.costs: I64 = np.full((width, width, size), FARTHEST, dtype=np.int64)
        self.available: dict[str, I64] = {}
        self.is_single: Mask = np.zeros(size, dtype=np.bool_)
        self.is_pod_scope: Mask = np.zeros(size, dtype=np.bool_)
        self.zones_max: I64 = np.full(size, 8, dtype=np.int64)

    @property
    def width(self) -> int:
        return len(self.costs)

    @property
    def size(self) -> int:
        return len(self.count)

    def take(self, rows: npt.NDArray[Any]) -> "Zones":
        """A copy of these positions."""
        found = Zones(0, self.width)
        found.count, found.costs = self.count[rows], self.costs[:, :, rows]
        found.available = {name: held[:, rows] for name, held in self.available.items()}
        found.is_single, found.is_pod_scope = self.is_single[rows], self.is_pod_scope[rows]
        found.zones_max = self.zones_max[rows]
        return found

    def reserve(self, size: int, width: int) -> None:
        """Grow the arrays; new entries are empty."""
        rows, zones = max(size - self.size, 0), max(width - self.width, 0)
        if not rows and not zones:
            return
        self.count = np.pad(self.count, (0, rows))
        self.is_single = np.pad(self.is_single, (0, rows))
        self.is_pod_scope = np.pad(self.is_pod_scope, (0, rows))
        self.zones_max = np.pad(self.zones_max, (0, rows), constant_values=8)
        aside = ((0, zones), (0, zones), (0, rows))
        self.costs = np.pad(self.costs, aside, constant_values=FARTHEST)
        for name, held in self.available.items():
            self.available[name] = np.pad(held, aside[1:], constant_values=NOT_LISTED)

    def write(
        self, row: int, topology: NodeResourceTopology, taken: Iterable[Mapping[str, int]]
    ) -> None:
        """Set the zones of a row, reduced by the demands of these pods. Of two zones with the same
        number the first counts.
        """
        manager, by_number = manager_of(topology), dict[int, TopologyZone]()
        for zone in topology.zones or ():
            number = zone_number(zone.name) if zone.type == NUMA_NODE else None
            if number is not None:
                by_number.setdefault(number, zone)
        zones = sorted(by_number.items())
        self.reserve(row + 1, len(zones))
        self.count[row] = len(zones)
        self.is_single[row] = manager.policy == SINGLE_NUMA_NODE
        self.is_pod_scope[row] = manager.scope == POD
        self.zones_max[row] = manager.zones_max
        self.costs[:, :, row] = FARTHEST
        for held in self.available.values():
            held[:, row] = NOT_LISTED
        for at, (_, zone) in enumerate(zones):
            costs = {zone_number(cost.name): cost.value for cost in zone.costs or ()}
            for to, (number, _) in enumerate(zones):
                self.costs[at, to, row] = costs.get(number, FARTHEST)
            for resource in zone.resources or ():
                column = self.available.setdefault(resource.name, self.of(resource.name))
                column[at, row] = max(units(resource.name, resource.available), 0)
        for demand in taken:
            for name, amount in demand.items():
                if name in self.available:
                    column = self.available[name]
                    listed = column[:, row] != NOT_LISTED
                    column[listed, row] = np.maximum(column[listed, row] - amount, 0)

    def of(self, resource: str) -> I64:
        """int64[Z, M]."""
        held = self.available.get(resource)
        if held is None:
            return np.full((self.width, self.size), NOT_LISTED, dtype=np.int64)
        return held


class Alignment:
    """One pod against zones; `offered(resource)` is bool[M]: nodes that offer it at all."""

    def __init__(self, zones: Zones, nodes: NodeView, demand: NumaDemand) -> None:
        self._zones = zones
        self._nodes = nodes
        self._guaranteed = demand.is_guaranteed
        self.size = zones.size

    def fits(self, request: Request) -> tuple[Mask, I64]:
        """bool[M]: some zone has room for all of it; int64[M]: the lowest such zone."""
        places = np.ones((self._zones.width, self.size), dtype=np.bool_)
        fine = np.ones(self.size, dtype=np.bool_)
        for name, amount in request.items():
            if not amount:
                continue
            fine &= self._offered(name)
            held = self._zones.of(name)
            listed = held != NOT_LISTED
            enough = listed if self._takes_anywhere(name) else listed & (held >= amount)
            if is_host_level(name):
                enough = enough | ~listed.any(axis=0)
            places &= enough
        return fine & places.any(axis=0), places.argmax(axis=0).astype(np.int64)

    def subtract(self, request: Request, at: I64, where: Mask) -> None:
        """Subtract a request from the chosen zone of each of these rows."""
        rows = np.flatnonzero(where)
        for name, amount in request.items():
            held = self._zones.available.get(name)
            if held is None or not amount or self._takes_anywhere(name):
                continue
            chosen = at[rows]
            listed = held[chosen, rows] != NOT_LISTED
            held[chosen[listed], rows[listed]] -= amount

    def _takes_anywhere(self, name: str) -> bool:
        return not self._guaranteed and is_affine(name)

    def _offered(self, name: str) -> Mask | bool:
        if name in ALWAYS_OFFERED:
            return True
        resource = self._nodes.table.find_resource(name)
        return False if resource is None else self._nodes.allocatable(resource) > 0


def aligned_containers(alignment: Alignment, demand: NumaDemand) -> tuple[Mask, Mask]:
    """bool[M] twice: whether each init container alone fits into a zone; whether each other
    container does, after those before it. False for a pod that `is_beyond`. Its zones are modified.
    """
    inits = np.ones(alignment.size, dtype=np.bool_)
    if demand.is_beyond:
        return inits, ~inits
    for request in demand.inits:
        inits &= alignment.fits(request)[0]
    containers = np.ones(alignment.size, dtype=np.bool_)
    for request in demand.containers:
        fits, at = alignment.fits(request)
        containers &= fits
        alignment.subtract(request, at, containers)
    return inits, containers
