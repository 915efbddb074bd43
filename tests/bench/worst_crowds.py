"""Crowds for `tests.bench.worst`: what thousands who wait have to hear, and lists of everything."""

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from asched.core.cluster.facts import Fact, Gone, Listed, Seen
from asched.core.config.defaults import configuration
from asched.core.config.gates import DEFAULT_GATES
from asched.core.cycle.orders import LeaderDied
from asched.core.cycle.turn_limit import TimeLimit
from asched.core.model.decode import decode
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
    Kind,
)
from asched.core.model.pod import Pod
from asched.core.model.workload import Namespace
from asched.host.assemble import build_runners, reconfigured
from tests import volume_builders
from tests.builders import PodBuilder, a_node, a_pod
from tests.plays.dra_worlds import a_claim, a_class, a_device, a_slice, asks
from tests.plays.playbook import Play

Case = tuple[Play, list[Fact], Pod | None]

#: Who waits while something happens, where all of them are to be tried before.
WAITING: Final = 10_000
#: Of a node that takes one volume, where each pod has two.
FULL: Final = {"ebs": 1}


def a_world(nodes: int, pods: int, **config: Any) -> Play:
    """Nodes with twenty labels and a soft taint, and pods that differ in one label."""
    play = Play(**config)
    play.machine.limit = TimeLimit(time.thread_time)
    play.machine.context.counter_s = time.thread_time
    play.turn(*(Seen(NODE, node(i).build()) for i in range(nodes)))
    rest(play)
    play.turn(
        *(
            Seen(POD, a_pod(f"p{i}").on(f"n{i % nodes}").labels(app=f"a{i}").build())
            for i in range(pods)
        )
    )
    rest(play)
    return play


def node(number: int, **more: str) -> Any:
    keys = {f"n{k}": "v" for k in range(20)}
    labels = {"zone": f"z{number % 10}", "rack": f"r{number % 200}", **keys, **more}
    made = a_node(f"n{number}").labels(**labels).taints(f"k=v{number % 50}:PreferNoSchedule")
    return made.allocatable(cpu="32", memory="128Gi", pods="110")


def rest(play: Play) -> None:
    """Until nothing is left to do at once."""
    while play.machine.next_deadline_s() == 0.0:
        play.turn()


def with_a_crowd(nodes: int, pods: int, wish: Callable[[int], PodBuilder]) -> Play:
    """So many wait, and were tried."""
    play = a_world(nodes, pods)
    crowd = [Seen(POD, wish(i).build()) for i in range(WAITING)]
    for start in range(0, len(crowd), 64):
        play.turn(*crowd[start : start + 64])
    rest(play)
    return play


def seen(kind: Kind, obj: Any) -> Fact:
    """With a uid, by which the inbox tells objects apart."""
    metadata = msgspec.structs.replace(obj.metadata, uid=f"uid-{obj.metadata.name}")
    return Seen(kind, msgspec.structs.replace(obj, metadata=metadata))


def unlike(number: int) -> PodBuilder:
    return a_pod(f"w{number}").labels(app=f"w{number}").requests(cpu=f"{100 + number}")


def alike(number: int) -> PodBuilder:
    return a_pod(f"w{number}").requests(cpu="100")


def a_node_comes(nodes: int, pods: int, kilobytes: int) -> Case:
    """Ten thousand wait of which no two are alike; a node comes that is larger than all, and one
    changes.
    """
    play = with_a_crowd(nodes, pods, unlike)
    huge = a_node("huge").allocatable(cpu="50000", memory="128Gi", pods="0")
    return play, [Seen(NODE, huge.build()), Seen(NODE, node(1, more="label").build())], None


def all_too_long(nodes: int, pods: int, kilobytes: int) -> Case:
    """Ten thousand have waited too long, all at once."""
    play = with_a_crowd(nodes, pods, alike)
    play.now_s += 400
    return play, [], None


def other_profiles(nodes: int, pods: int, kilobytes: int) -> Case:
    """Another configuration, while ten thousand wait of which no two are alike."""
    play = with_a_crowd(nodes, pods, unlike)
    effective = configuration({"percentageOfNodesToScore": 99}, DEFAULT_GATES)
    observer = play.machine.context.observer
    order = reconfigured(effective, build_runners(effective, play.parts), (), observer)
    return play, [order], None


def tainted(nodes: int, pods: int, kilobytes: int) -> Case:
    """Ten thousand equal pods wait for room; all nodes get taints, and one comes that has the room
    and a taint: from now on taints reject them.
    """
    play = with_a_crowd(nodes, pods, alike)
    facts = [Seen(NODE, node(i).taints("k=v:NoSchedule").build()) for i in range(nodes)]
    open_ = a_node("open").allocatable(cpu="200", memory="1Gi", pods="9").taints("k=v:NoSchedule")
    return play, [*facts, Seen(NODE, open_.build())], None


