"""The volume rules again, node by node and object by object. No columns, no index, nothing kept.

Each rule answers for one pending pod: a pair (code, reasons) that rejects it as a whole, or such a
pair for each node that is rejected.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from asched.core.framework.status import Code
from asched.core.model.node import Node
from asched.core.model.pod import Pod, Volume
from asched.core.model.quantity import parse, whole
from asched.core.model.selector import NodeSelector, compile_selector, compile_term
from asched.core.model.volume import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

Told = tuple[Code, tuple[str, ...]]
Answer = Told | dict[str, Told]

U, UAU = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE
BETA, GA = "failure-domain.beta.kubernetes.io/", "topology.kubernetes.io/"
COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED = "volume.kubernetes.io/selected-node"


@dataclass
class Storage:
    """Everything a volume rule may look at."""

    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)  # placed ones
    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    classes: dict[str, StorageClass] = field(default_factory=dict)
    csi_nodes: dict[str, CsiNode] = field(default_factory=dict)
    attachments: dict[str, VolumeAttachment] = field(default_factory=dict)
    drivers: dict[str, CsiDriver] = field(default_factory=dict)
    capacities: dict[str, CsiStorageCapacity] = field(default_factory=dict)

    def on(self, node: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.spec.node_name == node]


def claims_of(pod: Pod, *, ephemeral: bool = True) -> Iterator[tuple[str, bool]]:
    """(claim name, whether it was made for the pod)."""
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name, False
        elif volume.ephemeral is not None and ephemeral:
            yield f"{pod.metadata.name}-{volume.name}", True


def key_of(pod: Pod, name: str) -> str:
    return f"{pod.metadata.namespace}/{name}"


# --- VolumeRestrictions --------------------------------------------------------------------------


def restrictions(pod: Pod, storage: Storage, gone: Collection[Pod] = ()) -> Answer:
    """`gone`: placed pods taken away on trial. Each volume of theirs with the name of an exclusive
    claim counts as one user less, whatever its namespace, and however many users a claim has.
    """
    exclusive = set()
    for name, _ in claims_of(pod, ephemeral=False):
        claim = storage.claims.get(key_of(pod, name))
        if claim is None:
            return UAU, (f'persistentvolumeclaim "{name}" not found',)
        if "ReadWriteOncePod" in (claim.spec.access_modes or ()):
            exclusive.add(name)
    used = {
        key_of(other, name)
        for other in storage.pods.values()
        if other.spec.node_name in storage.nodes
        for name, _ in claims_of(other, ephemeral=False)
    }
    users = len({key_of(pod, name) for name in exclusive} & used)
    users -= sum(name in exclusive for p in gone for name, _ in claims_of(p, ephemeral=False))
    found: dict[str, Told] = {}
    for node in storage.nodes:
        mine = pod.spec.volumes or ()
        others = [other for other in storage.on(node) if other not in gone]
        theirs = [volume for other in others for volume in other.spec.volumes or ()]
        if any(same_disk(a, b) for a in mine for b in theirs):
            found[node] = (U, ("node(s) had no available disk",))
        elif users > 0:
            reason = (
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access"
                " mode already in-use by another pod"
            )
            found[node] = (U, (reason,))
    return found


def same_disk(a: Volume, b: Volume) -> bool:
    if a.gce_persistent_disk and b.gce_persistent_disk:
        one, two = a.gce_persistent_disk, b.gce_persistent_disk
        return one.pd_name == two.pd_name and not (one.read_only and two.read_only)
    if a.aws_elastic_block_store and b.aws_elastic_block_store:
        return a.aws_elastic_block_store.volume_id == b.aws_elastic_block_store.volume_id
    if a.iscsi and b.iscsi:
        return a.iscsi.iqn == b.iscsi.iqn and not (a.iscsi.read_only and b.iscsi.read_only)
    if a.rbd and b.rbd:
        together = set(a.rbd.monitors or ()) & set(b.rbd.monitors or ())
        same = a.rbd.pool == b.rbd.pool and a.rbd.image == b.rbd.image
        return bool(together) and same and not (a.rbd.read_only and b.rbd.read_only)
    return False


# --- NodeVolumeLimits ----------------------------------------------------------------------------


def limits(pod: Pod, storage: Storage, gone: Collection[Pod] = ()) -> Answer:
    for name, is_made in claims_of(pod):
        claim = storage.claims.get(key_of(pod, name))
        if claim is not None and is_made and not controls(pod, claim):
            text = f"PVC {key_of(pod, name)} was not created for pod {pod.key} (pod is not owner)"
            return dict.fromkeys(storage.nodes, (Code.ERROR, (text,)))
        if claim is None:
            missing = f'persistentvolumeclaim "{name}" not found'
            told = (UAU, (f"looking up PVC {key_of(pod, name)}: {missing}",))
            return dict.fromkeys(storage.nodes, told)
    found: dict[str, Told] = {}
    for node in storage.nodes:
        csi_node = storage.csi_nodes.get(node)
        if csi_node is None:
            continue
        others = [other for other in storage.on(node) if other not in gone]
        in_use = {v for other in others for v in counted(other, storage)}
        new = counted(pod, storage) - in_use
        attached = set(attachments_of(node, storage)) | in_use
        for driver in csi_node.spec.drivers or ():
            if driver.allocatable is None or driver.allocatable.count is None:
                continue
            wanted = sum(name == driver.name for name, _ in new)
            there = sum(name == driver.name for name, _ in attached)
            if wanted and wanted + there > driver.allocatable.count:
                found[node] = (U, ("node(s) exceed max volume count",))
    return found


def counted(pod: Pod, storage: Storage) -> set[tuple[str, str]]:
    """(driver, handle) of the pod's volumes."""
    found = set()
    for volume in pod.spec.volumes or ():
        if volume.aws_elastic_block_store is not None:
            handle = volume.aws_elastic_block_store.volume_id.rsplit("/", 1)[-1]
            found.add(("ebs.csi.aws.com", handle))
        if volume.gce_persistent_disk is not None:
            name = volume.gce_persistent_disk.pd_name
            handle = f"projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{name}"
            found.add(("pd.csi.storage.gke.io", handle))
    for name, is_made in claims_of(pod):
        claim = storage.claims.get(key_of(pod, name))
        if claim is None or (is_made and not controls(pod, claim)):
            continue
        volume_ = storage.volumes.get(claim.spec.volume_name)
        if volume_ is not None:
            if volume_.spec.csi is not None and volume_.spec.csi.volume_handle:
                found.add((volume_.spec.csi.driver, volume_.spec.csi.volume_handle))
            continue
        storage_class = storage.classes.get(claim.spec.storage_class_name or "")
        if storage_class is not None and storage_class.provisioner:
            found.add((storage_class.provisioner, f"claim {key_of(pod, name)}"))
    return found


