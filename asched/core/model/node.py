"""Nodes: the fields that a scheduler reads, in the API's shape."""

from asched.core.model.meta import ApiObject, Record
from asched.core.model.pod import NO_LABELS, ResourceList
from asched.core.model.quantity import Quantity, check
from asched.core.model.taint import Taint


class NodeCondition(Record, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class ContainerImage(Record, frozen=True, gc=False):
    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class NodePodPreemptionPolicy(Record, frozen=True, gc=False):
    disable_resize_preemption: tuple[str, ...] | None = None


class NodeSpec(Record, frozen=True, gc=False):
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None
    provider_id: str = ""
    pod_preemption_policy: NodePodPreemptionPolicy | None = None

    @property
    def permits_resize_preemption(self) -> bool:
        """Whether pods may be evicted for a resize on this node: no owner objects."""
        policy = self.pod_preemption_policy
        return policy is None or not policy.disable_resize_preemption


class NodeCapacity(Record, frozen=True, gc=False):
    """Capacity of the machine, for rules that consider actual use."""

    cpu: Quantity | None = None


class NodeStatus(Record, frozen=True, gc=False):
    allocatable: ResourceList | None = None
    capacity: NodeCapacity | None = None
    conditions: tuple[NodeCondition, ...] | None = None
    images: tuple[ContainerImage, ...] | None = None
    declared_features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.allocatable is not None:
            check(self.allocatable.values())
        if self.capacity is not None:
            check((self.capacity.cpu,))


class Node(ApiObject, frozen=True, gc=False):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or NO_LABELS
