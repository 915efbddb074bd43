"""What keeps a pod waiting where no node, label or toleration helps: gates, and claims that cannot
be served, with what has to be done about each.

Bounds  NAMED_MAX gates and claims of each kind; linear in the volumes of a class and the nodes.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from typing import Final

from asched.core.cluster.cluster import Cluster
from asched.core.model.kinds import (
    DEVICE_CLASS,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    RESOURCE_CLAIM,
    STORAGE_CLASS,
)
from asched.core.model.pod import Pod
from asched.core.model.quantity import QuantityError, parse
from asched.core.model.storage import (
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    ClaimUse,
    claim_class,
    is_fully_bound,
    storage_of,
    volume_class,
)
from asched.core.model.volume import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologyTerm,
)

NAMED_MAX: Final = 5
AVAILABLE: Final = "Available"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


def summed_up(texts: list[str], most: int = NAMED_MAX) -> str:
    """The first texts, and the number of the others."""
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def gates_of(pod: Pod) -> list[str]:
    """The gates of a pod, in one line; no other change helps before they are removed."""
    gates = [gate.name for gate in pod.spec.scheduling_gates or ()]
    if not gates:
        return []
    word = "gates" if len(gates) > 1 else "gate"
    return [f"scheduling {word} {summed_up(gates)}: to be removed by the controller that set it"]


def obstacles(cluster: Cluster, pod: Pod) -> list[str]:
    """A line about each claim of a pod without a node that cannot be served."""
    uses = islice(storage_of(pod).claims, NAMED_MAX)
    return [*(text for use in uses for text in _of_claim(cluster, use)), *_of_devices(cluster, pod)]


def _of_claim(cluster: Cluster, use: ClaimUse) -> Iterator[str]:
    name = f"PersistentVolumeClaim {use.key}"
    claim: PersistentVolumeClaim | None = cluster.stored(PERSISTENT_VOLUME_CLAIM, use.key)
    if claim is None:
        made = "its controller makes it from the pod" if use.owner else "create it"
        yield f"{name} does not exist; {made}"
        return
    if claim.metadata.deletion_timestamp is not None:
        yield f"{name} is being deleted; create it anew"
        return
    if is_fully_bound(claim):
        yield from _of_bound(cluster, name, claim)
        return
    of_class = claim_class(claim)
    storage_class = cluster.stored(STORAGE_CLASS, of_class) if of_class else None
    if storage_class is None:
        missing = (
            f"StorageClass {of_class} does not exist" if of_class else "it has no StorageClass"
        )
        yield f"{name} is not bound: {missing}; a PersistentVolume has to be bound to it"
    elif storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        by = f"provisioner {storage_class.provisioner}"
        yield f"{name} is not bound: StorageClass {of_class} binds at once, by {by}; see its events"
    elif storage_class.provisioner in ("", NO_PROVISIONER):
        yield from _of_volumes(cluster, name, claim)
    else:
        yield from _of_topologies(cluster, name, storage_class)


def _of_bound(cluster: Cluster, name: str, claim: PersistentVolumeClaim) -> Iterator[str]:
    volume = claim.spec.volume_name
    if cluster.stored(PERSISTENT_VOLUME, volume) is None:
        yield f"{name} is bound to PersistentVolume {volume}, which does not exist"


def _of_volumes(cluster: Cluster, name: str, claim: PersistentVolumeClaim) -> Iterator[str]:
    """Of a class without a provisioner: that no free volume is large enough."""
    of_class, request = claim_class(claim), claim.spec.resources.requests or {}
    volumes = cluster.all(PERSISTENT_VOLUME).values()
    free = [
        volume
        for volume in volumes
        if volume_class(volume) == of_class
        and volume.spec.claim_ref is None
        and volume.status.phase == AVAILABLE
    ]
    if not free:
        yield f"{name} needs a PersistentVolume of StorageClass {of_class}; none is free"
        return
    largest = max(free, key=_size)
    asked = request.get(STORAGE, 0)
    try:
        is_short = _size(largest) < parse(asked)
    except QuantityError:
        return
    if is_short:
        size = (largest.spec.capacity or {}).get(STORAGE, 0)
        most = f"the largest free PersistentVolume of StorageClass {of_class}"
        yield f"{name} requests {asked}; {most} is {largest.metadata.name} with {size}"


def _size(volume: PersistentVolume) -> Fraction:
    try:
        return parse((volume.spec.capacity or {}).get(STORAGE, 0))
    except QuantityError:
        return Fraction(0)


def _of_topologies(cluster: Cluster, name: str, storage_class: StorageClass) -> Iterator[str]:
    """Of a class with a provisioner: that it makes volumes for some of the nodes only."""
    terms = storage_class.allowed_topologies or ()
    if not terms:
        return
    nodes = [node for _, node in cluster.nodes.nodes()]
    count = sum(any(_meets(node.labels, term) for term in terms) for node in nodes)
    if count < len(nodes):
        where = " or ".join(_where(term) for term in terms[:NAMED_MAX])
        only = f"StorageClass {storage_class.metadata.name} makes its volume only with {where}"
        yield f"{name}: {only} (allowedTopologies), as {count} of {len(nodes)} nodes have"


def _meets(labels: "dict[str, str]", term: TopologyTerm) -> bool:
    return all(
        labels.get(each.key) in (each.values or ()) for each in term.match_label_expressions or ()
    )


def _where(term: TopologyTerm) -> str:
    return " and ".join(
        f"{each.key} in ({summed_up(list(each.values or ()))})"
        for each in term.match_label_expressions or ()
    )


def _of_devices(cluster: Cluster, pod: Pod) -> Iterator[str]:
    made = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses or ()}
    for asked in islice(pod.spec.resource_claims or (), NAMED_MAX):
        name = asked.resource_claim_name or made.get(asked.name)
        if not name:
            template = asked.resource_claim_template_name
            yield f"claim {asked.name} is not made yet from ResourceClaimTemplate {template}"
            continue
        key = f"{pod.metadata.namespace}/{name}"
        claim = cluster.stored(RESOURCE_CLAIM, key)
        if claim is None:
            yield f"ResourceClaim {key} does not exist; create it"
            continue
        classes = [
            request.exactly.device_class_name
            for request in claim.spec.devices.requests or ()
            if request.exactly is not None
        ]
        for of_class in islice(dict.fromkeys(classes), NAMED_MAX):
            if claim.status.allocation is None and cluster.stored(DEVICE_CLASS, of_class) is None:
                yield f"DeviceClass {of_class} of ResourceClaim {key} does not exist; create it"
