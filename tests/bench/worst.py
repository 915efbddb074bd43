"""The longest turn that the worst object of each kind costs: `python -m tests.bench.worst`.

    python -m tests.bench.worst [--nodes N] [--pods M] [--kilobytes K] [--cases "a;b"] [--times T]

On N nodes with M placed pods of distinct labels, in process: each case shows the machine one object
as large as the API server accepts (K kB), or a crowd of them, and runs turns until nothing is left
to do. Then a neighbour comes, a plain pod of the same namespace, and the pod is seen to go where it
was placed. Columns, all in processor time of the machine's thread: the longest turn, the longest of
the neighbour's, all turns, how many, what the collector of garbage took at most (it runs as in
production, after turns, and its pauses belong to them), and what became of the pod. Intake of the
object itself is a turn, too; of a crowd, as many at once as the inbox hands out. With `--times`,
each case is lived so often, and the best of its longest turns is told: what else runs on the
machine makes turns longer, never shorter.
"""

# ruff: noqa: T201 - a command prints

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from asched.core.cluster.facts import Bound, Fact, Gone, Listed, Seen
from asched.core.framework.effects import Bind
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    DEVICE_CLASS,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    POD_GROUP,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
)
from asched.core.model.pod import Pod
from asched.core.model.workload import Namespace
from asched.host.memory import Collector
from asched.kube.inbox import Inbox
from tests import volume_builders
from tests.bench import worst_crowds
from tests.bench.worst_crowds import CROWDS, a_world
from tests.builders import a_node, a_pod
from tests.plays.dra_worlds import a_claim, a_class, a_device, a_slice, asks
from tests.plays.gang_plays import GANGS, a_group, a_member
from tests.plays.playbook import Play
from tests.unit.core.cycle.group_stage import GATES, member
from tests.unit.core.cycle.worst_objects import WORST
from tests.unit.core.preemption import group_stage
from tests.unit.core.preemption.disruption_budgets import budget

#: Turns after which a case is given up.
TURNS_MAX: Final = 5_000
#: More of them no API server would take.
THINGS_MAX: Final = 20_000

Case = tuple[Play, list[Fact], Pod | None]


def of_one_pod(name: str) -> Callable[[int, int, int], Case]:
    def case(nodes: int, pods: int, kilobytes: int) -> Case:
        each = len(msgspec.json.encode(WORST[name](a_pod("worst"), 1000).build())) / 1000
        count = min(int(kilobytes * 1000 / each), THINGS_MAX)
        pod = WORST[name](a_pod("worst"), count).build()
        return a_world(nodes, pods), [Seen(POD, pod)], pod

    return case


def devices(nodes: int, pods: int, kilobytes: int) -> Case:
    """Four devices with an attribute in common, of which every node has three of each."""
    play = a_world(nodes, pods)
    kinds = [a_device(f"d{i}", attributes={"kind": f"k{i // 3}"}) for i in range(99)]
    slices = [
        Seen(RESOURCE_SLICE, a_slice(*kinds, name=f"s{i}", pool=f"n{i}", nodeName=f"n{i}"))
        for i in range(nodes)
    ]
    play.turn(Seen(DEVICE_CLASS, a_class()), *slices)
    alike = [{"requests": [], "matchAttribute": "gpu.example.com/kind"}]
    claim = a_claim(asks(count=4), constraints=alike)
    claim = msgspec.structs.replace(
        claim, metadata=msgspec.structs.replace(claim.metadata, namespace="default")
    )
    wish = [{"name": "r", "resourceClaimName": claim.metadata.name}]
    pod = a_pod("worst").spec(resourceClaims=wish).build()
    return play, [Seen(RESOURCE_CLAIM, claim), Seen(POD, pod)], pod


def budgets(nodes: int, pods: int, kilobytes: int) -> Case:
    """Two thousand disruption budgets that all speak for every pod, and a pod that preempts."""
    play = a_world(nodes, pods)
    exists = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    play.turn(*(Seen(POD_DISRUPTION_BUDGET, budget(f"b{i}", exists, 1)) for i in range(2000)))
    big = [
        Seen(POD, a_pod(f"q{i}").on(f"n{i}").labels(app="q").requests(cpu="32").build())
        for i in range(nodes)
    ]
    play.turn(*big)
    pod = a_pod("worst").requests(cpu="1").spec(priority=1000).build()
    return play, [Seen(POD, pod)], None


def gang(nodes: int, pods: int, kilobytes: int) -> Case:
    """A gang of two thousand."""
    play = a_world(nodes, pods, **GANGS)
    play.turn(Seen(POD_GROUP, a_group(min_count=2000)))
    return play, [Seen(POD, a_member(f"m{i}").build()) for i in range(2000)], None


