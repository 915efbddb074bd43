"""The longest turn that the worst object of each kind costs.

    python -m asched_lab.measure.worst [--nodes N] [--pods M] [--kilobytes K] [--cases "a;b"]

On N nodes with M placed pods of distinct labels, in process: each case shows the machine one object
as large as the API server accepts (K kB), or a crowd of them, and runs turns until nothing is left
to do. Then another pod comes, a plain one of the same namespace, and the pod is seen where it was
placed. Columns, all in processor time of the machine's thread: the longest turn, the longest while
the other pod is placed, all turns, their number, the longest pause of the collector of garbage (it
runs as in production, after turns, and its pauses belong to them), and the outcome for the pod. The
intake of the object is a turn, too; of a crowd, as many objects as the inbox hands out at once.
"""

# ruff: noqa: T201 - a command prints

import argparse
import gc
import sys
import time
from collections.abc import Iterable
from typing import Final

import msgspec

from asched import testing
from asched.core.cluster.facts import Bound, Fact, Gone, Listed, Seen
from asched.core.framework.effects import Bind
from asched.core.model.kinds import (
    NODE,
    POD,
    POD_DISRUPTION_BUDGET,
    POD_GROUP,
)
from asched.host.memory import Collector
from asched.kube.inbox import Inbox
from asched_lab.measure import worst_crowds
from asched_lab.measure.stepped import (
    GANGS,
    GATES_OF_PREEMPTING_GANGS,
    Json,
    SteppedMachine,
    a_node,
    a_pod,
    a_pod_group,
    a_world,
    gang_of,
    member,
    on_node,
    record_of,
    seen,
)
from asched_lab.measure.worst_crowds import (
    CROWDS,
    Case,
    Maker,
    a_bound_claim,
    a_device_class,
    a_slice,
    claimed,
    using,
)
from asched_lab.measure.worst_pods import REQUIRED, SHAPES

#: Turns after which a case is given up.
TURNS_MAX: Final = 5_000
#: An object has no more items, however small they are.
ITEMS_MAX: Final = 20_000


def filled(name: str, shape: str, size_bytes: float) -> Json:
    """A pod of about this size, with many items of one kind."""
    sample = a_pod("sample")
    SHAPES[shape](sample, 1000)
    pod = a_pod(name)
    each_bytes = len(msgspec.json.encode(record_of(sample))) / 1000
    SHAPES[shape](pod, min(int(size_bytes / each_bytes), ITEMS_MAX))
    return pod


def of_one_pod(shape: str) -> Maker:
    def case(nodes: int, pods: int, kilobytes: int) -> Case:
        pod = filled("worst", shape, kilobytes * 1000)
        return a_world(nodes, pods), [seen(POD, pod)], record_of(pod)

    return case


def devices(nodes: int, pods: int, _kilobytes: int) -> Case:
    """Four devices with an attribute in common, of which every node has three of each."""
    world = a_world(nodes, pods)
    kinds = [f"k{i // 3}" for i in range(99)]
    world.turn(a_device_class(), *(a_slice(i, kinds) for i in range(nodes)))
    alike = [{"requests": [], "matchAttribute": "gpu.example.com/kind"}]
    return world, *claimed({"count": 4}, constraints=alike)


def a_budget(name: str, expressions: list[Json]) -> Fact:
    return seen(
        POD_DISRUPTION_BUDGET,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchExpressions": expressions}},
            "status": {"disruptionsAllowed": 1},
        },
    )


def full_nodes(world: SteppedMachine, nodes: int) -> None:
    names = ((f"q{i}", f"n{i}") for i in range(nodes))
    world.see(POD, (a_pod(q, on=node, labels={"app": q}, cpu="32") for q, node in names))


def budgets(nodes: int, pods: int, _kilobytes: int) -> Case:
    """Two thousand disruption budgets that each select every pod, and a pod that preempts."""
    world = a_world(nodes, pods)
    exists = [{"key": "app", "operator": "Exists"}]
    world.turn(*(a_budget(f"b{i}", exists) for i in range(2000)))
    full_nodes(world, nodes)
    return world, [seen(POD, a_pod("worst", cpu="1", priority=1000))], None


def gang(nodes: int, pods: int, _kilobytes: int) -> Case:
    """A gang of two thousand."""
    world = a_world(nodes, pods, **GANGS)
    world.turn(seen(POD_GROUP, a_pod_group("crew", schedulingPolicy=gang_of(2000))))
    return world, [seen(POD, member(f"m{i}", "crew")) for i in range(2000)], None


def selected(nodes: int, pods: int, kilobytes: int) -> Case:
    """One term of anti-affinity with ten thousands of values."""
    values = [f"a{i}" for i in range(kilobytes * 100)]
    selector = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": values}]}
    terms = [{"topologyKey": "zone", "labelSelector": selector}]
    pod = a_pod("worst", labels={"app": "a1"}, affinity={"podAntiAffinity": {REQUIRED: terms}})
    return a_world(nodes, pods), [seen(POD, pod)], record_of(pod)


