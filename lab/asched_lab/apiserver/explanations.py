"""What `kubectl explain` says about kinds and about the fields that have to do with scheduling.

A line of `TEXTS` is a type, or a type and a field, and a sentence. What is not here is shown
without one.
"""

from functools import cache
from typing import Final

TEXTS: Final = """
Pod = One or more containers that run together on one node.
Node = A machine pods run on, with what it offers and how it is.
Deployment = Pods of one template, replaced step by step when the template changes.
ReplicaSet = A number of equal pods that is kept up.
ReplicationController = A number of equal pods that is kept up; ReplicaSet came after it.
Job = Pods that run until enough of them have ended well.
Namespace = A room of its own for names, rights and quotas.
Service = One address for pods that a selector chooses.
ConfigMap = Configuration that is no secret, as names and texts.
PriorityClass = A name for a priority; pods of higher priority are scheduled first.
PodDisruptionBudget = How many pods of a selector must stay when others are evicted.
PersistentVolume = Storage of the cluster that a claim may be bound to.
PersistentVolumeClaim = A wish for storage that pods may mount.
StorageClass = A kind of storage, and who makes volumes of it.
Lease = Who holds a lock, and until when.
ResourceClaim = A wish for devices that pods may share.
ResourceSlice = Devices that a node or a network offers.
Event = Something that happened to an object, for people to read.
PodSpec.affinity = Rules about nodes and about other pods that attract or repel this one.
PodSpec.containers = What runs; at least one.
PodSpec.nodeName = The node the pod is bound to; a scheduler sets it.
PodSpec.nodeSelector = Labels a node must have to be considered.
PodSpec.overhead = What running the pod costs beside its containers.
PodSpec.preemptionPolicy = Whether the pod may displace others: PreemptLowerPriority or Never.
PodSpec.priority = The number behind priorityClassName; admission sets it.
PodSpec.priorityClassName = The class that says how important the pod is.
PodSpec.resourceClaims = The claims for devices its containers may use.
PodSpec.restartPolicy = What happens when containers end: Always, OnFailure or Never.
PodSpec.schedulerName = Which scheduler is to bind the pod; default-scheduler unless set.
PodSpec.schedulingGates = Names that must all be removed before the pod is scheduled.
PodSpec.tolerations = Taints of nodes that do not keep the pod away.
PodSpec.topologySpreadConstraints = How evenly equal pods are to stand over zones, nodes or others.
PodSpec.volumes = What containers may mount.
Container.image = The image it runs.
Container.ports = Ports it listens on; a hostPort is taken on its node by one pod only.
Container.resources = What it requests, which scheduling counts, and its limits.
NodeSpec.taints = What keeps pods away that do not tolerate it.
NodeSpec.unschedulable = Whether new pods are kept away; kubectl cordon sets it.
NodeStatus.allocatable = What pods may request of the node in all.
NodeStatus.capacity = What the node has.
DeploymentSpec.replicas = How many pods there are to be; 1 unless set.
DeploymentSpec.strategy = RollingUpdate within maxSurge and maxUnavailable, or Recreate.
DeploymentSpec.template = The pods to make.
JobSpec.completions = How many pods must end well.
JobSpec.parallelism = How many pods may run beside one another.
JobSpec.template = The pods to make.
"""
#: Fields that mean the same in every kind.
COMMON: Final = {
    "apiVersion": "The group and version this object is written in.",
    "kind": "What the object is.",
    "metadata": "Its name, namespace, labels, owners and history.",
    "spec": "What is wanted.",
    "status": "What is, as those report who look after it.",
}


@cache
def texts() -> dict[str, str]:
    lines = (line.partition(" = ") for line in TEXTS.strip().splitlines())
    return {name: sentence for name, _, sentence in lines}


def of_type(name: str) -> str:
    """About a type; empty if nothing is known."""
    return texts().get(name, "")


def of_field(type_name: str, field: str) -> str:
    """About a field of a type; empty if nothing is known."""
    return texts().get(f"{type_name}.{field}") or COMMON.get(field, "")
