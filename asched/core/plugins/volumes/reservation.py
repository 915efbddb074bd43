"""From a choice to bound volumes: assume it, write it, wait until the controllers agree.

    reserve   the volume names the claim, the claim names the node: assumed, not written
    bind      the same is written; a volume controller or provisioner takes it from there
    wait      until each claim is bound and says so, or something has gone wrong, or time is up

A write is a conditional merge patch of the parts that change, because whole objects are not stored
here; upstream puts the whole object. What was written stays when binding fails: only assumptions
are taken back.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/volumebinding/binder.go
        (AssumePodVolumes, BindPodVolumes, checkBindings)
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Done, Refused, TimedOut, Unknown
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.effects import Patch, Topic, WaitFor
from asched.core.framework.points import Late
from asched.core.framework.status import SUCCESS, failure
from asched.core.model.kinds import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
    Kind,
)
from asched.core.model.meta import ObjectMeta
from asched.core.model.node import Node
from asched.core.model.storage import BOUND_BY_CONTROLLER, SELECTED_NODE, is_fully_bound
from asched.core.model.volume import PersistentVolume, PersistentVolumeClaim
from asched.core.plugins.volumes.candidates import is_made_for
from asched.core.plugins.volumes.choice import VolumeChoice
from asched.core.plugins.volumes.claims import accepts, affinity_of

#: Claims that are described.
DESCRIBED_MAX: Final = 5
DEADLINE_EXCEEDED: Final = "context deadline exceeded"


class VolumeWrite(msgspec.Struct):
    """A write of one object. `version` is the resource version after the write. `body` None: no
    write is needed, or another pod of the group, which shares the claim, does it.
    """

    kind: Kind
    namespace: str
    name: str
    body: Mapping[str, Any] | None
    version: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class VolumeReservation(msgspec.Struct, frozen=True):
    """Everything assumed for one pod on one node."""

    node: str
    #: (write of the volume, key of the claim)
    bindings: tuple[tuple[VolumeWrite, str], ...]
    provisions: tuple[VolumeWrite, ...]

    @property
    def writes(self) -> tuple[VolumeWrite, ...]:
        return (*(write for write, _ in self.bindings), *self.provisions)


def reserve(cluster: Cluster, choice: VolumeChoice, node: str) -> VolumeReservation:
    """Assume a choice for a single row."""
    bindings = []
    for match in choice.matches:
        volume = match.volume_at(0)
        if volume is None:
            continue
        bound, write = bind_volume(volume, match.claim)
        if write.body is not None:
            cluster.assume_object(PERSISTENT_VOLUME, bound)
        bindings.append((write, match.claim.metadata.key))
    provisions = []
    for making in choice.makings:
        if making.needed[0]:
            placed, write = select_node(making.claim, node)
            if _is_unchanged(cluster, write):
                cluster.assume_object(PERSISTENT_VOLUME_CLAIM, placed)
            else:
                write.body = None
            provisions.append(write)
    return VolumeReservation(node, tuple(bindings), tuple(provisions))


def take_back(cluster: Cluster, writes: tuple[VolumeWrite, ...]) -> None:
    """Restore the stored versions of these objects, except where another pod assumed something."""
    for write in writes:
        if write.body is not None:
            cluster.restore_object(write.kind, write.key)


def _is_unchanged(cluster: Cluster, write: VolumeWrite) -> bool:
    """Whether nothing is assumed of an object beyond its stored version."""
    return cluster.get(write.kind, write.key) is cluster.stored(write.kind, write.key)


def bind_volume(
    volume: PersistentVolume, claim: PersistentVolumeClaim
) -> tuple[PersistentVolume, VolumeWrite]:
    """The volume with a reference to the claim, and its write."""
    metadata, ref = volume.metadata, volume.spec.claim_ref
    spec: dict[str, Any] = {}
    annotations: dict[str, str] = {}
    if not is_made_for(volume, claim) and BOUND_BY_CONTROLLER not in (metadata.annotations or {}):
        annotations[BOUND_BY_CONTROLLER] = "yes"
    if ref is None or not is_made_for(volume, claim) or ref.uid != claim.metadata.uid:
        ref = PERSISTENT_VOLUME_CLAIM.reference(claim.metadata)
        spec["claimRef"] = msgspec.to_builtins(ref)
    body: dict[str, Any] | None = None
    if spec:  # without it there are no annotations
        changes = {"annotations": annotations} if annotations else {}
        body = {
            "metadata": {**changes, "resourceVersion": metadata.resource_version},
            "spec": spec,
        }
    bound = msgspec.structs.replace(
        volume,
        metadata=_annotated(metadata, annotations),
        spec=msgspec.structs.replace(volume.spec, claim_ref=ref),
    )
    return bound, VolumeWrite(PERSISTENT_VOLUME, "", metadata.name, body, metadata.resource_version)


def select_node(
    claim: PersistentVolumeClaim, node: str
) -> tuple[PersistentVolumeClaim, VolumeWrite]:
    """The claim with the node selected, and its write."""
    metadata = claim.metadata
    annotations = {SELECTED_NODE: node}
    body = {"metadata": {"annotations": annotations, "resourceVersion": metadata.resource_version}}
    placed = msgspec.structs.replace(claim, metadata=_annotated(metadata, annotations))
    version = metadata.resource_version
    return placed, VolumeWrite(
        PERSISTENT_VOLUME_CLAIM, metadata.namespace, metadata.name, body, version
    )


def bind(cluster: Cluster, pod: PodInfo, reservation: VolumeReservation, timeout_s: float) -> Late:
    """Write everything, then wait until all of it is bound."""
    writes = reservation.writes
    for position, write in enumerate(writes):
        if write.body is None:
            continue
        answer = yield Patch(
            kind=write.kind, namespace=write.namespace, name=write.name, body=write.body
        )
        if isinstance(answer, Refused | Unknown):
            take_back(cluster, writes[position:])
            return failure(answer.message)
        if isinstance(answer, Done) and answer.obj is not None:
            write.version = answer.obj.get("metadata", {}).get("resourceVersion", write.version)
    check = BindingCheck(cluster, pod, reservation)
    until_s = cluster.steady_s + timeout_s
    while True:
        remaining_s = max(until_s - cluster.steady_s, 0.0)
        answer = yield WaitFor(
            ready=check.has_changed, timeout_s=remaining_s, on=check.follow(), why=check.describe
        )
        if isinstance(answer, TimedOut) or check.is_settled():
            break
    if check.problem:
        return failure(f"binding volumes: {check.problem}")
    if isinstance(answer, TimedOut):
        return failure(f"binding volumes: {DEADLINE_EXCEEDED}")
    return SUCCESS


class BindingCheck:
    """Whether everything is bound, evaluated by stored versions, never by assumed ones."""

    def __init__(self, cluster: Cluster, pod: PodInfo, reservation: VolumeReservation) -> None:
        self._cluster = cluster
        self._pod = pod
        self._reservation = reservation
        #: the problem that ends the wait early
        self.problem = ""
        self._followed: tuple[Topic, ...] = ()

    def follow(self) -> tuple[Topic, ...]:
        """Topics to wait for; one more when a claim gets the name of the volume made for it."""
        self._followed = self._topics()
        return self._followed

    def has_changed(self) -> bool:
        """Whether the binding is settled, or there are more topics to follow."""
        return self.is_settled() or self._topics() != self._followed

    def describe(self) -> str:
        """The claims that are not bound yet, and which controller or provisioner they wait for."""
        stored, node, unbound = self._cluster.stored, self._reservation.node, list[str]()
        for write, key in self._reservation.bindings:
            claim = stored(PERSISTENT_VOLUME_CLAIM, key)
            if claim is None or not is_fully_bound(claim):
                by = f"the volume controller to bind PersistentVolume {write.name}"
                unbound.append(f"PersistentVolumeClaim {key} waits for {by}")
        for write in self._reservation.provisions:
            claim = stored(PERSISTENT_VOLUME_CLAIM, write.key)
            if claim is None or not is_fully_bound(claim):
                name = claim.spec.storage_class_name if claim is not None else ""
                storage_class = self._cluster.get(STORAGE_CLASS, name) if name else None
                who = f"provisioner {storage_class.provisioner}" if storage_class else "provisioner"
                by = f"{who} of StorageClass {name} to make a volume for node {node}"
                unbound.append(f"PersistentVolumeClaim {write.key} waits for {by}")
        return "; ".join(unbound[:DESCRIBED_MAX])

    def _topics(self) -> tuple[Topic, ...]:
        reservation, claims = self._reservation, PERSISTENT_VOLUME_CLAIM.resource
        topics = [(POD.resource, self._pod.pod.key), (NODE.resource, reservation.node)]
        for write, key in reservation.bindings:
            topics += [(PERSISTENT_VOLUME.resource, write.name), (claims, key)]
        for write in reservation.provisions:
            topics.append((claims, write.key))
            claim = self._cluster.stored(PERSISTENT_VOLUME_CLAIM, write.key)
            if claim is not None and claim.spec.volume_name:
                topics.append((PERSISTENT_VOLUME.resource, claim.spec.volume_name))
        return tuple(topics)

    def is_settled(self) -> bool:
        """True if all claims are bound, or if there is a problem."""
        cluster, name = self._cluster, self._reservation.node
        node = cluster.node_of(name)
        if node is None:
            self.problem = f'failed to get node "{name}": node "{name}" not found'
            return True
        now = cluster.pods_seen.get(self._pod.pod.key)
        if now is None:
            gone = f'pod "{self._pod.pod.metadata.name}" not found'
            self.problem = f"pod does not exist any more: {gone}"
            return True
        bound = [self._is_bound(write, key, node) for write, key in self._reservation.bindings]
        made = [self._is_made(write, node) for write in self._reservation.provisions]
        return bool(self.problem) or (all(bound) and all(made))

    def _is_bound(self, write: VolumeWrite, claim_key: str, node: Node) -> bool:
        volume = self._cluster.stored(PERSISTENT_VOLUME, write.name)
        claim = self._cluster.stored(PERSISTENT_VOLUME_CLAIM, claim_key)
        if volume is None or claim is None:
            kind, key = ("", write.name) if volume is None else ("Claim", claim_key)
            lost = f'could not find v1.PersistentVolume{kind} "{key}"'
            return self._fail(f"failed to check binding: {lost}")
        if _is_older(volume.metadata, write.version):
            return False
        if not self._is_reachable(volume, node):
            return False
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            if self._is_for_others(write):
                return False
            return self._fail(f'ClaimRef got reset for pv "{write.name}"')
        if claim.spec.volume_name not in ("", write.name):  # upstream would wait for that volume
            return self._fail(f'pvc "{claim_key}" was bound to pv "{claim.spec.volume_name}"')
        return is_fully_bound(claim)

    def _is_made(self, write: VolumeWrite, node: Node) -> bool:
        claim = self._cluster.stored(PERSISTENT_VOLUME_CLAIM, write.key)
        if claim is None:
            lost = f'could not find v1.PersistentVolumeClaim "{write.key}"'
            return self._fail(f"failed to check provisioning pvc: {lost}")
        if _is_older(claim.metadata, write.version):
            return False
        annotations = claim.metadata.annotations
        if self._is_for_others(write):
            return False
        if not annotations:
            return self._fail(f'selectedNode annotation reset for PVC "{write.name}"')
        if annotations.get(SELECTED_NODE, "") != node.name:
            return self._fail(f'provisioning failed for PVC "{write.name}"')
        name = claim.spec.volume_name
        if name:
            volume = self._cluster.stored(PERSISTENT_VOLUME, name)
            if volume is None or not self._is_reachable(volume, node):
                return False
        return is_fully_bound(claim)

    def _is_for_others(self, write: VolumeWrite) -> bool:
        """Whether another pod of the group is about to write it."""
        return write.body is None and not _is_unchanged(self._cluster, write)

    def _is_reachable(self, volume: PersistentVolume, node: Node) -> bool:
        row = self._cluster.nodes.row_of[node.name]
        view = NodeView(self._cluster.nodes, np.array((row,), dtype=np.int32))
        if accepts(affinity_of(volume), view, self._cluster)[0]:
            return True
        return self._fail(
            f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node.name}":'
            " no matching NodeSelectorTerms"
        )

    def _fail(self, problem: str) -> bool:
        self.problem = self.problem or problem
        return False


def _annotated(metadata: ObjectMeta, annotations: Mapping[str, str]) -> ObjectMeta:
    if not annotations:
        return metadata
    merged = {**(metadata.annotations or {}), **annotations}
    return msgspec.structs.replace(metadata, annotations=merged)


def _is_older(metadata: ObjectMeta, version: str) -> bool:
    """Whether the watch has not delivered the version we wrote yet."""
    seen = metadata.resource_version
    return seen.isdigit() and version.isdigit() and int(seen) < int(version)
