"""Texts of `kubectl explain` for kinds and for the fields that matter to scheduling.

A line of `TEXTS` is a type, or a type and a field, and a sentence. Other types and fields have no
text.
"""

from functools import cache
from typing import Final

TEXTS: Final = """
Pod = One or more containers that run together on one node.
Node = A machine that runs pods, with its resources and its state.
Deployment = Pods of one template, replaced step by step when the template changes.
ReplicaSet = A fixed number of equal pods.
ReplicationController = A fixed number of equal pods; replaced by ReplicaSet.
Job = Pods that run until enough of them have succeeded.
Namespace = A scope for names, rights and quotas.
Service = One address for the pods of a selector.
ConfigMap = Configuration that is not secret, as names and texts.
PriorityClass = A name for a priority; pods of higher priority are scheduled first.
PodDisruptionBudget = How many pods of a selector must stay during evictions.
PersistentVolume = Storage of the cluster that a claim may be bound to.
PersistentVolumeClaim = A request for storage that pods may mount.
StorageClass = A kind of storage, and its provisioner.
Lease = The holder of a lock, and its expiry.
ResourceClaim = A request for devices that pods may share.
ResourceSlice = Devices that a node or a network offers.
Event = Something that happened to an object, as text.
PodSpec.affinity = Rules about nodes and other pods that attract or repel this pod.
PodSpec.containers = The containers of the pod; at least one.
PodSpec.nodeName = The node that the pod is bound to; a scheduler sets it.
PodSpec.nodeSelector = Labels a node must have to be considered.
PodSpec.overhead = Resources of the pod in addition to those of its containers.
PodSpec.preemptionPolicy = Whether the pod may preempt other pods: PreemptLowerPriority or Never.
PodSpec.priority = The number behind priorityClassName; admission sets it.
PodSpec.priorityClassName = The class that sets the priority.
PodSpec.resourceClaims = The claims for devices that its containers may use.
PodSpec.restartPolicy = What happens when containers end: Always, OnFailure or Never.
PodSpec.schedulerName = The scheduler that binds the pod; default-scheduler unless set.
PodSpec.schedulingGates = Names that must all be removed before the pod is scheduled.
PodSpec.tolerations = Taints of nodes that do not exclude the pod.
PodSpec.topologySpreadConstraints = How evenly equal pods are spread over zones, nodes or others.
PodSpec.volumes = Volumes that containers may mount.
Container.image = The image of the container.
Container.ports = Ports it listens on; only one pod of a node can have a given hostPort.
Container.resources = Its requests, which scheduling counts, and its limits.
NodeSpec.taints = Taints that exclude pods without a matching toleration.
NodeSpec.unschedulable = Whether new pods are excluded; kubectl cordon sets it.
NodeStatus.allocatable = The sum that pods may request of the node.
NodeStatus.capacity = All resources of the node.
DeploymentSpec.replicas = The wanted number of pods; 1 unless set.
DeploymentSpec.strategy = RollingUpdate within maxSurge and maxUnavailable, or Recreate.
DeploymentSpec.template = The template of the pods.
JobSpec.completions = How many pods must succeed.
JobSpec.parallelism = How many pods may run at a time.
JobSpec.template = The template of the pods.
"""
#: Fields with the same meaning in every kind.
COMMON: Final = {
    "apiVersion": "The group and version of this object.",
    "kind": "The kind of the object.",
    "metadata": "Its name, namespace, labels, owners and history.",
    "spec": "The wanted state.",
    "status": "The observed state, as its controllers report it.",
}


@cache
def texts() -> dict[str, str]:
    lines = (line.partition(" = ") for line in TEXTS.strip().splitlines())
    return {name: sentence for name, _, sentence in lines}


def of_type(name: str) -> str:
    """The text of a type; empty if there is none."""
    return texts().get(name, "")


def of_field(type_name: str, field: str) -> str:
    """The text of a field of a type; empty if there is none."""
    return texts().get(f"{type_name}.{field}") or COMMON.get(field, "")
