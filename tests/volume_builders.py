"""Storage objects and pods with volumes, in few words; and a cluster that has seen them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.status import Status
from asched.core.model.decode import decode
from asched.core.model.kinds import KINDS, Kind
from asched.core.model.meta import Record
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.volume import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

KIND_OF: Mapping[type[Record], Kind] = {kind.record: kind for kind in KINDS}
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def a_node(name: str, zone: str = "", **labels: str) -> Node:
    found = {HOST: name, **({ZONE: zone} if zone else {}), **labels}
    return decode(Node, {"metadata": {"name": name, "uid": name, "labels": found}})


def a_claim(
    name: str,
    *,
    cls: str | None = None,
    size: str | None = "1Gi",
    volume: str = "",
    bound: bool | None = None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    selected: str | None = None,
    owner: str = "",
    namespace: str = "default",
    version: str = "1",
    phase: str = "Pending",
    deleting: bool = False,
    **spec: Any,
) -> PersistentVolumeClaim:
    """`bound` defaults to whether a volume is named."""
    annotations = {}
    if bound if bound is not None else bool(volume):
        annotations["pv.kubernetes.io/bind-completed"] = "yes"
    if selected is not None:
        annotations["volume.kubernetes.io/selected-node"] = selected
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "resourceVersion": version,
        "annotations": annotations,
    }
    if owner:
        metadata["ownerReferences"] = [
            {"kind": "Pod", "name": owner, "uid": owner, "controller": True}
        ]
    if deleting:
        metadata["deletionTimestamp"] = "2026-03-01T08:00:00Z"
    body = {"accessModes": modes, "volumeName": volume, "storageClassName": cls, **spec}
    if size is not None:
        body["resources"] = {"requests": {"storage": size}}
    told = {"metadata": metadata, "spec": body, "status": {"phase": phase}}
    return decode(PersistentVolumeClaim, told)


def a_volume(
    name: str,
    *,
    cls: str = "",
    size: str = "1Gi",
    modes: Sequence[str] = ("ReadWriteOnce",),
    reach: Mapping[str, Sequence[str]] | None = None,
    labels: Mapping[str, str] | None = None,
    claim: tuple[str, str] | None = None,
    phase: str = "Available",
    version: str = "1",
    csi: tuple[str, str] | None = None,
    **spec: Any,
) -> PersistentVolume:
    """`reach`: label to the values from which the volume can be reached; `claim`: (name, uid)."""
    body: dict[str, Any] = {
        "capacity": {"storage": size},
        "accessModes": modes,
        "storageClassName": cls,
        **spec,
    }
    if reach is not None:
        expressions = [{"key": k, "operator": "In", "values": list(v)} for k, v in reach.items()]
        terms = [{"matchExpressions": expressions}]
        body["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    if claim is not None:
        body["claimRef"] = {"namespace": "default", "name": claim[0], "uid": claim[1]}
    if csi is not None:
        body["csi"] = {"driver": csi[0], "volumeHandle": csi[1]}
    metadata = {"name": name, "uid": name, "resourceVersion": version, "labels": labels}
    return decode(
        PersistentVolume, {"metadata": metadata, "spec": body, "status": {"phase": phase}}
    )


def a_class(
    name: str,
    provisioner: str = "kubernetes.io/no-provisioner",
    mode: str | None = "WaitForFirstConsumer",
    topologies: Sequence[Mapping[str, Sequence[str]]] = (),
) -> StorageClass:
    terms = [
        {"matchLabelExpressions": [{"key": k, "values": list(v)} for k, v in term.items()]}
        for term in topologies
    ]
    return decode(
        StorageClass,
        {
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": mode,
            "allowedTopologies": terms or None,
        },
    )


def a_csi_node(
    name: str, limits: Mapping[str, int | None] | None = None, moved: str = ""
) -> CsiNode:
    drivers = [
        {"name": driver, "nodeID": name, "allocatable": {"count": limit}}
        for driver, limit in (limits or {}).items()
    ]
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": moved} if moved else None
    metadata = {"name": name, "annotations": annotations}
    return decode(CsiNode, {"metadata": metadata, "spec": {"drivers": drivers}})


def an_attachment(name: str, node: str, attacher: str, volume: str) -> VolumeAttachment:
    spec = {"attacher": attacher, "nodeName": node, "source": {"persistentVolumeName": volume}}
    return decode(VolumeAttachment, {"metadata": {"name": name}, "spec": spec})


def a_driver(name: str, *, capacity: bool | None = None, insists: bool = False) -> CsiDriver:
    spec = {"storageCapacity": capacity, "preventPodSchedulingIfMissing": insists}
    return decode(CsiDriver, {"metadata": {"name": name}, "spec": spec})


def a_capacity(
    name: str,
    cls: str,
    size: str | None,
    topology: Mapping[str, str] | None,
    largest: str | None = None,
) -> CsiStorageCapacity:
    return decode(
        CsiStorageCapacity,
        {
            "metadata": {"name": name, "namespace": "default"},
            "storageClassName": cls,
            "capacity": size,
            "maximumVolumeSize": largest,
            "nodeTopology": None if topology is None else {"matchLabels": dict(topology)},
        },
    )


def a_pod(
    name: str,
    *claims: str,
    ephemeral: Sequence[str] = (),
    disks: Iterable[Mapping[str, Any]] = (),
    node: str = "",
    namespace: str = "default",
    nominated: str = "",
    **spec: Any,
) -> Pod:
    """Volumes in this order: direct claims, ephemeral ones (by volume name), inline disks."""
    volumes: list[dict[str, Any]] = [
        {"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim}}
        for i, claim in enumerate(claims)
    ]
    volumes += [{"name": volume, "ephemeral": {}} for volume in ephemeral]
    volumes += [{"name": f"d{i}", **disk} for i, disk in enumerate(disks)]
    metadata = {"name": name, "namespace": namespace, "uid": name}
    return decode(
        Pod,
        {
            "metadata": metadata,
            "spec": {"volumes": volumes, "nodeName": node, **spec},
            "status": {"nominatedNodeName": nominated},
        },
    )


def see(cluster: Cluster, *objects: Record) -> None:
    for obj in objects:
        cluster.apply(Seen(KIND_OF[type(obj)], obj))


def lose(cluster: Cluster, *objects: Record) -> None:
    for obj in objects:
        cluster.apply(Gone(KIND_OF[type(obj)], obj))


def a_cluster(*objects: Record) -> Cluster:
    cluster = Cluster()
    see(cluster, *objects)
    return cluster


def view_of(cluster: Cluster, *names: str) -> NodeView:
    """All rows, or those of the nodes named."""
    if not names:
        return cluster.view()
    rows = [cluster.nodes.row_of[name] for name in names]
    return NodeView(cluster.nodes, np.array(rows, dtype=np.int32))


def judge(plugin: Any, cluster: Cluster, pod: Pod | PodInfo) -> Status | dict[str, Status]:
    """The PreFilter status if it is none of success, else the rejection of each rejected node."""
    info = cluster.classes.info_of(pod) if isinstance(pod, Pod) else pod
    result = plugin.pre_filter(info)
    if not result.status.is_success:
        found: Status = result.status
        return found
    codes = plugin.filter(info, cluster.view(), result.data)
    return {
        node.name: plugin.explain(info, int(codes[row]))
        for row, node in cluster.nodes.nodes()
        if codes[row]
    }


def rejected(plugin: Any, cluster: Cluster, pod: Pod | PodInfo) -> set[str]:
    """Names of the nodes that a plugin whose PreFilter agrees rejects."""
    verdict = judge(plugin, cluster, pod)
    assert isinstance(verdict, dict), verdict
    return set(verdict)
