"""The NUMA zones of all rows as columns, and whether a request fits into one of them.

    NodeResourceTopology ──> write(row) ──> available [Z, N] per resource, costs [Z, Z, N]

A place on axis Z is the zone's rank by its number. What the cache subtracts for pods that no agent
has reported yet is subtracted from every zone, and never below zero.

Source  kubernetes-sigs/scheduler-plugins pkg/noderesourcetopology/filter.go
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, partial
from itertools import combinations
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from asched.core.model.kinds import Kind
from asched.core.model.meta import ApiObject, Record
from asched.core.model.pod import Container, Pod
from asched.core.model.quantity import Quantity, check, milli, whole
from asched.core.model.requests import nano
from asched.hardware.rows import Mask
from asched.plugin import I64, NodeView

# NodeResourceTopology: the NUMA zones of a node, reported by an agent on it.
#
# Source  topology.node.k8s.io/v1alpha2; kubernetes-sigs/scheduler-plugins
#         pkg/noderesourcetopology/nodeconfig/topologymanager.go, pluginhelpers.go

CPU: Final = "cpu"
SINGLE_NUMA_NODE: Final = "single-numa-node"
POLICIES: Final = ("none", "best-effort", "restricted", SINGLE_NUMA_NODE)
CONTAINER, POD = "container", "pod"
FINGERPRINT: Final = "nodeTopologyPodsFingerprint"
FINGERPRINT_METHOD: Final = "nodeTopologyPodsFingerprintMethod"
EXCLUSIVE_METHOD: Final = "with-exclusive-resources"
FINGERPRINT_ANNOTATION: Final = "topology.node.k8s.io/fingerprint"
#: Zones with larger numbers are ignored.
ZONES_MAX: Final = 64
_NUMA_NODE: Final = "Node"
_NUMBERED: Final = "node-"
_LEGACY_POLICIES: Final = {
    "SingleNUMANodePodLevel": (SINGLE_NUMA_NODE, POD),
    "SingleNUMANodeContainerLevel": (SINGLE_NUMA_NODE, CONTAINER),
    "BestEffortPodLevel": ("best-effort", POD),
    "BestEffortContainerLevel": ("best-effort", CONTAINER),
    "RestrictedPodLevel": ("restricted", POD),
    "RestrictedContainerLevel": ("restricted", CONTAINER),
}


class Attribute(Record, frozen=True, gc=False):
    name: str = ""
    value: str = ""


class ZoneCost(Record, frozen=True, gc=False):
    name: str = ""
    value: int = 0


class ZoneResource(Record, frozen=True, gc=False):
    name: str = ""
    available: Quantity = 0


class TopologyZone(Record, frozen=True, gc=False):
    name: str = ""
    type: str = ""
    costs: tuple[ZoneCost, ...] | None = None
    resources: tuple[ZoneResource, ...] | None = None


class NodeResourceTopology(ApiObject, frozen=True, gc=False):
    """Has the name of the node."""

    topology_policies: tuple[str, ...] | None = None
    attributes: tuple[Attribute, ...] | None = None
    zones: tuple[TopologyZone, ...] | None = None

    def __post_init__(self) -> None:
        for zone in self.zones or ():
            check(resource.available for resource in zone.resources or ())

    def attribute(self, name: str) -> str:
        """The value of an attribute; empty if absent."""
        return next((a.value for a in self.attributes or () if a.name == name), "")


NODE_RESOURCE_TOPOLOGY: Final = Kind.of(
    NodeResourceTopology,
    "topology.node.k8s.io/v1alpha2",
    plural="noderesourcetopologies",
    namespaced=False,
)


class TopologyManager(NamedTuple):
    """Settings of a node's kubelet: `policy`, `scope`, and the number of zones it supports."""

    policy: str
    scope: str
    zones_max: int


def manager_of(topology: NodeResourceTopology) -> TopologyManager:
    """From the deprecated list, overridden by attributes; invalid values are ignored."""
    policy, scope, zones_max = "none", CONTAINER, 8
    if topology.topology_policies:
        policy, scope = _LEGACY_POLICIES.get(topology.topology_policies[0], (policy, scope))
    for name, value in ((a.name, a.value) for a in topology.attributes or ()):
        if name == "topologyManagerScope" and value in {CONTAINER, POD}:
            scope = value
        elif name == "topologyManagerPolicy" and value in POLICIES:
            policy = value
        elif name == "topologyManagerMaxNUMANodes" and value.isascii() and value.isdigit():
            zones_max = min(int(value[:9]), 1024) if int(value[:9]) > 1 else zones_max
    return TopologyManager(policy, scope, zones_max)


