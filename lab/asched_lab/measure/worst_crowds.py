"""Cases of `asched_lab.measure.worst` with crowds: changes that concern thousands of waiting pods,
and lists of everything.
"""

from collections.abc import Callable
from typing import Any, Final

from asched.core.cluster.facts import Fact, Gone, Listed
from asched.core.config.defaults import configuration
from asched.core.config.gates import DEFAULT_GATES
from asched.core.cycle.orders import LeadersEnded
from asched.core.model.kinds import (
    CSI_NODE,
    DEVICE_CLASS,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
)
from asched.core.model.pod import Pod
from asched.host.assemble import build_runners, reconfigured
from asched.testing import node
from asched_lab.measure.stepped import (
    ZONES,
    Json,
    SteppedMachine,
    a_node,
    a_pod,
    a_world,
    record_of,
    seen,
)
from asched_lab.measure.worst_pods import REQUIRED

#: The machine, the facts to measure, and the pod among them whose outcome is printed.
Case = tuple[SteppedMachine, list[Fact], Pod | None]
Maker = Callable[[int, int, int], Case]

#: Pods that wait, and have been tried, before the change.
WAITING: Final = 10_000


def with_a_crowd(nodes: int, pods: int, make: Callable[[int], Json]) -> SteppedMachine:
    """A world in which WAITING pods have been tried and wait."""
    world = a_world(nodes, pods)
    crowd = [seen(POD, make(i)) for i in range(WAITING)]
    for start in range(0, len(crowd), 64):
        world.turn(*crowd[start : start + 64])
    world.rest()
    return world


def unlike(number: int) -> Json:
    return a_pod(f"w{number}", labels={"app": f"w{number}"}, cpu=f"{100 + number}")


def alike(number: int) -> Json:
    return a_pod(f"w{number}", cpu="100")


def a_node_comes(nodes: int, pods: int, _kilobytes: int) -> Case:
    """All waiting pods differ; a node comes that is larger than all, and one changes."""
    world = with_a_crowd(nodes, pods, unlike)
    huge = node("huge", cpu="50000", memory="128Gi", pods=0)
    return world, [seen(NODE, huge), seen(NODE, a_node(1, labels={"more": "label"}))], None


def all_too_long(nodes: int, pods: int, _kilobytes: int) -> Case:
    """The waiting pods have waited too long, all at once."""
    world = with_a_crowd(nodes, pods, alike)
    world.now_s += 400
    return world, [], None


def other_profiles(nodes: int, pods: int, _kilobytes: int) -> Case:
    """Another configuration is loaded while all waiting pods differ."""
    world = with_a_crowd(nodes, pods, unlike)
    effective = configuration({"percentageOfNodesToScore": 99}, DEFAULT_GATES)
    observer = world.machine.context.observer
    order = reconfigured(effective, build_runners(effective, world.parts), (), observer)
    return world, [order], None


def tainted(nodes: int, pods: int, _kilobytes: int) -> Case:
    """Equal pods wait for room; all nodes get taints, and one comes that has the room and a taint:
    from now on taints reject the pods.
    """
    world = with_a_crowd(nodes, pods, alike)
    facts: list[Fact] = [seen(NODE, a_node(i, "k=v:NoSchedule")) for i in range(nodes)]
    large = node("large", cpu="200", memory="1Gi", pods=9, taints=["k=v:NoSchedule"])
    return world, [*facts, seen(NODE, large)], None


