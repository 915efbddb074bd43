"""Trees of pod groups: CompositePodGroups above PodGroups."""

from collections.abc import Collection, Iterator
from random import Random
from typing import Any

import pytest

from asched.core.cluster.facts import Done, Fact, Gone, Listed, Seen
from asched.core.config.gates import GateError, default_gates, parse
from asched.core.framework.effects import Bind, DeletePod, EmitEvent, MarkVictim, Patch
from asched.core.model.decode import decode
from asched.core.model.kinds import COMPOSITE_POD_GROUP, NODE, POD, POD_GROUP_V1
from asched.core.model.workload import CompositePodGroup, PodGroup
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.playbook import Play

GATES = parse(["CompositePodGroup=true"], "1.38").enabled
RACK = "example.com/rack"


def a_leaf(name: str, minimum: int = 1, parent: str = "root", **spec: Any) -> Seen:
    policy = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
    made = {"schedulingPolicy": policy, "parentCompositePodGroupName": parent, **spec}
    return Seen(POD_GROUP_V1, decode(PodGroup, _object(name, made)))


def a_composite(name: str = "root", minimum: int = 1, parent: str = "", **spec: Any) -> Seen:
    policy = {"gang": {"minGroupCount": minimum}} if minimum else {"basic": {}}
    made = {"schedulingPolicy": policy, **spec}
    if parent:
        made["parentCompositePodGroupName"] = parent
    return Seen(COMPOSITE_POD_GROUP, decode(CompositePodGroup, _object(name, made)))


def _object(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    spec = {"workloadRef": {"workloadName": "w", "templateName": "t"}, **spec}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1}
    return {"metadata": metadata, "spec": spec}


def a_member(name: str, group: str, cpu: str = "1") -> PodBuilder:
    return a_pod(name).requests(cpu=cpu).spec(schedulingGroup={"podGroupName": group})


def members(group: str, count: int, cpu: str = "1") -> list[Seen]:
    return [Seen(POD, a_member(f"{group}-{i}", group, cpu).build()) for i in range(count)]


def room(cpus: int, name: str = "n1", **labels: str) -> NodeBuilder:
    made = a_node(name).allocatable(cpu=str(cpus), memory="8Gi", pods="100")
    return made.labels(**labels) if labels else made


class Stage:
    """A play, and all that it said."""

    def __init__(self, *nodes: NodeBuilder, gates: dict[str, bool] | None = None) -> None:
        self.play = Play(*nodes, gates={**GATES, **(gates or {})})
        self.bound: set[str] = set()
        self._conditions: dict[str, dict[str, Any]] = {}
        self.evicted: list[str] = []
        self.notes: list[str] = []
        self.go(Listed(POD_GROUP_V1, ()))

    def go(self, *facts: Fact, after_s: float = 0.0) -> "Stage":
        effects = list(self.play.turn(*facts, after_s=after_s))
        while self.play.machine.next_deadline_s() == 0.0:
            effects += self.play.turn()
        for effect in effects:
            if isinstance(effect, Bind):
                self.bound.add(effect.pod.name)
            if isinstance(effect, Patch) and effect.kind is not POD:
                (condition,) = effect.body["status"]["conditions"]
                self._conditions.setdefault(f"{condition['type']} {effect.name}", {}).update(
                    condition
                )
            if isinstance(effect, EmitEvent):
                self.notes.append(effect.note)
            if isinstance(effect, DeletePod):
                self.evicted.append(effect.pod.name)
            if isinstance(effect, (MarkVictim, DeletePod)):
                self.go(Done(effect.id))
        return self

    def condition(self, name: str, *, is_leaf: bool = False) -> tuple[str, str, str]:
        kind = "PodGroup" if is_leaf else "CompositePodGroup"
        said = self._conditions[f"{kind}InitiallyScheduled {name}"]
        return said["status"], said["reason"], said["message"]


