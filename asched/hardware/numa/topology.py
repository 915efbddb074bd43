"""NodeResourceTopology: the NUMA zones of a node, reported by an agent on it.

Source  topology.node.k8s.io/v1alpha2; kubernetes-sigs/scheduler-plugins
        pkg/noderesourcetopology/nodeconfig/topologymanager.go, pluginhelpers.go
"""

from functools import lru_cache
from typing import Final, NamedTuple

from asched.core.model.kinds import Kind
from asched.core.model.meta import ApiObject, Record
from asched.core.model.quantity import Quantity, check, milli, whole

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
NUMA_NODE: Final = "Node"
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
def zone_number(name: str) -> int | None:
    """The number of a zone named `node-1`; None for other names."""
    digits = name.removeprefix(_NUMBERED)
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= len(str(ZONES_MAX))
    if digits == name or not is_number:
        return None
    return int(digits) if int(digits) < ZONES_MAX else None
