"""Devices: slices, classes and claims in a line each, and clusters of them.

`World` solves claims on one node at a time; `DraWorld` is a cluster with the plugin that schedules
them.
"""

from typing import Any

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import DynamicResourcesArgs
from asched.core.config.gates import default_gates
from asched.core.config.versions import BASE
from asched.core.dra.allocator import DeviceSearch, Solution
from asched.core.dra.inventory import Inventory, Taken
from asched.core.dra.plan import ClaimPlan, plan
from asched.core.framework.points import PreFilterResult
from asched.core.framework.status import Status
from asched.core.model.claim import (
    AllocationResult,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    DEVICE_CLASS,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    Kind,
)
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.plugins.devices.plugin import DynamicResources

DRIVER = "gpu.example.com"
NODE_NAME = "n1"
STEPS_MAX = 100_000


def a_device(name: str, **fields: Any) -> dict[str, Any]:
    """`model=`, `numa=` and the like become attributes; other keywords are fields of the API."""
    attributes = {
        key: {"string": value} if isinstance(value, str) else {"int": value}
        for key, value in fields.pop("attributes", {}).items()
    }
    return {"name": name, "attributes": attributes, **fields}


def a_slice(*devices: dict[str, Any] | str, name: str = "", **fields: Any) -> ResourceSlice:
    """A slice on node n1, in a pool of that name, unless told otherwise."""
    pool = {"name": fields.pop("pool", NODE_NAME), "generation": fields.pop("generation", 1)}
    pool["resourceSliceCount"] = fields.pop("of", 1)
    spec: dict[str, Any] = {"driver": fields.pop("driver", DRIVER), "pool": pool}
    if not {"nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"} & fields.keys():
        spec["nodeName"] = NODE_NAME
    spec |= fields
    spec["devices"] = [a_device(d) if isinstance(d, str) else d for d in devices]
    return decode(ResourceSlice, {"metadata": {"name": name or pool["name"]}, "spec": spec})


def a_class(name: str = "gpu", *selectors: str, **spec: Any) -> DeviceClass:
    chosen = [{"cel": {"expression": text}} for text in selectors]
    return decode(DeviceClass, {"metadata": {"name": name}, "spec": {"selectors": chosen, **spec}})


def asks(*selectors: str, count: int = 1, **fields: Any) -> dict[str, Any]:
    """What is asked for once; `all=True` for every device."""
    mode = {"allocationMode": "All"} if fields.pop("all", False) else {"count": count}
    return {
        "deviceClassName": fields.pop("of", "gpu"),
        "allocationMode": "ExactCount",
        "selectors": [{"cel": {"expression": text}} for text in selectors],
        **mode,
        **fields,
    }


def a_claim(*requests: dict[str, Any], name: str = "c", **devices: Any) -> ResourceClaim:
    """Requests r0, r1 and so on; a list of alternatives is given as {"firstAvailable": [...]}."""
    named = [
        {"name": f"r{i}", **(r if "firstAvailable" in r else {"exactly": r})}
        for i, r in enumerate(requests)
    ]
    return decode(
        ResourceClaim,
        {
            "metadata": {"name": name, "namespace": "d", "uid": f"uid-{name}"},
            "spec": {"devices": {"requests": named, **devices}},
        },
    )


def first_of(*alternatives: dict[str, Any]) -> dict[str, Any]:
    return {"firstAvailable": [{"name": f"s{i}", **a} for i, a in enumerate(alternatives)]}


def held(*devices: str, pool: str = NODE_NAME, **fields: Any) -> AllocationResult:
    """An allocation that holds devices."""
    results = [
        {"request": "r0", "driver": DRIVER, "pool": pool, "device": device, **fields}
        for device in devices
    ]
    return decode(AllocationResult, {"devices": {"results": results}})


class World:
    """Slices and classes, what is taken, and one node at a time; by the rules of `minor`."""

    def __init__(
        self, *slices: ResourceSlice, classes: tuple[DeviceClass, ...] = (), minor: str = BASE
    ) -> None:
        self.rules = default_gates(minor)
        self.inventory = Inventory(slices)
        self.inventory.follow(self.rules)
        self.classes = {c.metadata.name: c for c in classes or (a_class(),)}
        self.taken = Taken()

    def plans(self, *claims: ResourceClaim) -> tuple[ClaimPlan, ...]:
        return tuple(plan(claim, self.classes.get) for claim in claims)

    def solve(
        self, *claims: ResourceClaim, node: str = NODE_NAME, labels: dict[str, str] | None = None
    ) -> Solution | None:
        labels = labels or {}
        pools = self.inventory.pools_for(node, labels)
        place = (node, labels)
        plans = self.plans(*claims)
        return DeviceSearch(pools, plans, self.taken, place, STEPS_MAX, self.rules).run()

    def devices(self, *claims: ResourceClaim, **where: Any) -> list[list[str]] | None:
        """The names of the chosen devices of each claim; None if there is no solution."""
        found = self.solve(*claims, **where)
        if found is None:
            return None
        return [[chosen.device.id.device for chosen in claim] for claim in found.devices]