def big_node(nodes: int, pods: int, kilobytes: int) -> Case:
    """A node with ten thousand labels and as many taints comes while a pod waits, and changes."""
    world, count = a_world(nodes, pods), kilobytes * 7
    waiting = a_pod("worst", cpu="100")
    world.turn(seen(POD, waiting))
    taints = [f"t{i}=v:NoSchedule" for i in range(count)]
    labels = {f"l{i}": f"v{i}" for i in range(count)}
    first = testing.node("huge", cpu="64", labels=labels, taints=taints)
    second = testing.node("huge", cpu="64", labels=dict.fromkeys(labels, "w"))
    return world, [seen(NODE, first), seen(NODE, second)], record_of(waiting)


def volume(nodes: int, pods: int, kilobytes: int) -> Case:
    """A claim bound to a volume with node affinity of ten thousand terms."""
    world = a_world(nodes, pods)
    rules = [(f"n{i % 20}", f"v{i}") for i in range(kilobytes * 10)]
    terms = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
        for key, value in (*rules, ("zone", "z1"))
    ]
    world.turn(*a_bound_claim("c", nodeAffinity={"required": {"nodeSelectorTerms": terms}}))
    pod = a_pod("worst", volumes=using("c"))
    return world, [seen(POD, pod)], record_of(pod)


def exodus(nodes: int, pods: int, _kilobytes: int) -> Case:
    """Two thousand pods go, and five thousand different ones wait."""
    world, count = a_world(nodes, pods), worst_crowds.WAITING // 2
    waiting = [seen(POD, worst_crowds.unlike(i)) for i in range(count)]
    for start in range(0, count, 64):
        world.turn(*waiting[start : start + 64])
    world.rest()
    placed = list(world.parts.cluster.placed.values())[:2000]
    return world, [Gone(POD, info.pod) for info in placed], None


def a_list(nodes: int, pods: int, _kilobytes: int) -> Case:
    """A list of all placed pods, as after a restart."""
    listed = (a_pod(f"l{i}", on=f"n{i % nodes}", labels={"app": f"l{i}"}) for i in range(pods))
    return a_world(nodes, 0), [Listed(POD, tuple(record_of(pod) for pod in listed))], None