def units(resource: str, amount: Quantity) -> int:
    """Thousandths of a core for cpu, whole units of the rest."""
    return milli(amount) if resource == CPU else whole(amount)


@lru_cache(maxsize=4 * ZONES_MAX)
def _number(name: str) -> int | None:
    """The number of a zone named `node-1`; None for other names."""
    digits = name.removeprefix(_NUMBERED)
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= len(str(ZONES_MAX))
    if digits == name or not is_number:
        return None
    return int(digits) if int(digits) < ZONES_MAX else None


# Requests of pods against NUMA zones, by container, and which pods own resources exclusively.
#
# Source  kubernetes/kubernetes v1.36 pkg/apis/core/v1/helper/qos; kubernetes-sigs/scheduler-plugins
#         pkg/util/resource.go, pkg/noderesourcetopology/resourcerequests/exclusive.go

MEMORY: Final = "memory"
Request = Mapping[str, int]
#: A guess: pods have three or four, and each is compared with every zone in one go.
CONTAINERS_MAX: Final = 32


class QoS(Enum):
    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


@dataclass(frozen=True)
class NumaDemand:
    """Requests of one pod: `whole` together, `inits` and `containers` one by one; milli-CPU, bytes,
    devices. Explicit zeros are kept.
    """

    qos: QoS
    whole: Request
    inits: tuple[Request, ...]
    containers: tuple[Request, ...]
    has_non_native: bool

    @property
    def is_guaranteed(self) -> bool:
        return self.qos is QoS.GUARANTEED

    @property
    def is_indifferent(self) -> bool:
        """Whether topology managers ignore the pod."""
        return self.qos is QoS.BEST_EFFORT and not self.has_non_native

    @property
    def is_beyond(self) -> bool:
        """Whether it has more containers than are compared one by one."""
        return len(self.inits) + len(self.containers) > CONTAINERS_MAX

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for pods with the same result."""
        each = (self.whole, *self.inits, *self.containers)
        return (self.qos, len(self.inits), *(tuple(sorted(request.items())) for request in each))


def demand_of(pod: Pod) -> NumaDemand:
    spec = pod.spec
    inits = tuple(_request(container) for container in spec.init_containers or ())
    containers = tuple(_request(container) for container in spec.containers or ())
    has_non_native = any(
        not is_native(name) for request in (*inits, *containers) for name in request
    )
    whole = Counter[str]()
    for request in containers:
        whole.update(request)
    for request in inits:
        for name, amount in request.items():
            whole[name] = max(whole.get(name, amount), amount)
    whole.update({name: units(name, more) for name, more in (spec.overhead or {}).items()})
    return NumaDemand(qos_of(pod), whole, inits, containers, has_non_native)


def qos_of(pod: Pod) -> QoS:
    """The quality-of-service class, as computed by the API server."""
    spec = pod.spec
    if spec.resources is not None:
        requests, limits = _positive(spec.resources.requests), _positive(spec.resources.limits)
        is_guaranteed = limits.keys() >= {CPU, MEMORY}
    else:
        requests, limits, is_guaranteed = Counter(), Counter(), True
        for container in (*(spec.containers or ()), *(spec.init_containers or ())):
            allowed = _positive(container.resources.limits)
            requests.update(_positive(container.resources.requests))
            limits.update(allowed)
            is_guaranteed &= allowed.keys() >= {CPU, MEMORY}
    if not requests and not limits:
        return QoS.BEST_EFFORT
    if is_guaranteed and requests == limits:
        return QoS.GUARANTEED
    return QoS.BURSTABLE


def owns_exclusively(pod: Pod, listed: Collection[str]) -> bool:
    """Whether a container other than a plain init container owns resources exclusively: whole
    cores, memory or devices of a guaranteed pod, or a device that zones list.
    """
    qos = qos_of(pod)
    sidecars = (c for c in pod.spec.init_containers or () if c.restart_policy == "Always")
    for container in (*sidecars, *(pod.spec.containers or ())):
        for name, amount in _request(container).items():
            if not is_native(name):
                if name in listed:
                    return True
            elif qos is QoS.GUARANTEED and amount > 0:
                if name == CPU and amount % 1000 == 0:
                    return True
                if name == MEMORY or name.startswith("hugepages-"):
                    return True
    return False


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def is_host_level(name: str) -> bool:
    """Resources that zones need not list."""
    return name in {"ephemeral-storage", "storage"} or not is_native(name)


def is_affine(name: str) -> bool:
    """Resources that pods which are not guaranteed get from any zone."""
    return name in {CPU, MEMORY} or name.startswith("hugepages-")


def _request(container: Container) -> Request:
    return {
        name: units(name, quantity)
        for name, quantity in (container.resources.requests or {}).items()
    }


def _positive(amounts: Mapping[str, Quantity] | None) -> Counter[str]:
    """Positive amounts of cpu and memory, in billionths."""
    return +Counter({name: nano((amounts or {}).get(name, 0)) for name in (CPU, MEMORY)})


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
            number = _number(zone.name) if zone.type == _NUMA_NODE else None
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
            costs = {_number(cost.name): cost.value for cost in zone.costs or ()}
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


# Score the zones of a node for a guaranteed pod: five strategies.
#
# Rules   LeastAllocated, MostAllocated, BalancedAllocation: each zone gets a score; the smallest
#         that is not 0 is the node's, for the whole pod or as the mean over its containers.
#         LeastNUMANodes: the fewest zones that together have room, those at the smallest distance
#         first; none whose mean distance exceeds the maximum.
# Source  kubernetes-sigs/scheduler-plugins pkg/noderesourcetopology/score.go, least_allocated.go,
#         most_allocated.go, balanced_allocation.go, least_numa.go
# Bounds  COMBINATIONS_MAX sets of zones are tried for each number of zones; a node
#         of more than 14 zones counts as one on which nothing fits.

Weights = Mapping[str, int]

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
BALANCED_ALLOCATION: Final = "BalancedAllocation"
LEAST_NUMA_NODES: Final = "LeastNUMANodes"
COMBINATIONS_MAX: Final = 1 << 14
_NONE: Final = 1 << 60

A = TypeVar("A", int, I64)
ZoneScore = Callable[[Zones, Request, Weights], I64]


def zone_scores(score: ZoneScore, zones: Zones, demand: NumaDemand, weights: Weights) -> I64:
    """int64[M]; 0 for a pod that `is_beyond` where containers count one by one."""
    whole = _smallest(score(zones, demand.whole, weights), zones)
    if demand.is_beyond:
        return np.where(zones.is_pod_scope, whole, 0)
    each = [
        _smallest(score(zones, request, weights), zones)
        for request in (*demand.inits, *demand.containers)
    ]
    mean = (np.sum(each, axis=0) / len(each)).astype(np.int64)
    return np.where(zones.is_pod_scope, whole, mean)


def _smallest(scores: I64, zones: Zones) -> I64:
    """The smallest score of the existing zones except 0; 0 if there is no other."""
    exists = np.arange(zones.width)[:, np.newaxis] < zones.count
    counted = np.where(exists & (scores != 0), scores, _NONE).min(axis=0)
    return np.where(counted == _NONE, 0, counted)


def _weighted(
    points: Callable[[int, I64], I64], zones: Zones, request: Request, weights: Weights
) -> I64:
    """int64[Z, M]: the weighted mean of the points of each resource."""
    total = np.zeros((zones.width, zones.size), dtype=np.int64)
    divisor = 0
    for name, amount in request.items():
        held = zones.of(name)
        can = (held > 0) & (held >= amount)
        found = points(_whole(name, amount), np.where(can, _whole(name, held), 1))
        weight = weights.get(name, 1)
        total += np.where(can, found, 0) * weight
        divisor += weight
    return total // divisor if divisor else total


def balanced_allocation(zones: Zones, request: Request, weights: Weights) -> I64:  # noqa: ARG001
    """int64[Z, M]: the more evenly its resources are used the better; weights are ignored."""
    if len(request) < 2:
        # a single resource has no variance
        return np.zeros((zones.width, zones.size), dtype=np.int64)
    shares = []
    for name, amount in request.items():
        held = np.maximum(_whole(name, zones.of(name)), 0)
        shares.append(np.where(held > 0, _whole(name, amount) / np.maximum(held, 1), 1.0))
    variance = np.var(shares, axis=0, ddof=1)
    found: I64 = ((1 - variance) * 100).astype(np.int64)
    return np.where((np.array(shares) > 1).any(axis=0), 0, found)


ZONE_SCORES: Final[Mapping[str, ZoneScore]] = {
    LEAST_ALLOCATED: partial(_weighted, lambda requested, held: (held - requested) * 100 // held),
    MOST_ALLOCATED: partial(_weighted, lambda requested, held: requested * 100 // held),
    BALANCED_ALLOCATION: balanced_allocation,
}


def _whole(name: str, amount: A) -> A:
    """Whole cores, rounded up; the rest as it is."""
    return -(-amount // 1000) if name == CPU else amount


def least_numa_nodes(zones: Zones, demand: NumaDemand) -> I64:
    """int64[M]; 0 for a pod that `is_beyond` where containers count one by one."""
    found = np.zeros(zones.size, dtype=np.int64)
    for number in np.unique(zones.count).tolist():
        rows = np.flatnonzero(zones.count == number)
        for scope in (True,) if demand.is_beyond else (True, False):
            matching = rows[zones.is_pod_scope[rows] == scope]
            if len(matching):
                found[matching] = _fewest(zones.take(matching), demand, number, whole=scope)
    return found


def _fewest(zones: Zones, demand: NumaDemand, number: int, *, whole: bool) -> I64:
    """Rows with this number of zones each. `zones` is modified."""
    requests = (demand.whole,) if whole else (*demand.inits, *demand.containers)
    most = np.zeros(zones.size, dtype=np.int64)
    fine = np.ones(zones.size, dtype=np.bool_)
    all_near = np.ones(zones.size, dtype=np.bool_)
    for request in requests:
        concerned = fine & _is_listed(zones, request)
        sets, is_near = _needed(zones, request, number, concerned)
        found = sets.any(axis=0)
        fine &= found | ~concerned
        all_near &= is_near | ~concerned
        most = np.maximum(most, np.where(concerned, sets.sum(axis=0), 0))
        if not whole:
            _take(zones, request, sets & fine)
    width = 100 // zones.zones_max
    points = 100 - most * width + np.where(all_near, width // 2, 0)
    return np.where(fine, np.where(most == 0, 100, points), 0)


def _is_listed(zones: Zones, request: Request) -> Mask:
    """bool[M]: some zone lists something of the request."""
    found = np.zeros(zones.size, dtype=np.bool_)
    for name in request:
        found |= (zones.of(name) != NOT_LISTED).any(axis=0)
    return found


def _needed(zones: Zones, request: Request, number: int, where: Mask) -> tuple[Mask, Mask]:
    """bool[Z, M]: the required zones, none if nothing fits; bool[M]: whether their distance is the
    smallest possible for so many zones.
    """
    chosen = np.zeros((zones.width, zones.size), dtype=np.bool_)
    is_near = np.zeros(zones.size, dtype=np.bool_)
    waiting = where.copy()
    if 2**number > COMBINATIONS_MAX:
        return chosen, is_near
    for size in range(1, number + 1):
        if not waiting.any():
            break
        sets = list(combinations(range(number), size))
        # the distances of all pairs, each with itself included
        sums = np.array([zones.costs[np.ix_(zs, zs)].sum(axis=(0, 1)) for zs in sets])
        nearest = np.minimum(sums.min(axis=0), FARTHEST * size * size)
        fits = np.array([_has_room(zones, request, places) for places in sets]) & waiting
        fits &= sums < (FARTHEST + 1) * size * size
        # The first of the nearest that fit; `sums` are over pairs, so that equal sums mean equal
        # distance.
        at = np.where(fits, sums, _NONE).argmin(axis=0)
        hit = np.flatnonzero(fits.any(axis=0))
        for rank, places in enumerate(sets):
            chosen[np.ix_(places, hit[at[hit] == rank])] = True
        is_near[hit] = sums[at[hit], hit] == nearest[hit]
        waiting[hit] = False
    return chosen, is_near


def _has_room(zones: Zones, request: Request, places: tuple[int, ...]) -> Mask:
    """bool[M]: each of these zones lists all resources, and together they have enough."""
    found = np.ones(zones.size, dtype=np.bool_)
    for name, amount in request.items():
        held = zones.of(name)[list(places)]
        found &= (held != NOT_LISTED).all(axis=0)
        if amount:
            found &= held.sum(axis=0) >= amount
    return found


def _take(zones: Zones, request: Request, sets: Mask) -> None:
    """Subtract from the zones of each row, the lowest first, until the request is met."""
    for name, amount in request.items():
        held = zones.available.get(name)
        if held is None:
            continue
        remaining = np.full(zones.size, amount, dtype=np.int64)
        for at in range(zones.width):
            is_used = sets[at] & (held[at] != NOT_LISTED)
            taken = np.where(is_used, np.minimum(held[at], remaining), 0)
            held[at] = np.where(is_used, held[at] - taken, held[at])
            remaining -= taken
