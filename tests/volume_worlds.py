"""Random small clusters full of storage, and random changes to them, the same for the same seed."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

import msgspec

from asched.core.cluster.cluster import Cluster
from asched.core.model.pod import Pod
from tests.conformance.twins.storage import Storage
from tests.volume_builders import (
    HOST,
    ZONE,
    a_capacity,
    a_claim,
    a_class,
    a_csi_node,
    a_driver,
    a_node,
    a_pod,
    a_volume,
    an_attachment,
    lose,
    see,
)

NODES: Final = [f"n{i}" for i in range(5)]
CLAIMS: Final = [f"c{i}" for i in range(8)]
#: Claims made for pods, if their owners are right.
MADE: Final = [f"{pod}-e" for pod in ("waiting-0", "waiting-1", "placed-0", "placed-1", "placed-2")]
VOLUMES: Final = [f"pv{i}" for i in range(9)]
CLASSES: Final = ["local", "dyn", "zonal", "now", "gone"]
DRIVERS: Final = ["csi-a", "csi-b", "ebs.csi.aws.com"]
ZONES: Final = "ab"
SIZES: Final = ["1Gi", "2Gi", "3Gi"]


class World:
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