def test_a_tree_starts_as_one_and_only_when_all_of_it_is_there() -> None:
    stage = Stage(room(8))
    stage.go(*members("a", 2), a_leaf("a", 2, "mid"), a_composite("mid", 1, "root"))
    stage.go(*members("b", 2), a_leaf("b", 3))
    assert not stage.bound  # the root does not exist
    stage.go(a_composite("root", 2))
    assert not stage.bound  # b has two of three pods
    stage.go(Seen(POD, a_member("b-2", "b").build()))

    assert stage.bound == {"a-0", "a-1", "b-0", "b-1", "b-2"}
    assert stage.condition("root") == stage.condition("mid") == ("True", "Scheduled", "")
    assert stage.condition("a", is_leaf=True) == ("True", "Scheduled", "")


@pytest.mark.parametrize("minimum", [2, 1])
def test_all_or_nothing_at_each_level(minimum: int) -> None:
    """Two composites of two gangs each, and room for three gangs."""
    stage = Stage(room(6))
    stage.go(a_composite("root", minimum))
    for half in ("x", "y"):
        stage.go(a_composite(half, 2, "root"))
        for gang in "12":
            stage.go(a_leaf(half + gang, 2, half), *members(half + gang, 2))

    first = {"x1-0", "x1-1", "x2-0", "x2-1"}
    assert stage.bound == (set() if minimum == 2 else first)
    failed = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    if minimum == 1:
        assert stage.condition("root")[:2] == stage.condition("x")[:2] == ("True", "Scheduled")
        assert stage.condition("y")[:2] == ("False", "Unschedulable")
        assert stage.condition("y")[2].startswith(failed)
    else:
        status, reason, message = stage.condition("root")
        assert (status, reason) == ("False", "Unschedulable")
        assert message.startswith(failed)
        assert stage.condition("x")[:2] == ("False", "Unschedulable")
    stage.go(Seen(NODE, room(2, "n2").build()), after_s=60)
    assert len(stage.bound) == 8


def test_a_lower_minimum_of_groups_starts_what_fits() -> None:
    stage = Stage(room(2))
    stage.go(a_composite("root", 2), a_leaf("a", 2), a_leaf("b", 2), *members("a", 2))
    assert not stage.bound
    changed = a_composite("root", 1)
    stage.go(changed)
    assert stage.bound == {"a-0", "a-1"}


def test_what_is_wrong_with_a_tree_is_in_the_conditions_of_its_groups() -> None:
    cycle = [a_composite("one", 1, "two"), a_composite("two", 1, "one"), a_leaf("a", 1, "one")]
    deep = [a_composite(f"d{i}", 1, f"d{i - 1}" if i else "") for i in range(4)]
    other = {"workloadRef": {"workloadName": "other", "templateName": "t"}}
    mixed = [a_composite("both"), a_leaf("m", 1, "both", **other)]
    wide = [a_composite("wide"), *(a_leaf(f"w{i:04d}", 1, "wide") for i in range(1000))]
    stage = Stage(room(8)).go(*cycle, *deep, a_leaf("b", 1, "d3"), a_leaf("c", 1, "gone"))
    stage.go(*mixed, *wide)
    for group in ("a", "b", "c", "m", "w0000"):
        stage.go(*members(group, 1))
    stage.go(after_s=11).go(after_s=31)

    assert not stage.bound
    said = {leaf: stage.condition(leaf, is_leaf=True) for leaf in ("a", "b", "c", "m", "w0000")}
    assert said == {
        "a": ("False", "Invalid", "the parents of its groups form a cycle"),
        "b": ("False", "Invalid", "the tree of groups has more than 4 levels"),
        "c": (
            "False",
            "Unschedulable",
            "waits for the CompositePodGroup gone, which does not exist",
        ),
        "m": ("False", "Invalid", "its groups name several Workloads: other, w"),
        "w0000": ("False", "Invalid", "the tree of groups has more than 1000 groups"),
    }
    assert stage.condition("one") == stage.condition("two") == said["a"]
    assert stage.condition("d0") == said["b"]

    for before, now in ((deep[1], a_composite("d1")), (cycle[1], a_composite("two"))):
        stage.go(Gone(COMPOSITE_POD_GROUP, before.obj), now)
    stage.go(a_composite("gone"), Gone(POD_GROUP_V1, wide[-1].obj))
    assert stage.bound == {"a-0", "b-0", "c-0", "w0000-0"}


