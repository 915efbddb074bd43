"""A cluster with devices and claims, and the plugin that schedules them."""

from typing import Any

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import DynamicResourcesArgs
from asched.core.framework.points import PreFilterResult
from asched.core.framework.status import Status
from asched.core.model.claim import ResourceClaim
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
from tests.plays.dra_worlds import a_class, a_slice, asks

GPU = "example.com/gpu"


def a_node(name: str, allocatable: dict[str, str] | None = None, **labels: str) -> Node:
    return decode(
        Node,
        {
            "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": {"cpu": "8", "pods": "110", **(allocatable or {})}},
        },
    )


def a_pod(*claims: str, name: str = "p", template: bool = False, **requests: str) -> Pod:
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
        for node in nodes or (a_node("n1"), a_node("n2")):
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
