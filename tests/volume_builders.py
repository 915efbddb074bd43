"""Storage: objects in a line each, what plugins say of a cluster of them, and random clusters full
of storage that change by a seed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

import msgspec
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
from tests.conformance.twins.storage import Storage

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


NODES: Final = [f"n{i}" for i in range(5)]
CLAIMS: Final = [f"c{i}" for i in range(8)]
#: Claims made for pods, if their owners are right.
MADE: Final = [f"{pod}-e" for pod in ("waiting-0", "waiting-1", "placed-0", "placed-1", "placed-2")]
VOLUMES: Final = [f"pv{i}" for i in range(9)]
CLASSES: Final = ["local", "dyn", "zonal", "now", "gone"]
DRIVERS: Final = ["csi-a", "csi-b", "ebs.csi.aws.com"]
ZONES: Final = "ab"
SIZES: Final = ["1Gi", "2Gi", "3Gi"]


class RandomWorld:
    """A cluster and, beside it, the plain objects it was shown."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = Cluster()
        self.storage = Storage()
        self._version = 0
        for name in NODES[: self.random.randint(2, 5)]:
            self.show("nodes", self.node(name))
        for name in CLASSES[:-1]:
            self.show("classes", self.storage_class(name))
        for name in DRIVERS:
            self.show("drivers", a_driver(name, capacity=self.random.random() < 0.5))
        for name in VOLUMES:
            self.show("volumes", self.volume(name))
        for name in [*CLAIMS, *MADE]:
            self.show("claims", self.claim(name))
        for _ in range(40):
            self.change()

    def show(self, room: str, obj: Any) -> None:
        key = obj.key if isinstance(obj, Pod) else obj.metadata.key
        getattr(self.storage, room)[key] = obj
        see(self.cluster, obj)

    def hide(self, room: str, key: str) -> None:
        obj = getattr(self.storage, room).pop(key, None)
        if obj is not None:
            lose(self.cluster, obj)

    def changes(self, count: int) -> Iterator[None]:
        for _ in range(count):
            self.change()
            yield

    def change(self) -> None:
        """One object comes, changes or goes."""
        random = self.random
        room = random.choice(
            ["claims"] * 4 + ["volumes"] * 4 + ["pods"] * 4 + ["nodes", "csi_nodes", "csi_nodes"]
            + ["attachments", "attachments", "capacities", "classes"]
        )  # fmt: skip
        known = sorted(getattr(self.storage, room))
        keep = 2 if room == "nodes" else 0
        if len(known) > keep and random.random() < (0.1 if room in ("claims", "volumes") else 0.25):
            self.hide(room, random.choice(known))
            return
        match room:
            case "claims":
                self.show(room, self.claim(random.choice([*CLAIMS, *MADE])))
            case "volumes":
                self.show(room, self.volume(random.choice(VOLUMES)))
            case "pods":
                pod = self.pod(f"placed-{random.randrange(12)}", node=random.choice(NODES))
                self.hide(room, pod.key)
                self.show(room, pod)
            case "nodes":
                self.show(room, self.node(random.choice(NODES)))
            case "csi_nodes":
                limits = {d: random.choice((None, 0, 1, 2, 3)) for d in DRIVERS}
                self.show(room, a_csi_node(random.choice(NODES), limits))
            case "attachments":
                name, volume = f"at{random.randrange(6)}", random.choice(VOLUMES)
                node = random.choice(NODES)
                self.show(room, an_attachment(name, node, random.choice(DRIVERS), volume))
            case "capacities":
                self.show(room, self.capacity(f"cap{random.randrange(3)}"))
            case "classes":
                self.show(room, self.storage_class(random.choice(CLASSES)))

    def node(self, name: str) -> Any:
        labels = {} if self.random.random() < 0.7 else {"disk": self.random.choice("xy")}
        node = a_node(name, self.random.choice(["", *ZONES]), **labels)
        if self.random.random() < 0.2:
            beta = {"failure-domain.beta.kubernetes.io/zone": self.random.choice(ZONES)}
            metadata = msgspec.structs.replace(node.metadata, labels={**node.labels, **beta})
            node = msgspec.structs.replace(node, metadata=metadata)
        return node

    def storage_class(self, name: str) -> Any:
        zones = [{ZONE: [self.random.choice(ZONES)]}] if name == "zonal" else []
        provisioner = {"local": "kubernetes.io/no-provisioner", "now": "csi-a"}.get(
            name, self.random.choice(DRIVERS)
        )
        mode = "Immediate" if name == "now" else "WaitForFirstConsumer"
        return a_class(name, provisioner, mode, zones)

    def claim(self, name: str) -> Any:
        random = self.random
        self._version += 1
        state = random.choice(("bound", "bound", "free", "free", "free", "half", "selected"))
        return a_claim(
            name,
            version=str(self._version),
            cls=random.choice(CLASSES if random.random() < 0.1 else CLASSES[:3]),
            size=random.choice(SIZES),
            volume=random.choice(VOLUMES) if state in ("bound", "half") else "",
            bound=state == "bound",
            modes=[random.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"))],
            selected=random.choice(NODES) if state == "selected" else None,
            owner=name.removesuffix("-e") if name in MADE and random.random() < 0.8 else "",
            deleting=random.random() < 0.03,
            phase="Lost" if random.random() < 0.03 else "Pending",
            selector={"matchLabels": {"disk": "x"}} if random.random() < 0.15 else None,
        )

    def volume(self, name: str) -> Any:
        random = self.random
        reach: dict[str, list[str]] | None = None
        match random.choice(("any", "host", "zone", "both", "nowhere")):
            case "host":
                reach = {HOST: random.sample(NODES, random.choice((1, 1, 2)))}
            case "zone":
                reach = {ZONE: [random.choice(ZONES)]}
            case "both":
                reach = {ZONE: [random.choice(ZONES)], "disk": ["x", "y"]}
            case "nowhere" if random.random() < 0.3:
                reach = {HOST: ["elsewhere"]}
        zones = random.choice(("a", "a__b", "b", "__"))
        prefix = random.choice(("topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/"))
        labels = (
            {f"{prefix}zone": zones} if random.random() < 0.3 else {"disk": random.choice("xy")}
        )
        claim = None
        if random.random() < 0.2:
            named = random.choice(CLAIMS)
            claim = (named, random.choice(("", f"uid-{named}", "other")))
        return a_volume(
            name,
            cls=random.choice(CLASSES[:3]),
            size=random.choice(SIZES),
            modes=random.choice((["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteOncePod"])),
            reach=reach,
            labels=labels,
            claim=claim,
            phase=random.choice(("Available", "Available", "Available", "Bound")),
            csi=(random.choice(DRIVERS), random.choice(("h1", "h2", name)))
            if random.random() < 0.8
            else None,
        )

    def capacity(self, name: str) -> Any:
        random = self.random
        topology = random.choice(({}, {ZONE: random.choice(ZONES)}, None))
        size, largest = random.choice((*SIZES, None)), random.choice((None, None, "1Gi"))
        return a_capacity(name, random.choice(CLASSES[:3]), size, topology, largest)

    def pod(self, name: str, *, node: str = "") -> Pod:
        random = self.random
        claims = random.sample(CLAIMS, random.choice((0, 1, 1, 1, 2, 3)))
        disks = [self._disk() for _ in range(random.choice((0, 0, 0, 1)))]
        ephemeral = ["e"] if f"{name}-e" in MADE and random.random() < 0.5 else []
        return a_pod(name, *claims, ephemeral=ephemeral, disks=disks, node=node)

    def waiting(self, number: int) -> Pod:
        return self.pod(f"waiting-{number % 4}")

    def _disk(self) -> dict[str, Any]:
        random = self.random
        read_only = random.random() < 0.5
        match random.choice(("gce", "ebs", "iscsi", "rbd")):
            case "gce":
                disk = {"pdName": random.choice("pq"), "readOnly": read_only}
                return {"gcePersistentDisk": disk}
            case "ebs":
                disk = {"volumeID": f"vol-{random.choice('pq')}", "readOnly": read_only}
                return {"awsElasticBlockStore": disk}
            case "iscsi":
                return {"iscsi": {"iqn": random.choice("pq"), "readOnly": read_only}}
        monitors = random.sample(["m1", "m2", "m3"], 2)
        return {"rbd": {"monitors": monitors, "pool": "p", "image": "i", "readOnly": read_only}}