def test_groups_of_a_tree_have_one_priority() -> None:
    stage = Stage(room(8)).go(a_composite("root"), a_leaf("a", priority=5), *members("a", 1))
    assert not stage.bound
    wrong = "all pod groups in a hierarchy should have the same priority as the root pod group's"
    for is_leaf, name in ((True, "a"), (False, "root")):
        status, reason, message = stage.condition(name, is_leaf=is_leaf)
        assert (status, reason) == ("False", "SchedulerError")
        assert message.startswith(wrong)


def test_a_tree_preempts_as_a_whole() -> None:
    """It needs the room of both victims; the gang of the smaller leaf alone would need none."""
    stage = Stage(room(3))
    low = [a_pod(f"low-{i}").requests(cpu="1").priority(1).on("n1").build() for i in range(2)]
    stage.go(*(Seen(POD, pod) for pod in low))
    high = {"priority": 100}
    pods = [
        Seen(POD, a_member(f"{group}-{i}", group).priority(100).build())
        for group, count in (("a", 1), ("b", 2))
        for i in range(count)
    ]
    stage.go(a_composite("root", 2, **high), a_leaf("a", 1, **high), a_leaf("b", 2, **high), *pods)
    assert sorted(stage.evicted) == ["low-0", "low-1"]
    assert not stage.bound
    stage.go(*(Gone(POD, pod) for pod in low)).go(after_s=30)
    assert stage.bound == {"a-0", "b-0", "b-1"}


def test_constraints_at_two_levels() -> None:
    """The tree stays in one zone, each gang in a rack of its own; only zone z2 has two racks."""
    zone = "example.com/zone"
    racks = {"r1": "z1", "r2": "z2", "r3": "z2"}
    nodes = [room(2, f"n-{r}", **{RACK: r, zone: z}) for r, z in racks.items()]
    gates = {"TopologyAwareWorkloadScheduling": True}
    stage = Stage(*nodes, gates=gates)

    def within(key: str) -> dict[str, Any]:
        return {"schedulingConstraints": {"topology": [{"key": key}]}}

    stage.go(a_composite("root", 2, **within(zone)))
    for gang in "ab":
        stage.go(a_leaf(gang, 2, **within(RACK)), *members(gang, 2))
    places = {
        gang: {stage.play.node_of(a_member(f"{gang}-{i}", gang).build().uid) for i in range(2)}
        for gang in "ab"
    }
    assert sorted(map(sorted, places.values())) == [["n-r2"], ["n-r3"]]


def test_the_placement_that_takes_more_of_a_tree_is_taken() -> None:
    """One group suffices. Zone z1 has room for one, z2 for both: each in the rack that it fills,
    where more pods beyond its minimum have places.
    """
    zone = "example.com/zone"
    racks = {"r1": ("z1", 2), "r2": ("z2", 1), "r3": ("z2", 2), "r4": ("z2", 2)}
    nodes = [room(c, f"n-{r}", **{RACK: r, zone: z}) for r, (z, c) in racks.items()]
    stage = Stage(*nodes, gates={"TopologyAwareWorkloadScheduling": True})

    def within(key: str) -> dict[str, Any]:
        return {"schedulingConstraints": {"topology": [{"key": key}]}}

    stage.go(a_composite("root", 1, **within(zone)))
    pods = [*members("a", 2), *members("b", 2)]
    stage.go(a_leaf("a", 1, **within(RACK)), a_leaf("b", 1, **within(RACK)), *pods)
    assert stage.bound == {"a-0", "a-1", "b-0", "b-1"}
    places = [
        {stage.play.node_of(a_member(f"{gang}-{i}", gang).build().uid) for i in range(2)}
        for gang in "ab"
    ]
    assert sorted(map(sorted, places)) == [["n-r3"], ["n-r4"]]


def test_the_gate_and_the_version_decide() -> None:
    assert not default_gates("1.38")["CompositePodGroup"]
    with pytest.raises(GateError, match=r"Kubernetes 1.37 and newer have it"):
        parse(["CompositePodGroup=true"], "1.36")
    off = Stage(room(8), gates={"CompositePodGroup": False})
    off.go(a_leaf("a", 1, "missing"), *members("a", 1))
    assert off.bound == {"a-0"}
    on = Stage(room(8)).go(a_leaf("a", 1, "missing"), *members("a", 1))
    assert not on.bound


