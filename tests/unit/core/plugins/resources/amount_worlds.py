"""Random clusters of a few nodes whose amounts meet at the edges, and the same as plain objects."""

from random import Random
from typing import Final

from asched.core.model.claim import DeviceClass
from asched.core.model.decode import decode
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from tests.builders import Json, NodeBuilder, PodBuilder, a_cluster, a_node, a_pod
from tests.conformance.twins.picture import Picture, Place

GPU: Final = "example.com/gpu"
NIC: Final = "example.com/nic"
GPUS: Final[Json] = {"metadata": {"name": "gpus"}, "spec": {"extendedResourceName": GPU}}
HUGE: Final = "hugepages-2Mi"


class AmountWorld:
    """Of every other seed each node offers cpu and memory."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lacks = seed % 2 == 0
        nodes = [self._node(f"n{number}") for number in range(5)]
        holders = [self._pod(f"h{n}").on(f"n{self.random.randrange(5)}") for n in range(6)]
        self.waiting = [self._pod(f"w{number}") for number in range(8)]
        classes = [GPUS] if self.random.random() < 0.4 else []
        self.cluster = a_cluster(*nodes, pods=holders, deviceclasses=classes)
        self.picture = Picture(
            tuple(place(node.build(), [pod.build() for pod in holders]) for node in nodes),
            tuple(decode(DeviceClass, one) for one in classes),
        )

    def place_of(self, row: int) -> Place:
        node = self.cluster.nodes.node_at[row]
        return next(p for p in self.picture.places if node and p.node.name == node.name)

    def _node(self, name: str) -> NodeBuilder:
        random, none = self.random, ("0",) if self.lacks else ()
        offered = {
            "cpu": random.choice(("1", "3", "4", *none)),
            "memory": random.choice(("1Gi", "4Gi", *none)),
            "pods": random.choice(("0", "1", "2", "9")),
        }
        more = {GPU: ("0", "2"), NIC: ("1",), HUGE: ("64Mi",), "ephemeral-storage": ("2Gi", "3Gi")}
        for resource, amounts in more.items():
            if random.random() < 0.6:
                offered[resource] = random.choice(amounts)
        return a_node(name).offering_only().allocatable(offered)

    def _pod(self, name: str) -> PodBuilder:
        random = self.random
        sizes = {
            "cpu": ("0", "500m", "1", "2", "3", "4"),
            "memory": ("0", "200Mi", "512Mi", "1Gi", "2Gi", "5Gi"),
            "ephemeral-storage": ("0", "1Gi", "2Gi", "4Gi"),
            GPU: ("0", "1", "2", "3"),
            NIC: ("1",),
            HUGE: ("32Mi", "64Mi"),
        }
        chance = {"cpu": 0.7, "memory": 0.6}
        asked = {
            resource: random.choice(amounts)
            for resource, amounts in sizes.items()
            if random.random() < chance.get(resource, 0.15)
        }
        pod = a_pod(name).requests(asked)
        if random.random() < 0.2:
            pod.container(**({"cpu": "1"} if random.random() < 0.5 else {}))
        if random.random() < 0.1:
            pod.spec(resources={"requests": {"cpu": "2", "memory": "2Gi", HUGE: "64Mi"}})
        return pod


def place(node: Node, pods: list[Pod]) -> Place:
    return Place(node, tuple(pod for pod in pods if pod.spec.node_name == node.name))
