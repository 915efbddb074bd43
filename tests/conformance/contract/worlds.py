"""Random small clusters with every feature a rule may look at, the same for the same seed.

Few distinct keys, values, ports and images, so that collisions are the rule and not the exception.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from msgspec.structs import replace

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.config import args as config
from asched.core.model.claim import DeviceClass
from asched.core.model.decode import decode
from asched.core.model.kinds import DEVICE_CLASS, NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from tests.builders import Json, NodeBuilder, PodBuilder, a_node, a_pod, term
from tests.conformance.twins.picture import Picture, Place

GPU, FPGA, HUGE = "example.com/gpu", "example.com/fpga", "hugepages-2Mi"
IMAGES = ("app", "registry:5000/web", "db:v2", "base@sha256:aa")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "Other")
TEAMS = ("red", "blue")  # read by the example of docs/in-tree-plugins.md


@dataclass
class World:
    """A cluster, the objects it was made of, and pods that wait."""

    cluster: Cluster
    nodes: dict[str, Node]
    placed: dict[str, Pod]
    waiting: list[Pod]
    device_classes: tuple[DeviceClass, ...]

    def picture(self) -> Picture:
        places = [
            Place(node, tuple(p for p in self.placed.values() if p.spec.node_name == name))
            for name, node in self.nodes.items()
        ]
        return Picture(tuple(places), self.device_classes)

    def see_node(self, node: Node) -> None:
        self.nodes[node.name] = node
        self.cluster.apply(Seen(NODE, node))

    def lose_node(self, name: str) -> None:
        self.cluster.apply(Gone(NODE, self.nodes.pop(name)))

    def see_pod(self, pod: Pod) -> None:
        self.placed[pod.key] = pod
        self.cluster.apply(Seen(POD, pod))

    def lose_pod(self, key: str) -> None:
        self.cluster.apply(Gone(POD, self.placed.pop(key)))


def a_world(seed: int, *, rejoined: bool = True) -> World:
    """Up to nine nodes with up to twenty pods; some rows were freed, some taken again."""
    random = Random(seed)
    classes = _device_classes(random)
    world = World(Cluster(), {}, {}, [], classes)
    for device_class in classes:
        world.cluster.apply(Seen(DEVICE_CLASS, device_class))
    names = [f"node-{number}" for number in range(random.randint(1, 9))]
    for name in names:
        world.see_node(random_node(random, name).build())
    if rejoined and len(names) > 2:
        for name in random.sample(names, 2):
            world.lose_node(name)
        world.see_node(random_node(random, "newcomer").build())
    for number in range(random.randint(0, 20)):
        pod = random_pod(random, f"placed-{number}").on(random.choice(list(world.nodes)))
        if _fits_ports(pod.build(), world):
            world.see_pod(pod.build())
    waiting = [random_pod(random, f"waiting-{number}") for number in range(6)]
    waiting[5].on(random.choice((*names, "")))  # NodeName's
    world.waiting = [pod.build() for pod in waiting]
    return world


def changes(world: World, seed: int, count: int) -> Iterator[None]:
    """Change the world again and again: nodes and pods come, go, and are replaced."""
    random = Random(seed)
    for number in range(count):
        names = list(world.nodes)
        match random.choice(("node", "node", "gone", "pod", "pod", "done", "label")):
            case "node":
                known = random.choice([*names, f"late-{number}"])
                world.see_node(random_node(random, known).build())
            case "gone" if len(names) > 1:
                name = random.choice(names)
                for key in [k for k, p in world.placed.items() if p.spec.node_name == name]:
                    world.lose_pod(key)
                world.lose_node(name)
            case "pod":
                pod = random_pod(random, f"late-{number}").on(random.choice(names)).build()
                if _fits_ports(pod, world):
                    world.see_pod(pod)
            case "label" if world.placed:
                world.see_pod(_relabelled(random, random.choice(list(world.placed.values()))))
            case "done" if world.placed:
                world.lose_pod(random.choice(list(world.placed)))
        yield


def _relabelled(random: Random, pod: Pod) -> Pod:
    """The pod under other labels, as API servers add some when they bind it."""
    labels = {"app": random.choice("xyz"), "zone": random.choice("abc")}
    return replace(pod, metadata=replace(pod.metadata, labels=labels))


def random_node(random: Random, name: str) -> NodeBuilder:
    node = a_node(name).labels({"kubernetes.io/hostname": name})
    for key, values in (("zone", "abc"), ("disk", ("ssd", "hdd", "")), ("size", "1379")):
        if random.random() < 0.7:
            node.labels({key: random.choice(values)})
    for _ in range(random.choice((0, 0, 1, 2))):
        taint = f"{random.choice('ab')}={random.choice('12')}:{random.choice(EFFECTS)}"
        node.taints(taint)
    if random.random() < 0.2:
        node.cordoned()
    node.offering_only(
        cpu=random.choice(("0", "2", "3900m", "8")),
        memory=random.choice(("2Gi", "4Gi", "7841Mi")),
        pods=random.choice(("0", "3", "110", "110")),
        ephemeral_storage=random.choice(("0", "10Gi")),
    )
    for name_, amounts in ((GPU, "024"), (FPGA, "012"), (HUGE, ("0", "64Mi"))):
        if random.random() < 0.5:
            node.allocatable({name_: random.choice(amounts)})
    for image in IMAGES:
        if random.random() < 0.4:
            full = image if ":" in image.split("/")[-1] else f"{image}:latest"
            node.image(full, f"mirror/{full}", mib=400 + 97 * IMAGES.index(image))
    if random.random() < 0.5:
        node.features(" ".join(random.sample(FEATURES, random.randint(1, 3))))
    if random.random() < 0.5:
        node.labels(team=random.choice(TEAMS))
    return node


def random_pod(random: Random, name: str) -> PodBuilder:
    pod = a_pod(name).labels(app=random.choice("xyz")).image(random.choice(IMAGES))
    pod.requests(_amounts(random))
    if random.random() < 0.3:
        pod.container(random.choice(IMAGES), cpu="150m")
    if random.random() < 0.3:
        pod.init(random.choice(IMAGES), sidecar=random.random() < 0.5, memory="1100Mi")
    if random.random() < 0.2:
        pod.spec(overhead={"cpu": "10m", "memory": "20Mi"})
    if random.random() < 0.15:
        pod.spec(resources={"requests": {"cpu": "1500m", HUGE: "4Mi"}})
    for _ in range(random.choice((0, 0, 1, 2))):
        pod.tolerates(random.choice(("a", "b=1", "a=2:NoSchedule", "*", "b:PreferNoSchedule")))
    if random.random() < 0.25:
        pod.selects(zone=random.choice("abz"))
    if random.random() < 0.3:
        pod.requires_nodes(*(_term(random) for _ in range(random.randint(1, 2))))
    if random.random() < 0.4:
        pod.prefers_nodes(*((random.randint(1, 50), _term(random)) for _ in range(2)))
    if random.random() < 0.3:
        ip = random.choice(("", "0.0.0.0", "10.0.0.1", "::"))
        pod.host_port(random.choice((80, 81)), random.choice(("", "TCP", "UDP")), ip)
    if random.random() < 0.15:
        pod.spec(hostNetwork=True, hostUsers=False)
    if random.random() < 0.1:
        pod.first["restartPolicyRules"] = [{"action": "RestartAllContainers"}]
    if random.random() < 0.4:
        pod.labels(team=random.choice(TEAMS))
    return pod


def fit_args() -> list[config.NodeResourcesFitArgs]:
    """Every strategy, over two and over five resources."""
    many = tuple(
        config.ResourceSpec(name, weight)
        for name, weight in (
            ("cpu", 3),
            ("memory", 1),
            ("ephemeral-storage", 2),
            (GPU, 5),
            (HUGE, 1),
        )
    )
    corners = ((0, 0), (30, 10), (70, 3), (100, 8))
    curve = config.RequestedToCapacityRatio(
        tuple(config.UtilizationShapePoint(x, y) for x, y in corners)
    )
    strategies = [
        config.ScoringStrategy(kind, resources, curve if kind.startswith("Requested") else None)
        for kind in ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
        for resources in (config.CPU_AND_MEMORY, many)
    ]
    ignoring = config.NodeResourcesFitArgs((GPU,), ("example.org",))
    return [ignoring, *(config.NodeResourcesFitArgs((), (), s) for s in strategies)]


def balance_args() -> list[config.NodeResourcesBalancedAllocationArgs]:
    many = tuple(config.ResourceSpec(name) for name in ("cpu", "memory", GPU, "ephemeral-storage"))
    return [
        config.NodeResourcesBalancedAllocationArgs(),
        config.NodeResourcesBalancedAllocationArgs(many),
        config.NodeResourcesBalancedAllocationArgs(many[:1]),
    ]


def affinity_args() -> list[config.NodeAffinityArgs]:
    required = {"nodeSelectorTerms": [term("zone In a,b"), term("disk DoesNotExist")]}
    preferred = [{"weight": 7, "preference": term("size Gt 2")}]
    return [
        config.NodeAffinityArgs(),
        config.NodeAffinityArgs(
            {
                "requiredDuringSchedulingIgnoredDuringExecution": required,
                "preferredDuringSchedulingIgnoredDuringExecution": preferred,
            }
        ),
    ]


def _amounts(random: Random) -> Json:
    choices: dict[str, tuple[Any, ...]] = {
        "cpu": ("0", "100m", "1", "0.5m"),
        "memory": ("0", "300Mi", "1Gi", "1.5M"),
        "ephemeral-storage": ("1Gi", "11Gi"),
        GPU: ("0", "1", "3"),
        FPGA: ("1",),
        HUGE: ("2Mi", "100Mi"),
        "requests.unknown": ("5",),
    }
    likely = {"cpu": 0.7, "memory": 0.7}
    return {
        name: random.choice(amounts)
        for name, amounts in choices.items()
        if random.random() < likely.get(name, 0.12)
    }


def _term(random: Random) -> Json:
    choices = (
        "zone In a,b", "zone NotIn a", "disk Exists", "disk DoesNotExist", "size Gt 2",
        "size Lt 7", "zone In z", "disk In ssd",
    )  # fmt: skip
    fields = ["metadata.name In node-1"] if random.random() < 0.15 else []
    if random.random() < 0.1:
        return term(fields=["metadata.name NotIn node-2"])
    return term(*random.sample(choices, random.randint(0 if fields else 1, 2)), fields=fields)


def _device_classes(random: Random) -> tuple[DeviceClass, ...]:
    if random.random() < 0.6:
        return ()
    mapping = {"metadata": {"name": "fpga"}, "spec": {"extendedResourceName": FPGA}}
    return (decode(DeviceClass, mapping),)


def _fits_ports(pod: Pod, world: World) -> bool:
    """Two pods on one node never hold the same host port: no scheduler would have put them."""
    wanted = _ports(pod)
    return not any(
        wanted & _ports(other)
        for other in world.placed.values()
        if other.spec.node_name == pod.spec.node_name
    )


def _ports(pod: Pod) -> set[int]:
    return {port.host_port for c in pod.spec.containers or () for port in c.ports or ()}