GPU = "example.com/gpu"


def a_device_node(name: str, allocatable: dict[str, str] | None = None, **labels: str) -> Node:
    return decode(
        Node,
        {
            "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": {"cpu": "8", "pods": "110", **(allocatable or {})}},
        },
    )


def a_claiming_pod(*claims: str, name: str = "p", template: bool = False, **requests: str) -> Pod:
    """A pod with claims of these names, named directly or (`template`) generated for it."""
    references = [
        {"name": c, "resourceClaimTemplateName": "t"}
        if template
        else {"name": c, "resourceClaimName": c}
        for c in claims
    ]
    amounts = {GPU if key == "gpu" else key: value for key, value in requests.items()}
    return decode(
        Pod,
        {
            "metadata": {"name": name, "namespace": "d", "uid": f"uid-{name}"},
            "spec": {
                "schedulerName": "asched",
                "containers": [{"name": "a", "resources": {"requests": amounts}}],
                "resourceClaims": references,
            },
            "status": {
                "resourceClaimStatuses": [{"name": c, "resourceClaimName": c} for c in claims]
            }
            if template
            else {},
        },
    )


def a_claim_object(name: str = "c", *requests: dict[str, Any], **status: Any) -> dict[str, Any]:
    """The claim as the API has it. `metadata=` is merged in."""
    metadata = {"name": name, "namespace": "d", "uid": f"uid-{name}", "resourceVersion": "1"}
    metadata |= status.pop("metadata", {})
    named = [
        {"name": f"r{i}", **(r if "firstAvailable" in r else {"exactly": r})}
        for i, r in enumerate(requests or (asks(),))
    ]
    return {"metadata": metadata, "spec": {"devices": {"requests": named}}, "status": status}


def allocated(device: str = "a", node: str | None = "n1", **fields: Any) -> dict[str, Any]:
    """A status with an allocation of one device of the pool n1."""
    result = {"request": "r0", "driver": "gpu.example.com", "pool": "n1", "device": device}
    allocation: dict[str, Any] = {"devices": {"results": [{**result, **fields.pop("result", {})}]}}
    if node is not None:
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    allocation |= fields.pop("allocation", {})
    return {"allocation": allocation, **fields}


class DraWorld:
    """Nodes n1 and n2; n1 has the devices a and b."""

    def __init__(self, *claims: dict[str, Any], nodes: tuple[Node, ...] = ()) -> None:
        self.cluster = Cluster()
        self.plugin = DynamicResources(DynamicResourcesArgs(), self.cluster)
        for node in nodes or (a_device_node("n1"), a_device_node("n2")):
            self.see(NODE, node)
        self.see(RESOURCE_SLICE, a_slice("a", "b"))
        self.see(DEVICE_CLASS, a_class())
        for claim in claims:
            self.see_claim(claim)

    def see(self, kind: Kind, obj: Any) -> None:
        self.cluster.apply(Seen(kind, obj))

    def lose(self, kind: Kind, obj: Any) -> None:
        self.cluster.apply(Gone(kind, obj))

    def see_claim(self, mapping: dict[str, Any]) -> ResourceClaim:
        claim = decode(ResourceClaim, mapping)
        self.see(RESOURCE_CLAIM, claim)
        return claim

    def info(self, pod: Pod) -> PodInfo:
        self.see(POD, pod)
        return self.cluster.classes.info_of(pod)

    def attempt(self, pod: Pod) -> PreFilterResult | dict[str, str]:
        """What PreFilter said, or node name to the words of the filter ("" where it agrees)."""
        info = self.info(pod)
        result = self.plugin.pre_filter(info)
        if not result.status.is_success:
            return result
        codes = self.plugin.filter(info, self.cluster.view(), result.data)
        return {
            node.name: self.words(info, int(codes[row])).message
            for row, node in self.cluster.nodes.nodes()
        }

    def words(self, info: PodInfo, code: int) -> Status:
        return self.plugin.explain(info, code) if code else Status(code=0)  # type: ignore[arg-type]