def selected(nodes: int, pods: int, kilobytes: int) -> Case:
    """One term of anti-affinity with ten thousands of values."""
    values = [f"a{i}" for i in range(kilobytes * 100)]
    terms = [
        {
            "topologyKey": "zone",
            "labelSelector": {
                "matchExpressions": [{"key": "app", "operator": "NotIn", "values": values}]
            },
        }
    ]
    how = "requiredDuringSchedulingIgnoredDuringExecution"
    pod = a_pod("worst").labels(app="a1").spec(affinity={"podAntiAffinity": {how: terms}}).build()
    return a_world(nodes, pods), [Seen(POD, pod)], pod


def big_node(nodes: int, pods: int, kilobytes: int) -> Case:
    """A node with ten thousand labels and as many taints comes, while pods wait, and changes."""
    play = a_world(nodes, pods)
    waits = a_pod("worst").requests(cpu="100").build()
    play.turn(Seen(POD, waits))
    count = kilobytes * 7
    node = a_node("huge").labels(**{f"l{i}": f"v{i}" for i in range(count)})
    node.taints(" ".join(f"t{i}=v:NoSchedule" for i in range(count)))
    other = a_node("huge").labels(**{f"l{i}": f"w{i}" for i in range(count)})
    return play, [Seen(NODE, node.build()), Seen(NODE, other.build())], waits


def volume(nodes: int, pods: int, kilobytes: int) -> Case:
    """A claim bound to a volume with node affinity of ten thousand terms."""
    play = a_world(nodes, pods)
    terms = [
        {"matchExpressions": [{"key": f"n{i % 20}", "operator": "In", "values": [f"v{i}"]}]}
        for i in range(kilobytes * 10)
    ]
    terms.append({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]})
    bound = volume_builders.a_volume("v", nodeAffinity={"required": {"nodeSelectorTerms": terms}})
    claim = volume_builders.a_claim("c", volume="v")
    play.turn(Seen(PERSISTENT_VOLUME, bound), Seen(PERSISTENT_VOLUME_CLAIM, claim))
    wish = [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]
    pod = a_pod("worst").spec(volumes=wish).build()
    return play, [Seen(POD, pod)], pod


def namespace(nodes: int, pods: int, kilobytes: int) -> Case:
    """A namespace with ten thousands of labels, which terms of placed pods select by."""
    play = a_world(nodes, pods)
    how = "requiredDuringSchedulingIgnoredDuringExecution"
    apart = [
        {
            "topologyKey": "zone",
            "labelSelector": {"matchLabels": {"app": "nobody"}},
            "namespaceSelector": {"matchLabels": {"l1": "v"}},
        }
    ]
    pod = a_pod("picky").on("n0").spec(affinity={"podAntiAffinity": {how: apart}})
    play.turn(Seen(POD, pod.build()))
    labels = {f"l{i}": "v" for i in range(kilobytes * 30)}
    metadata = {"name": "default", "uid": "ns", "labels": labels}
    return play, [Seen(NAMESPACE, decode(Namespace, {"metadata": metadata}))], None


def exodus(nodes: int, pods: int, kilobytes: int) -> Case:
    """All placed pods go at once, and a thousand wait."""
    play = a_world(nodes, pods)
    play.turn(
        *(Seen(POD, a_pod(f"w{i}").requests(cpu=f"{100 + i % 50}").build()) for i in range(1000))
    )
    while play.machine.next_deadline_s() == 0.0:
        play.turn()
    return play, [Gone(POD, info.pod) for info in list(play.parts.cluster.placed.values())], None


def a_list(nodes: int, pods: int, kilobytes: int) -> Case:
    """A list of as many pods again, as after a restart."""
    listed = tuple(
        a_pod(f"l{i}").on(f"n{i % nodes}").labels(app=f"l{i}").build() for i in range(pods)
    )
    play = a_world(nodes, 0)
    return play, [Listed(POD, listed)], None