def controls(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    return any(o.controller and o.uid == pod.uid for o in claim.metadata.owner_references or ())


def attachments_of(node: str, storage: Storage) -> Iterator[tuple[str, str]]:
    for attachment in storage.attachments.values():
        volume = storage.volumes.get(attachment.spec.source.persistent_volume_name or "")
        if attachment.spec.node_name == node and volume is not None and volume.spec.csi is not None:
            yield attachment.spec.attacher, volume.spec.csi.volume_handle


# --- VolumeZone ----------------------------------------------------------------------------------


def zone(pod: Pod, storage: Storage) -> Answer:
    wanted: list[tuple[str, set[str]]] = []
    for name, _ in claims_of(pod, ephemeral=False):
        claim = storage.claims.get(key_of(pod, name))
        if claim is None:
            return UAU, (f'persistentvolumeclaim "{name}" not found',)
        if not claim.spec.volume_name:
            cls = claim.spec.storage_class_name or ""
            if not cls:
                return UAU, ("PersistentVolumeClaim had no pv name and storageClass name",)
            if cls not in storage.classes:
                return UAU, (f'storageclass.storage.k8s.io "{cls}" not found',)
            if storage.classes[cls].volume_binding_mode != "WaitForFirstConsumer":
                return UAU, ("PersistentVolume had no name",)
            continue
        volume = storage.volumes.get(claim.spec.volume_name)
        if volume is None:
            return UAU, (f'persistentvolume "{claim.spec.volume_name}" not found',)
        for prefix in (BETA, GA):
            for what in ("zone", "region"):
                text = (volume.metadata.labels or {}).get(prefix + what)
                parts = [part.strip() for part in text.split("__")] if text is not None else [""]
                if "" not in parts:
                    wanted.append((prefix + what, set(parts)))
    found: dict[str, Told] = {}
    for node in storage.nodes.values():
        if not any(
            prefix + what in node.labels for prefix in (BETA, GA) for what in ("zone", "region")
        ):
            continue
        for label, values in wanted:
            told = node.labels.get(label, node.labels.get(label.replace(BETA, GA)))
            if told not in values:
                found[node.name] = (UAU, ("node(s) had no available volume zone",))
    return found


# --- VolumeBinding -------------------------------------------------------------------------------


def binding(pod: Pod, storage: Storage) -> Answer:
    bound, delayed, immediate = [], [], []
    for name, is_made in claims_of(pod):
        claim = storage.claims.get(key_of(pod, name))
        missing = f'persistentvolumeclaim "{name}"'
        if claim is None:
            waiting = f"waiting for ephemeral volume controller to create the {missing}"
            return UAU, (waiting if is_made else f"{missing} not found",)
        if claim.status.phase == "Lost":
            gone = claim.spec.volume_name
            return UAU, (f'{missing} bound to non-existent persistentvolume "{gone}"',)
        if claim.metadata.deletion_timestamp is not None:
            return UAU, (f"{missing} is being deleted",)
        if is_made and not controls(pod, claim):
            text = f"PVC {key_of(pod, name)} was not created for pod {pod.key} (pod is not owner)"
            return UAU, (text,)
        storage_class = storage.classes.get(claim.spec.storage_class_name or "")
        waits = storage_class and storage_class.volume_binding_mode == "WaitForFirstConsumer"
        if claim.spec.volume_name and COMPLETED in (claim.metadata.annotations or {}):
            bound.append(claim)
        elif waits and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            immediate.append(claim)
    if immediate:
        return UAU, ("pod has unbound immediate PersistentVolumeClaims",)
    told = {
        node.name: tuple(reasons)
        for node in storage.nodes.values()
        if (
            reasons := [
                *bound_reasons(bound, node, storage),
                *delayed_reasons(delayed, node, storage),
            ]
        )
    }
    order = ["didn't match Pers", "didn't find", "not have enough", "unavailable due"]
    return {
        node: (UAU, tuple(sorted(reasons, key=lambda r: [o in r for o in order].index(True))))
        for node, reasons in told.items()
    }


def bound_reasons(
    claims: list[PersistentVolumeClaim], node: Node, storage: Storage
) -> Iterator[str]:
    for claim in claims:
        volume = storage.volumes.get(claim.spec.volume_name)
        if volume is None:
            yield "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
            return
        if not reaches(volume, node):
            yield "node(s) didn't match PersistentVolume's node affinity"
            return


def reaches(volume: PersistentVolume, node: Node) -> bool:
    affinity = volume.spec.node_affinity
    required: NodeSelector | None = affinity.required if affinity is not None else None
    if required is None:
        return True
    terms = [compile_term(term) for term in required.node_selector_terms or ()]
    return any(term.matches("", node.labels) for term in terms)


def delayed_reasons(
    claims: list[PersistentVolumeClaim], node: Node, storage: Storage
) -> Iterator[str]:
    unbindable = "node(s) didn't find available persistent volumes to bind"
    selected = [c for c in claims if SELECTED in (c.metadata.annotations or {})]
    if any((c.metadata.annotations or {})[SELECTED] != node.name for c in selected):
        yield unbindable
        return
    taken = static_choice(claims, node, storage)
    rest = sorted((c for c in claims if c not in selected), key=request)
    for claim in [*selected, *(c for c in rest if c.metadata.name not in taken)]:
        storage_class = storage.classes[claim.spec.storage_class_name or ""]
        if storage_class.provisioner in ("", "kubernetes.io/no-provisioner"):
            yield unbindable
            return
        terms = storage_class.allowed_topologies or ()
        if terms and not any(
            all(node.labels.get(e.key) in (e.values or ()) for e in t.match_label_expressions or ())
            for t in terms
            if t.match_label_expressions
        ):
            yield unbindable
            return
        if not has_room(claim, storage_class, node, storage):
            yield "node(s) did not have enough free storage"
            return


def request(claim: PersistentVolumeClaim) -> float:
    return float(parse((claim.spec.resources.requests or {}).get("storage", 0)))


def static_choice(
    claims: list[PersistentVolumeClaim], node: Node, storage: Storage
) -> dict[str, str]:
    """Claim name to the volume it takes on a node; claims with a selected node take none."""
    taken: dict[str, str] = {}
    for claim in sorted(claims, key=request):
        if SELECTED in (claim.metadata.annotations or {}):
            continue
        volume = smallest(claim, node, storage, set(taken.values()))
        if volume is not None:
            taken[claim.metadata.name] = volume
    return taken


def smallest(
    claim: PersistentVolumeClaim, node: Node, storage: Storage, taken: set[str]
) -> str | None:
    def size(volume: PersistentVolume) -> float:
        return float(parse((volume.spec.capacity or {}).get("storage", 0)))

    best: PersistentVolume | None = None
    for name in sorted(storage.volumes):
        volume = storage.volumes[name]
        ref = volume.spec.claim_ref
        mine = ref is not None and ref.name == claim.metadata.name
        mine = mine and ref is not None and ref.uid in ("", claim.metadata.uid)
        if name in taken or (ref is not None and not mine):
            continue
        if volume.spec.storage_class_name != (claim.spec.storage_class_name or ""):
            continue
        if size(volume) < request(claim) or volume.metadata.deletion_timestamp is not None:
            continue
        modes = [s.volume_mode or "Filesystem" for s in (volume.spec, claim.spec)]
        attributes = [s.volume_attributes_class_name or "" for s in (volume.spec, claim.spec)]
        if modes[0] != modes[1] or attributes[0] != attributes[1]:
            continue
        if mine:
            return name if reaches(volume, node) else None
        selector = compile_selector(claim.spec.selector)
        if volume.status.phase != "Available" or not reaches(volume, node):
            continue
        if selector is not None and not selector.matches(volume.metadata.labels or {}):
            continue
        if not set(claim.spec.access_modes or ()) <= set(volume.spec.access_modes or ()):
            continue
        if best is None or size(volume) < size(best):
            best = volume
    return best.metadata.name if best is not None else None


def has_room(
    claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node, storage: Storage
) -> bool:
    driver = storage.drivers.get(storage_class.provisioner)
    wanted = (claim.spec.resources.requests or {}).get("storage")
    if driver is None or not driver.spec.storage_capacity or wanted is None:
        return True
    for capacity in storage.capacities.values():
        selector = compile_selector(capacity.node_topology)
        room = capacity.maximum_volume_size or capacity.capacity
        if (
            capacity.storage_class_name == storage_class.metadata.name
            and room is not None
            and whole(room) >= whole(wanted)
            and selector is not None
            and selector.matches(node.labels)
        ):
            return True
    return False