def test_a_tree_that_is_disrupted_as_one_is_evicted_as_one() -> None:
    """One of two victims would do; the highest group with the mode `all` is above both leaves."""
    stage = Stage(room(2), room(2, "n2"))
    whole = {"disruptionMode": {"all": {}}}
    stage.go(a_composite("top"), a_composite("low", 2, "top", **whole))
    for leaf, node in (("v", "n1"), ("w", "n2")):
        placed = [a_member(f"{leaf}-{i}", leaf).on(node).build() for i in range(2)]
        stage.go(a_leaf(leaf, 1, "low", **whole), *(Seen(POD, pod) for pod in placed))
    high = {"priority": 100}
    stage.go(a_composite("root", 1, **high), a_leaf("a", 1, **high))
    stage.go(Seen(POD, a_member("a-0", "a").priority(100).build()))
    assert sorted(stage.evicted) == ["v-0", "v-1", "w-0", "w-1"]
    notes = [note for note in stage.notes if note.startswith("Preempted by ")]
    assert len(notes) == 4
    assert all("Preempted by compositepodgroup uid-root" in note for note in notes)


def test_a_tree_that_loses_its_root_waits_for_it() -> None:
    """Its pods wait for room, and keep waiting until the root is there again."""
    stage = Stage(room(1)).go(a_composite("root"), a_leaf("a", 2), *members("a", 2))
    root = a_composite("root")
    stage.go(Gone(COMPOSITE_POD_GROUP, root.obj)).go(Seen(NODE, room(2, "n2").build()), after_s=60)
    for _ in range(3):
        stage.go(after_s=400)
    assert not stage.bound
    stage.go(root, after_s=1)
    assert stage.bound == {"a-0", "a-1"}


@pytest.mark.parametrize("seed", range(40))
def test_random_trees_keep_their_minimums_and_start_if_there_is_room(seed: int) -> None:
    """Objects come in any order. Of nothing that runs a minimum is missing; with room for all pods
    those run whose groups are complete up to the root.
    """
    rng = Random(seed)
    cpus = rng.randint(2, 14)
    parents, minimums, pods = {"root": ""}, {"root": rng.randint(0, 3)}, dict[str, str]()
    depth = {"root": 1}
    for name in [f"c{i}" for i in range(rng.randint(0, 3))]:
        parent = rng.choice([other for other in depth if depth[other] < 3])
        parents[name], depth[name], minimums[name] = parent, depth[parent] + 1, rng.randint(0, 2)
    facts: list[Fact] = [a_composite(name, minimums[name], parents[name]) for name in depth]
    for leaf in [f"l{i}" for i in range(rng.randint(1, 5))]:
        parents[leaf], minimums[leaf] = rng.choice(list(depth)), rng.randint(0, 3)
        facts.append(a_leaf(leaf, minimums[leaf], parents[leaf]))
        members_of = members(leaf, rng.randint(0, 4))
        pods |= {fact.obj.metadata.name: leaf for fact in members_of}
        facts += members_of
    rng.shuffle(facts)
    stage = Stage(room(cpus // 2), room(cpus - cpus // 2, "n2"))
    for fact in facts:
        stage.go(fact)
    for _ in range(10):
        stage.go(after_s=70)

    def has_minimum(name: str, counted: Collection[str]) -> bool:
        children = [child for child, parent in parents.items() if parent == name]
        count = sum(has_minimum(child, counted) for child in children)
        if name not in depth:
            count = sum(pods[pod] == name for pod in counted)
        return count >= max(minimums[name], 1)

    def upwards(name: str) -> Iterator[str]:
        while name:
            yield name
            name = parents[name]

    assert all(has_minimum(g, stage.bound) for pod in stage.bound for g in upwards(pods[pod]))
    assert len(stage.play.parts.cluster.placed) == len(stage.bound)
    complete = {
        pod for pod, leaf in pods.items() if all(has_minimum(g, pods) for g in upwards(leaf))
    }
    assert stage.bound <= complete
    if len(complete) <= cpus:
        assert stage.bound == complete