def a_node_goes(nodes: int, pods: int, _kilobytes: int) -> Case:
    """A node goes with two thousand pods, and comes back."""
    world = a_world(nodes, pods)
    names = [f"q{i}" for i in range(WAITING // 5)]
    world.see(POD, (a_pod(name, on="n0", labels={"app": name}) for name in names))
    gone = Gone(NODE, seen(NODE, a_node(0)).obj)
    return world, [gone, seen(NODE, a_node(0, labels={"again": "yes"}))], None


def zones_change(nodes: int, pods: int, _kilobytes: int) -> Case:
    """All nodes move to other zones, over which two thousand kinds of pods are spread."""
    world = a_world(nodes, pods)
    for i in range(WAITING // 5):
        app = {"app": f"a{i}"}
        rule = {
            "maxSkew": 1000,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": app},
        }
        pod = a_pod(f"s{i}", labels=app, cpu="100", topologySpreadConstraints=[rule])
        world.turn(seen(POD, pod))
    world.rest()
    moved = (a_node(i, labels={"zone": f"y{i % ZONES}"}) for i in range(nodes))
    return world, [seen(NODE, one) for one in moved], None


def a_namespace(labels: int) -> Fact:
    """The namespace of all pods, with so many labels."""
    metadata = {"name": "default", "labels": {f"l{i}": "v" for i in range(labels)}}
    return seen(NAMESPACE, {"metadata": metadata})


def namespace_changes(nodes: int, pods: int, kilobytes: int) -> Case:
    """The namespace of all pods gets labels by which two thousand waiting pods select."""
    world = a_world(nodes, pods)
    world.turn(a_namespace(0))
    for i in range(WAITING // 5):
        near = {
            "topologyKey": "zone",
            "labelSelector": {"matchLabels": {"app": f"a{i}"}},
            "namespaceSelector": {"matchLabels": {"l1": "v"}},
        }
        world.turn(seen(POD, a_pod(f"s{i}", affinity={"podAffinity": {REQUIRED: [near]}})))
    world.rest()
    return world, [a_namespace(kilobytes * 30)], None


def a_device_class() -> Fact:
    return seen(DEVICE_CLASS, {"metadata": {"name": "gpu"}, "spec": {}})


def a_slice(number: int, kinds: list[str]) -> Fact:
    """The devices of a node, one of each kind."""
    devices = [
        {"name": f"d{i}", "attributes": {"kind": {"string": kind}}} for i, kind in enumerate(kinds)
    ]
    pool = {"name": f"n{number}", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": f"n{number}", "devices": devices}
    return seen(RESOURCE_SLICE, {"metadata": {"name": f"s{number}"}, "spec": spec})


def claimed(request: Json, **devices: Any) -> tuple[list[Fact], Pod]:
    """A claim with one request, and a pod that uses it."""
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", **request}
    requests = [{"name": "r0", "exactly": exactly}]
    spec = {"devices": {"requests": requests, **devices}}
    claim = {"metadata": {"name": "c", "namespace": "default"}, "spec": spec}
    pod = a_pod("worst", resourceClaims=[{"name": "r", "resourceClaimName": "c"}])
    return [seen(RESOURCE_CLAIM, claim), seen(POD, pod)], record_of(pod)


def large_slices(nodes: int, pods: int, _kilobytes: int) -> Case:
    """A thousand ResourceSlices of as many devices as one may have, and a claim for one device: the
    last of all.
    """
    world, count = a_world(nodes, pods), min(1000, nodes)
    slices = [a_slice(n, [f"k{n}-{i}" for i in range(128)]) for n in range(count)]
    last = f"device.attributes['gpu.example.com'].kind == 'k{count - 1}-127'"
    facts, pod = claimed({"count": 1, "selectors": [{"cel": {"expression": last}}]})
    return world, [a_device_class(), *slices, *facts], pod


def a_bound_claim(name: str, **volume: Any) -> list[Fact]:
    """A volume, and the claim that is bound to it."""
    shared = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    claim = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {**shared, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound"},
    }
    reference = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
    spec = {**shared, "capacity": {"storage": "1Gi"}, "claimRef": reference, **volume}
    return [
        seen(PERSISTENT_VOLUME, {"metadata": {"name": name}, "spec": spec}),
        seen(PERSISTENT_VOLUME_CLAIM, claim),
    ]


def using(*claims: str) -> list[Json]:
    """Volumes of a pod."""
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]


def csi_nodes(nodes: int, pods: int, _kilobytes: int) -> Case:
    """Two thousand pods wait for two volumes each, where each node takes one; then the CSINode of
    each node is seen again, with room for two.
    """

    def csi_node(number: int, limit: int) -> Fact:
        name = f"n{number}"
        driver = {"name": "ebs", "nodeID": name, "allocatable": {"count": limit}}
        return seen(CSI_NODE, {"metadata": {"name": name}, "spec": {"drivers": [driver]}})

    world = a_world(nodes, pods)
    world.turn(*(csi_node(i, 1) for i in range(nodes)))
    world.rest()
    names = [f"c{i}" for i in range(2 * (WAITING // 5))]
    for name in names:
        world.turn(*a_bound_claim(name, csi={"driver": "ebs", "volumeHandle": name}))
    for i in range(0, len(names), 2):
        world.turn(seen(POD, a_pod(f"s{i}", volumes=using(*names[i : i + 2]))))
    world.rest()
    return world, [csi_node(i, 2) for i in range(nodes)], None


def nodes_again(nodes: int, pods: int, _kilobytes: int) -> Case:
    """All nodes are listed again, each with another label, while all waiting pods differ."""
    world = with_a_crowd(nodes, pods, unlike)
    listed = (seen(NODE, a_node(i, labels={"again": "yes"})).obj for i in range(nodes))
    return world, [Listed(NODE, tuple(listed))], None


def waiting_listed(nodes: int, pods: int, _kilobytes: int) -> Case:
    """A standby gets a list of as many waiting pods as are placed, the same list again, and the
    message that the leader died.
    """
    world = a_world(nodes, pods)
    world.machine.is_active = False
    placed = [info.pod for info in world.parts.cluster.placed.values()]
    waiting = [a_pod(f"w{i}") for i in range(pods)]
    for pod in waiting:
        pod["metadata"]["resourceVersion"] = "1"
    listed = Listed(POD, (*placed, *(record_of(pod) for pod in waiting)))
    return world, [listed, Listed(POD, listed.objects), LeadersEnded(3)], None


CROWDS: Final[dict[str, Maker]] = {
    "thousands wait, a node comes": a_node_comes,
    "thousands waited too long": all_too_long,
    "another configuration": other_profiles,
    "another plugin rejects than before": tainted,
    "a node goes with its pods": a_node_goes,
    "all nodes change zones": zones_change,
    "a namespace changes": namespace_changes,
    "large slices": large_slices,
    "CSINodes": csi_nodes,
    "all nodes again": nodes_again,
    "a list for a standby": waiting_listed,
}