def a_node_goes(nodes: int, pods: int, kilobytes: int) -> Case:
    """A node goes with two thousand pods, and comes back."""
    play = a_world(nodes, pods)
    play.turn(
        *(
            Seen(POD, a_pod(f"q{i}").on("n0").labels(app=f"q{i}").build())
            for i in range(WAITING // 5)
        )
    )
    return play, [Gone(NODE, node(0).build()), Seen(NODE, node(0, again="yes").build())], None


def zones_change(nodes: int, pods: int, kilobytes: int) -> Case:
    """All nodes move to other zones, over which two thousand kinds of pods are spread."""
    play = a_world(nodes, pods)
    for i in range(WAITING // 5):
        rule = {
            "maxSkew": 1000,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": f"a{i}"}},
        }
        wish = a_pod(f"s{i}").labels(app=f"a{i}").spec(topologySpreadConstraints=[rule])
        play.turn(Seen(POD, wish.requests(cpu="100").build()))
    rest(play)
    return play, [Seen(NODE, node(i, zone=f"y{i % 10}").build()) for i in range(nodes)], None


def namespace_changes(nodes: int, pods: int, kilobytes: int) -> Case:
    """A namespace with all pods gets labels by which two thousand that wait select."""
    play = a_world(nodes, pods)
    play.turn(Seen(NAMESPACE, decode(Namespace, {"metadata": {"name": "default", "uid": "ns"}})))
    how = "requiredDuringSchedulingIgnoredDuringExecution"
    for i in range(WAITING // 5):
        near = {
            "topologyKey": "zone",
            "labelSelector": {"matchLabels": {"app": f"a{i}"}},
            "namespaceSelector": {"matchLabels": {"l1": "v"}},
        }
        wish = a_pod(f"s{i}").spec(affinity={"podAffinity": {how: [near]}})
        play.turn(Seen(POD, wish.build()))
    rest(play)
    labels = {f"l{i}": "v" for i in range(kilobytes * 30)}
    metadata = {"name": "default", "uid": "ns", "labels": labels}
    return play, [Seen(NAMESPACE, decode(Namespace, {"metadata": metadata}))], None


def large_slices(nodes: int, pods: int, kilobytes: int) -> Case:
    """A thousand ResourceSlices of as many devices as one may have, and a claim for one device: the
    last of all.
    """
    play = a_world(nodes, pods)
    slices: list[Fact] = []
    for n in range(min(1000, nodes)):
        devices = [a_device(f"d{i}", attributes={"kind": f"k{n}-{i}"}) for i in range(128)]
        slices.append(
            seen(RESOURCE_SLICE, a_slice(*devices, name=f"s{n}", pool=f"n{n}", nodeName=f"n{n}"))
        )
    last = f"device.attributes['gpu.example.com'].kind == 'k{len(slices) - 1}-127'"
    claim = a_claim(asks(last))
    inside = msgspec.structs.replace(claim.metadata, namespace="default")
    claim = msgspec.structs.replace(claim, metadata=inside)
    wish = [{"name": "r", "resourceClaimName": claim.metadata.name}]
    pod = a_pod("worst").spec(resourceClaims=wish).build()
    asked = Seen(RESOURCE_CLAIM, claim), Seen(POD, pod)
    return play, [Seen(DEVICE_CLASS, a_class()), *slices, *asked], pod


def csi_nodes(nodes: int, pods: int, kilobytes: int) -> Case:
    """Two thousand wait for volumes of which no node takes one more; then each node's CSINode is
    told anew, with room for some.
    """
    play = a_world(nodes, pods)
    play.turn(*(seen(CSI_NODE, volume_builders.a_csi_node(f"n{i}", FULL)) for i in range(nodes)))
    rest(play)
    names = [f"c{i}" for i in range(2 * (WAITING // 5))]
    for name in names:
        volume = volume_builders.a_volume(name, csi=("ebs", name), claim=("default", name))
        claim = volume_builders.a_claim(name, volume=name)
        play.turn(Seen(PERSISTENT_VOLUME, volume), Seen(PERSISTENT_VOLUME_CLAIM, claim))
    for i in range(0, len(names), 2):
        wish = [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in names[i : i + 2]]
        play.turn(Seen(POD, a_pod(f"s{i}").spec(volumes=wish).build()))
    rest(play)
    told = (volume_builders.a_csi_node(f"n{i}", {"ebs": 2}) for i in range(nodes))
    return play, [seen(CSI_NODE, one) for one in told], None


def nodes_again(nodes: int, pods: int, kilobytes: int) -> Case:
    """All nodes are listed again, each with another label, while ten thousand wait."""
    play = with_a_crowd(nodes, pods, unlike)
    return play, [Listed(NODE, tuple(node(i, again="yes").build() for i in range(nodes)))], None


def waiting_listed(nodes: int, pods: int, kilobytes: int) -> Case:
    """A standby hears a list of as many pods that wait as are placed, the same list again, and
    that the leader died.
    """
    play = a_world(nodes, pods)
    play.machine.is_active = False
    placed = [info.pod for info in play.parts.cluster.placed.values()]
    waits = [a_pod(f"w{i}").metadata(resourceVersion="1").build() for i in range(pods)]
    listed = Listed(POD, (*placed, *waits))
    return play, [listed, Listed(POD, listed.objects), LeaderDied(1, died_young=False)], None


CROWDS: Final[dict[str, Callable[[int, int, int], Case]]] = {
    "thousands wait, a node comes": a_node_comes,
    "thousands waited too long": all_too_long,
    "another configuration": other_profiles,
    "rejected by others than before": tainted,
    "a node goes with its pods": a_node_goes,
    "all nodes change zones": zones_change,
    "a namespace changes": namespace_changes,
    "large slices": large_slices,
    "CSINodes": csi_nodes,
    "all nodes again": nodes_again,
    "a list for a standby": waiting_listed,
}