def room_for_a_gang(nodes: int, pods: int, kilobytes: int) -> Case:
    """A gang of a hundred that needs room on full nodes."""
    play = a_world(nodes, 0, **GANGS)
    each = max(pods // nodes, 1)
    size = f"{32000 // each}m"
    play.turn(
        *(
            Seen(POD, a_pod(f"p{i}").on(f"n{i % nodes}").requests(cpu=size).build())
            for i in range(each * nodes)
        )
    )
    play.turn(Seen(POD_GROUP, a_group(min_count=100)))
    wish = {"priority": 1000}
    return (
        play,
        [Seen(POD, a_member(f"m{i}").requests(cpu="16").spec(**wish).build()) for i in range(100)],
        None,
    )


def room_by_many(nodes: int, pods: int, kilobytes: int) -> Case:
    """A gang of a thousand, a node for two of them: as many pods have to go as a tenth of all."""
    play = a_world(nodes, 0, gates=GATES)
    each = max(pods // nodes, 1)
    size, count = f"{32000 // each}m", max(nodes // 5, 1)
    for start in range(0, each * nodes, 1000):
        some = range(start, start + 1000)
        play.turn(
            *(
                Seen(POD, a_pod(f"p{i}").on(f"n{i % nodes}").requests(cpu=size).build())
                for i in some
            )
        )
    play.turn(Seen(POD_GROUP, group_stage.a_group("crew", priority=1000, min_count=count)))
    crew = [Seen(POD, member(f"m{i}", "crew", "16", 1000).build()) for i in range(count)]
    return play, crew, None


def taints(nodes: int, pods: int, kilobytes: int) -> Case:
    """Every node gets five taints of its own, and a pod tolerates as many as it can say."""
    play = a_world(nodes, pods)
    known = play.parts.cluster.nodes.node_at
    tainted = []
    for i in range(nodes):
        node = a_node(f"n{i}").labels(**known[i].labels).allocatable(cpu="32", pods="110")
        node.taints(" ".join(f"k{k}-{i}=v{i}:PreferNoSchedule" for k in range(5)))
        tainted.append(Seen(NODE, node.build()))
    pod = WORST["tolerations"](a_pod("worst"), kilobytes * 10).build()
    return play, [*tainted, Seen(POD, pod)], pod


def wide_budgets(nodes: int, pods: int, kilobytes: int) -> Case:
    """Budgets of ten thousand expressions each speak for everybody, and a pod preempts."""
    play = a_world(nodes, pods)
    absent = [{"key": f"x{i}", "operator": "DoesNotExist"} for i in range(kilobytes * 10)]
    wide = [
        Seen(POD_DISRUPTION_BUDGET, budget(f"b{i}", {"matchExpressions": absent}, 1))
        for i in range(5)
    ]
    play.turn(
        *(
            Seen(POD, a_pod(f"q{i}").on(f"n{i}").labels(app=f"q{i}").requests(cpu="32").build())
            for i in range(nodes)
        )
    )
    pod = a_pod("worst").requests(cpu="1").spec(priority=1000).build()
    return play, [*wide, Seen(POD, pod)], None


def owners(nodes: int, pods: int, kilobytes: int) -> Case:
    """A pod of ten thousand owners."""
    metadata = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"r{i}", "uid": f"u{i}"}
        for i in range(kilobytes * 12)
    ]
    pod = a_pod("worst").metadata(ownerReferences=metadata).build()
    return a_world(nodes, pods), [Seen(POD, pod)], pod


def many_groups(nodes: int, pods: int, kilobytes: int) -> Case:
    """Five thousand groups that lack a pod each; then a node changes, and the pods come."""
    play, count = a_world(nodes, pods, **GANGS), worst_crowds.WAITING // 2
    groups = [Seen(POD_GROUP, a_group(f"g{i}", 2)) for i in range(count)]
    first = [Seen(POD, a_member(f"m{i}", f"g{i}", "20").build()) for i in range(count)]
    node = a_node("n1").labels(zone="z1").allocatable(cpu="33", memory="128Gi", pods="110")
    second = [Seen(POD, a_member(f"s{i}", f"g{i}", "20").build()) for i in range(count)]
    return play, [*groups, *first, Seen(NODE, node.build()), *second], None


def room_among_groups(nodes: int, pods: int, kilobytes: int) -> Case:
    """A group makes room on nodes full of groups of twenty that go whole."""
    play = a_world(nodes, 0, gates=GATES)
    each = max(pods // nodes, 1)
    size = f"{32000 // each}m"
    count = each * nodes
    play.turn(
        *(
            Seen(POD_GROUP, group_stage.a_group(f"g{i}", priority=10, whole=True))
            for i in range(0, count, 20)
        )
    )
    play.turn(
        *(
            Seen(POD, member(f"p{i}", f"g{i // 20 * 20}", size, 10).on(f"n{i % nodes}").build())
            for i in range(count)
        )
    )
    crew = group_stage.a_group("crew", priority=1000, min_count=100)
    return (
        play,
        [
            Seen(POD_GROUP, crew),
            *(Seen(POD, member(f"m{i}", "crew", "16", 1000).build()) for i in range(100)),
        ],
        None,
    )


def exodus_of_many(nodes: int, pods: int, kilobytes: int) -> Case:
    """Two thousand pods go, and five thousand wait of which no two are alike."""
    play = a_world(nodes, pods)
    waits = [
        Seen(POD, a_pod(f"w{i}").labels(app=f"w{i}").requests(cpu=f"{100 + i}").build())
        for i in range(worst_crowds.WAITING // 2)
    ]
    for start in range(0, len(waits), 64):
        play.turn(*waits[start : start + 64])
    while play.machine.next_deadline_s() == 0.0:
        play.turn()
    placed = list(play.parts.cluster.placed.values())[:2000]
    return play, [Gone(POD, info.pod) for info in placed], None


CASES: Final[dict[str, Callable[[int, int, int], Case]]] = {
    **{name: of_one_pod(name) for name in WORST},
    "search for devices": devices,
    "disruption budgets": budgets,
    "gang": gang,
    "values of a selector": selected,
    "a node with many labels": big_node,
    "affinity of a volume": volume,
    "labels of a namespace": namespace,
    "everybody goes": exodus,
    "a long list": a_list,
    "everybody goes, nobody is alike": exodus_of_many,
    "room for a gang": room_for_a_gang,
    "room for a gang, 10,000 go": room_by_many,
    "room among groups": room_among_groups,
    "taints of all nodes": taints,
    "wide disruption budgets": wide_budgets,
    "owners": owners,
    "many groups": many_groups,
    **CROWDS,
}


def turns_of(play: Play, facts: Iterable[Fact], collector: Collector | None = None) -> list[float]:
    """Seconds of each turn until nothing is left to do at once. Bindings succeed: else no more than
    so many would be under way, and a crowd would wait for them.
    """
    durations_s: list[float] = []
    inbox = Inbox(lambda: None)
    for fact in facts:
        inbox.put(fact)
    while True:
        started_s = time.thread_time()
        arrived = [] if play.machine.is_taking_in else inbox.drain()
        play.turn(*arrived)
        if collector is not None:
            collector.turned()
        durations_s.append(time.thread_time() - started_s)
        for bind in play.of(Bind):
            inbox.put(Bound(bind.id))
        if arrived:
            inbox.took(play.machine.intake_s)
        is_done = not inbox and play.machine.next_deadline_s() != 0.0
        if is_done or len(durations_s) >= TURNS_MAX:
            return durations_s


class Collections:
    """The longest of the collector's pauses."""

    def __init__(self) -> None:
        self.longest_s = self._began_s = 0.0

    def __call__(self, phase: str, _: object) -> None:
        now_s = time.thread_time()
        if phase == "start":
            self._began_s = now_s
        else:
            self.longest_s = max(self.longest_s, now_s - self._began_s)


def life(name: str, nodes: int, pods: int, kilobytes: int) -> tuple[float, float, str]:
    """One life of a case: its longest turn, the longest of the neighbour's, and the row's rest."""
    play, facts, pod = CASES[name](nodes, pods, kilobytes)
    gc.collect()
    gc.disable()
    collector, pauses = Collector(), Collections()
    collector.settle()
    gc.callbacks.append(pauses)
    turns = turns_of(play, facts, collector)
    outcome = "" if pod is None else "placed" if play.node_of(pod.uid) else "waits"
    beside = turns_of(play, [Seen(POD, a_pod("neighbour").build())], collector)
    if pod is not None and play.node_of(pod.uid):
        bound = msgspec.structs.replace(pod.spec, node_name=play.node_of(pod.uid))
        there = msgspec.structs.replace(pod, spec=bound)
        turns += turns_of(play, [Seen(POD, there)], collector)
        turns += turns_of(play, [Gone(POD, there)], collector)
    gc.callbacks.remove(pauses)
    gc.enable()
    gc.unfreeze()
    if len(turns) >= TURNS_MAX:
        outcome = "given up"
    rest = f"{sum(turns) * 1000:10.1f} {len(turns):6} {pauses.longest_s * 1000:6.1f}  {outcome}"
    return max(turns), max(beside), rest


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.worst",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, default=5000, metavar="N")
    parser.add_argument("--pods", type=int, default=10_000, metavar="M")
    parser.add_argument("--kilobytes", type=int, default=1500, metavar="K")
    parser.add_argument("--cases", default="", help="; ".join(CASES))
    parser.add_argument("--times", type=int, default=1, metavar="T")
    args = parser.parse_args(argv)
    names = [name for name in args.cases.split(";") if name] or list(CASES)
    unknown = [name for name in names if name not in CASES]
    if unknown:
        print(f"no case is called {'; '.join(unknown)}; see --help", file=sys.stderr)
        return 2
    print(
        f"{'case':36} {'longest ms':>10} {'neighbour':>10} {'all ms':>10} {'turns':>6} {'gc':>6}"
        "  outcome",
        flush=True,
    )
    for name in names:
        lives = [life(name, args.nodes, args.pods, args.kilobytes) for _ in range(args.times)]
        longest, beside, rest = min(lives)
        print(f"{name:36} {longest * 1000:10.1f} {beside * 1000:10.1f} {rest}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
