"""NodeResourceTopology: the NUMA zones of a node, reported by an agent on it.

Source  topology.node.k8s.io/v1alpha2; kubernetes-sigs/scheduler-plugins
        pkg/noderesourcetopology/nodeconfig/topologymanager.go, pluginhelpers.go
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from asched.core.model.kinds import Kind
from asched.core.model.meta import ApiObject, Record
from asched.core.model.pod import Container, Pod
from asched.core.model.quantity import Quantity, check, milli, whole
from asched.core.model.requests import nano

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


@dataclass(frozen=True, slots=True)
class TopologyManager:
    """Settings of a node's kubelet: `policy`, `scope`, and the number of zones it supports."""

    policy: str = "none"
    scope: str = CONTAINER
    zones_max: int = 8

    @property
    def is_single(self) -> bool:
        return self.policy == SINGLE_NUMA_NODE


class Zone(NamedTuple):
    """One NUMA node: milli-CPU, bytes or devices by resource; distances by number of the other
    zone.
    """

    number: int
    available: Mapping[str, int]
    costs: Mapping[int, int]


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


def zones_of(topology: NodeResourceTopology) -> tuple[Zone, ...]:
    """Its NUMA nodes by number; of two with the same number the first."""
    found: dict[int, Zone] = {}
    for zone in topology.zones or ():
        number = _number(zone.name) if zone.type == _NUMA_NODE else None
        if number is None:
            continue
        available = {r.name: units(r.name, r.available) for r in zone.resources or ()}
        costs = ((_number(cost.name), cost.value) for cost in zone.costs or ())
        distances = {other: cost for other, cost in costs if other is not None}
        found.setdefault(number, Zone(number, available, distances))
    return tuple(found[number] for number in sorted(found))


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
    whole: dict[str, int] = {}
    for request in containers:
        for name, amount in request.items():
            whole[name] = whole.get(name, 0) + amount
    for request in inits:
        for name, amount in request.items():
            whole[name] = max(whole.get(name, amount), amount)
    for name, more in (spec.overhead or {}).items():
        whole[name] = whole.get(name, 0) + units(name, more)
    return NumaDemand(qos_of(pod), whole, inits, containers, has_non_native)


def qos_of(pod: Pod) -> QoS:
    """The quality-of-service class, as computed by the API server."""
    spec = pod.spec
    if spec.resources is not None:
        requests, limits = _positive(spec.resources.requests), _positive(spec.resources.limits)
        is_guaranteed = limits.keys() >= {CPU, MEMORY}
    else:
        requests, limits, is_guaranteed = {}, {}, True
        for container in (*(spec.containers or ()), *(spec.init_containers or ())):
            allowed = _positive(container.resources.limits)
            _add(requests, _positive(container.resources.requests))
            _add(limits, allowed)
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


def _positive(amounts: Mapping[str, Quantity] | None) -> dict[str, int]:
    """Positive amounts of cpu and memory, in billionths."""
    given = amounts or {}
    found = {name: nano(given[name]) for name in (CPU, MEMORY) if name in given}
    return {name: amount for name, amount in found.items() if amount > 0}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