def packed(nodes: int, pods: int) -> list[Json]:
    """Pods that fill all nodes, about so many."""
    each = max(pods // nodes, 1)
    size = f"{32000 // each}m"
    return [a_pod(f"p{i}", on=f"n{i % nodes}", cpu=size) for i in range(each * nodes)]


def room_for_a_gang(nodes: int, pods: int, _kilobytes: int) -> Case:
    """A gang of a hundred that needs room on full nodes."""
    world = a_world(nodes, 0, **GANGS)
    world.see(POD, packed(nodes, pods))
    world.turn(seen(POD_GROUP, a_pod_group("crew", schedulingPolicy=gang_of(100))))
    crew = (member(f"m{i}", "crew", "16", priority=1000) for i in range(100))
    return world, [seen(POD, pod) for pod in crew], None


def room_by_many(nodes: int, pods: int, _kilobytes: int) -> Case:
    """A gang of a thousand, two to a node: a tenth of all pods has to go."""
    world = a_world(nodes, 0, gates=GATES_OF_PREEMPTING_GANGS)
    full, count = packed(nodes, pods), max(nodes // 5, 1)
    for start in range(0, len(full), 1000):
        world.see(POD, full[start : start + 1000])
    group = a_pod_group("crew", schedulingPolicy=gang_of(count), priority=1000)
    world.turn(seen(POD_GROUP, group))
    crew = (member(f"m{i}", "crew", "16", priority=1000) for i in range(count))
    return world, [seen(POD, pod) for pod in crew], None


def room_among_groups(nodes: int, pods: int, _kilobytes: int) -> Case:
    """A group makes room on nodes full of groups of twenty that are evicted as a whole."""
    world = a_world(nodes, 0, gates=GATES_OF_PREEMPTING_GANGS)
    full = packed(nodes, pods)
    whole = {"priority": 10, "disruptionMode": "PodGroup"}
    names = [f"g{i}" for i in range(0, len(full), 20)]
    world.see(POD_GROUP, (a_pod_group(name, **whole) for name in names))
    for i, pod in enumerate(full):
        pod["spec"] |= {"priority": 10, "schedulingGroup": {"podGroupName": names[i // 20]}}
    world.see(POD, full)
    crew = a_pod_group("crew", schedulingPolicy=gang_of(100), priority=1000)
    members = (member(f"m{i}", "crew", "16", priority=1000) for i in range(100))
    return world, [seen(POD_GROUP, crew), *(seen(POD, pod) for pod in members)], None


def taints(nodes: int, pods: int, kilobytes: int) -> Case:
    """Every node gets five taints of its own; a pod has as many tolerations as fit into it."""
    world = a_world(nodes, pods)
    own = ([f"k{k}-{i}=v{i}:PreferNoSchedule" for k in range(5)] for i in range(nodes))
    tainted = [seen(NODE, a_node(i, *texts)) for i, texts in enumerate(own)]
    pod = a_pod("worst")
    SHAPES["tolerations"](pod, kilobytes * 10)
    return world, [*tainted, seen(POD, pod)], record_of(pod)


def wide_budgets(nodes: int, pods: int, kilobytes: int) -> Case:
    """Budgets of ten thousand expressions each select every pod, and a pod preempts."""
    world = a_world(nodes, pods)
    absent = [{"key": f"x{i}", "operator": "DoesNotExist"} for i in range(kilobytes * 10)]
    full_nodes(world, nodes)
    pod = a_pod("worst", cpu="1", priority=1000)
    return world, [*(a_budget(f"b{i}", absent) for i in range(5)), seen(POD, pod)], None


def many_groups(nodes: int, pods: int, _kilobytes: int) -> Case:
    """Five thousand groups that lack a pod each; then a node changes, and the pods come."""
    world, count = a_world(nodes, pods, **GANGS), worst_crowds.WAITING // 2
    groups = (a_pod_group(f"g{i}", schedulingPolicy=gang_of(2)) for i in range(count))
    first, second = (
        [seen(POD, member(f"{part}{i}", f"g{i}", "20")) for i in range(count)] for part in "ms"
    )
    changed = seen(NODE, a_node(1, cpu="33"))
    return world, [*(seen(POD_GROUP, group) for group in groups), *first, changed, *second], None


CASES: Final[dict[str, Maker]] = {
    **{shape: of_one_pod(shape) for shape in SHAPES},
    "search for devices": devices,
    "disruption budgets": budgets,
    "gang": gang,
    "values of a selector": selected,
    "a node with many labels": big_node,
    "affinity of a volume": volume,
    "a long list": a_list,
    "pods go, all waiting ones differ": exodus,
    "room for a gang": room_for_a_gang,
    "room for a gang, 10,000 go": room_by_many,
    "room among groups": room_among_groups,
    "taints of all nodes": taints,
    "wide disruption budgets": wide_budgets,
    "many groups": many_groups,
    **CROWDS,
}


def turns_of(
    world: SteppedMachine, facts: Iterable[Fact], collector: Collector | None = None
) -> list[float]:
    """Run turns until nothing is left to do at once; the seconds of each. Bindings succeed, since
    the number of bindings that may be under way is limited.
    """
    durations_s: list[float] = []
    inbox = Inbox(lambda: None)
    for fact in facts:
        inbox.put(fact)
    while True:
        started_s = time.thread_time()
        arrived = [] if world.machine.is_taking_in else inbox.drain()
        effects = world.turn(*arrived)
        if collector is not None:
            collector.turn_ended()
        durations_s.append(time.thread_time() - started_s)
        for effect in effects:
            if isinstance(effect, Bind):
                inbox.put(Bound(effect.id))
        if arrived:
            inbox.took(world.machine.intake_s)
        is_done = not inbox and world.machine.next_deadline_s() != 0.0
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


def run(name: str, nodes: int, pods: int, kilobytes: int) -> tuple[float, float, str]:
    """Run a case once: its longest turn, the longest for the other pod, the rest of the line."""
    world, facts, pod = CASES[name](nodes, pods, kilobytes)
    gc.collect()
    gc.disable()
    collector, pauses = Collector(), Collections()
    collector.settle()
    gc.callbacks.append(pauses)
    turns = turns_of(world, facts, collector)
    outcome = "" if pod is None else "placed" if world.node_of(pod) else "waits"
    beside = turns_of(world, [seen(POD, a_pod("other"))], collector)
    if pod is not None and world.node_of(pod):
        there = on_node(pod, world.node_of(pod))
        turns += turns_of(world, [Seen(POD, there)], collector)
        turns += turns_of(world, [Gone(POD, there)], collector)
    gc.callbacks.remove(pauses)
    gc.enable()
    gc.unfreeze()
    if len(turns) >= TURNS_MAX:
        outcome = "given up"
    rest = f"{sum(turns) * 1000:10.1f} {len(turns):6} {pauses.longest_s * 1000:6.1f}  {outcome}"
    return max(turns), max(beside), rest


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m asched_lab.measure.worst",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, default=5000, metavar="N")
    parser.add_argument("--pods", type=int, default=10_000, metavar="M")
    parser.add_argument("--kilobytes", type=int, default=1500, metavar="K")
    parser.add_argument("--cases", default="", help="; ".join(CASES))
    args = parser.parse_args(argv)
    names = [name for name in args.cases.split(";") if name] or list(CASES)
    unknown = [name for name in names if name not in CASES]
    if unknown:
        print(f"no case is called {'; '.join(unknown)}; see --help", file=sys.stderr)
        return 2
    print(
        f"{'case':36} {'longest ms':>10} {'other pod':>10} {'all ms':>10} {'turns':>6} {'gc':>6}"
        "  outcome",
        flush=True,
    )
    for name in names:
        longest, beside, rest = run(name, args.nodes, args.pods, args.kilobytes)
        print(f"{name:36} {longest * 1000:10.1f} {beside * 1000:10.1f} {rest}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
