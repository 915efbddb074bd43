"""Room for pod groups, played through the machine: who goes, what everybody is told, who waits."""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pytest

from asched.core.cluster.facts import Seen
from asched.core.config.gates import default_gates, parse
from asched.core.framework.effects import (
    DeletePod,
    EmitEvent,
    MarkVictim,
)
from asched.core.model.kinds import NODE, POD_DISRUPTION_BUDGET, POD_GROUP
from asched.serve.telemetry.metrics import Metrics
from tests.builders import PodBuilder, a_pod
from tests.unit.core.cycle.group_stage import GATES, Stage, cpus, low, member
from tests.unit.core.preemption.group_stage import a_budget, a_group

REFUSED = (
    "no new claims to deallocate, preemption: not eligible due to workload aware preemption enabled"
)
UNSCHEDULABLE = "pod group is unschedulable"
SAYS = "pod group preemption: "
STAMP = "2026-01-01T02:00:00Z"


# --- upstream's own stories ----------------------------------------------------------------------


@dataclass(frozen=True)
class Story:
    """`nodes` are cpus; `there` are (name, node, cpu, priority, group); `wants` (name, cpu)."""

    name: str
    nodes: tuple[int, ...]
    there: tuple[tuple[str, str, str, int, str], ...]
    wants: tuple[tuple[str, str], ...]
    min_count: int | None
    goes: str
    bound: str
    priority: int = 100
    budget: int | None = None  # of pods with app=foo: those whose name starts with "foo"
    old: Any = None


def lows(count: int, node: str = "n1", priority: int = 10, group: str = "") -> Any:
    return tuple((f"low-{i}", node, "1", priority, group) for i in range(1, count + 1))


THREE = (("a", "1"), ("b", "1"), ("c", "1"))
OLD = {"priority": 10, "whole": True, "min_count": 3}
STORIES = [
    Story("all of a node", (3,), lows(3), THREE, 3, "low-1 low-2 low-3", "a b c"),
    Story(
        "a node and what is free",
        (2, 2),
        (("low-1", "n1", "2", 10, ""), ("low-2", "n2", "1", 10, "")),
        THREE,
        3,
        "low-1",
        "a b c",
    ),
    Story(
        "whom a budget protects stays",
        (3,),
        (("foo-1", "n1", "1", 10, ""), ("foo-2", "n1", "1", 10, ""), ("low-3", "n1", "1", 10, "")),
        (("a", "500m"), ("b", "500m")),
        2,
        "low-3",
        "a b",
        budget=0,
    ),
    Story(
        "several nodes",
        (2, 2),
        (*lows(2), ("low-3", "n2", "1", 10, ""), ("low-4", "n2", "1", 10, "")),
        (*THREE, ("d", "1")),
        4,
        "low-1 low-2 low-3 low-4",
        "a b c d",
    ),
    Story(
        "nobody goes in vain",
        (3,),
        (*lows(2), ("big", "n1", "1", 500, "")),
        THREE,
        3,
        "",
        "",
    ),
    Story(
        "the least important ones",
        (3,),
        (("mid", "n1", "1", 50, ""), *lows(2)),
        THREE[:2],
        2,
        "low-1 low-2",
        "a b",
    ),
    Story(
        "a group that goes whole, for one pod",
        (3,),
        lows(3, group="old"),
        THREE[:1],
        1,
        "low-1 low-2 low-3",
        "a",
        old=OLD,
    ),
    Story(
        "one without a gang goes whole as well",
        (3,),
        lows(3, group="old"),
        THREE[:1],
        1,
        "low-1 low-2 low-3",
        "a",
        old={**OLD, "min_count": None},
    ),
    Story(
        "groups are compared by their own priorities",
        (3,),
        lows(3, priority=1000, group="old"),
        THREE[:1],
        1,
        "low-1 low-2 low-3",
        "a",
        old=OLD,
    ),
    Story(
        "a group of too low a priority stays outside",
        (3,),
        lows(3, group="old"),
        THREE[:1],
        1,
        "",
        "",
        priority=10,
        old={**OLD, "priority": 100},
    ),
]


@pytest.mark.parametrize("story", STORIES, ids=attrgetter("name"))
@pytest.mark.parametrize("by_placement", [False, True], ids=["", "in placements"])
def test_upstreams_own_stories(story: Story, *, by_placement: bool) -> None:
    nodes = [cpus(f"n{i}", count) for i, count in enumerate(story.nodes, 1)]
    stage = Stage(*nodes, gates={"TopologyAwareWorkloadScheduling": by_placement})
    if story.old:
        stage.group("old", **story.old)
    if story.budget is not None:
        stage.go(Seen(POD_DISRUPTION_BUDGET, a_budget("foo", story.budget, app="foo")))
    for name, node, cpu, priority, group in story.there:
        pod = low(name, node, cpu, priority)
        if name.startswith("foo"):
            pod.labels(app="foo")
        if group:
            pod.spec(schedulingGroup={"podGroupName": group})
        stage.show(pod)
    stage.show(*(member(name, cpu=cpu) for name, cpu in story.wants))
    stage.group(priority=story.priority, min_count=story.min_count)

    gone = stage.evict()

    assert sorted(gone) == story.goes.split()
    assert sorted(stage.bound()) == story.bound.split()


def test_without_a_gang_room_is_made_for_one_pod_after_the_other() -> None:
    stage = Stage(cpus("n1", 3))
    stage.show(*(low(f"low-{i}") for i in range(3)))
    stage.crew("a", "b", "c", min_count=None)
    gone: list[str] = []
    for _ in range(3):
        fresh = stage.evict()
        assert len(fresh) == 1
        gone += fresh
        stage.go(after_s=12)

    assert len(set(gone)) == 3
    assert stage.bound() == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("minor", "goes"), [("1.36", ["old-2"]), ("1.37", ["old-1", "old-2", "old-3"])]
)
def test_pods_preempt_pods_of_whole_groups_by_version(minor: str, goes: list[str]) -> None:
    stage = Stage(cpus("n1", 2), cpus("n2", 1), gates={**default_gates(minor), **GATES})
    stage.group("old", **OLD)
    for name, node, priority in (("old-1", "n1", 20), ("old-2", "n1", 10), ("old-3", "n2", 20)):
        pod = low(name, node, priority=priority)
        stage.show(pod.spec(schedulingGroup={"podGroupName": "old"}))
    stage.show(a_pod("alone").requests(cpu="1").priority(100))

    assert sorted(stage.evict()) == goes
    assert stage.notes("Preempted")["old-2"] == "Preempted by pod uid-alone on node n1"


@pytest.mark.parametrize(("minor", "is_counted"), [("1.36", False), ("1.37", True)])
def test_metrics_of_victims_that_belong_to_groups(minor: str, *, is_counted: bool) -> None:
    """A group evicts another whole group and one pod of a third; then a pod evicts a pod of it."""
    gates = {**default_gates(minor), **GATES}
    stage, metrics = Stage(cpus("n1", 4), cpus("n2", 1), gates=gates), Metrics()
    metrics.follow(gates)
    metrics.scheduler.know_groups()
    stage.play.machine.context.observer = metrics.scheduler
    stage.go(Seen(POD_DISRUPTION_BUDGET, a_budget("none", 0, app="a")))
    stage.group("old", **{**OLD, "priority": 20})
    stage.group("loose", priority=10)
    for group, name in (("old", "old-1"), ("old", "old-2"), ("loose", "l-1"), ("loose", "l-2")):
        node = "n2" if name == "l-2" else "n1"
        pod = low(name, node).spec(schedulingGroup={"podGroupName": group})
        stage.show(pod.labels(app="a") if group == "old" or node == "n2" else pod)
    stage.show(low("alone"))
    stage.crew("a", "b", "c", "d", min_count=4)
    assert sorted(stage.evict()) == ["alone", "l-1", "old-1", "old-2"]
    stage.show(a_pod("late").requests(cpu="1").priority(100))
    assert stage.evict() == ["l-2"]

    name, lines = "scheduler_preemption_workload_disruptions", metrics.render().decode()
    wanted = {
        f'{name}_count{{preemptor="podgroup"}} 1.0',
        f'{name}_sum{{preemptor="podgroup"}} 2.0',
        f'{name}_sum{{preemptor="pod"}} 1.0',
        'scheduler_preemption_pdb_violations_total{preemptor="podgroup"} 2.0',
        'scheduler_preemption_pdb_violations_total{preemptor="pod"} 1.0',
    }
    assert wanted.issubset(lines.splitlines()) is is_counted
    assert (name in lines) is is_counted


# --- words ---------------------------------------------------------------------------------------


def test_everybody_is_told_in_the_words_of_kube_scheduler() -> None:
    """Recorded from 1.36.2, but for the nomination of the pod that needs the room."""
    stage = Stage(cpus("n1", 3))
    stage.show(low("low-0"))
    stage.crew("a", "b", "c", min_count=3)

    assert stage.notes() == {
        "a": "pod group is unschedulable",
        "b": "pod group is unschedulable",
        "c": f"0/1 nodes are available: 1 Insufficient cpu. {REFUSED}",
    }
    assert stage.condition() == "pod group is unschedulable"
    assert stage.nominated() == dict.fromkeys("abc", "n1")
    (mark,) = stage.of(MarkVictim)
    assert mark.condition["message"] == (
        "default-scheduler: preempting to accommodate a higher priority podgroup"
    )
    stage.evict()
    (event,) = [e for e in stage.of(EmitEvent) if e.reason == "Preempted"]
    assert event.note == "Preempted by podgroup uid-crew on node cluster"
    assert (event.related.kind, event.related.name) == ("PodGroup", "crew")
    assert event.related.api_version == "scheduling.k8s.io/v1alpha2"


def refusal(stage: Stage) -> str:
    assert not stage.of(DeletePod)
    assert not stage.of(MarkVictim)
    return stage.condition()


def test_a_group_with_a_topology_constraint_evicts_nobody() -> None:
    stage = Stage(cpus("n1", 3).labels(zone="z"), gates={"TopologyAwareWorkloadScheduling": True})
    stage.show(low("low-0"), member("a"), member("b"), member("c"))
    stage.said.clear()
    group = a_group("crew", priority=100, min_count=3, topology_key="zone")
    stage.go(Seen(POD_GROUP, group))
    assert refusal(stage).endswith(
        ", workload aware preemption is not supported for pod groups with scheduling constraints"
    )
    limits = "preemption: not eligible due to placement-based pod group scheduling limitation"
    assert stage.notes()["c"].endswith(limits)


@pytest.mark.parametrize(("minor", "goes"), [("1.36", []), ("1.37", ["low-0"])])
def test_a_group_with_a_constraint_by_version(minor: str, goes: list[str]) -> None:
    gates = in_groups(minor, "TopologyAwareWorkloadScheduling=true")
    stage = Stage(cpus("n1", 3).labels(zone="z"), gates=gates)
    stage.show(low("low-0"), member("a"), member("b"), member("c"))
    stage.go(Seen(POD_GROUP, a_group("crew", priority=100, min_count=3, topology_key="zone")))
    assert stage.evict(leave=False) == goes


def in_groups(minor: str, *more: str) -> Mapping[str, bool]:
    """The gates of a minor version with those of groups."""
    on = ["GenericWorkload=true", *more]
    if minor == "1.36":
        on += ["GangScheduling=true,WorkloadAwarePreemption=true"]
    return parse(on, minor).enabled


@pytest.mark.parametrize(
    ("minor", "group", "pod"),
    [
        ("1.36", UNSCHEDULABLE, f" {REFUSED}"),
        (
            "1.37",
            (
                "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining,"
                f" {SAYS}found a placement for podgroup, preempting 1 victims"
            ),
            "",
        ),
    ],
)
def test_messages_of_preemption_for_groups(minor: str, group: str, pod: str) -> None:
    stage = Stage(cpus("n1", 3), gates=in_groups(minor))
    stage.show(low("low-0"))
    stage.crew("a", "b", "c", min_count=3)
    assert stage.condition() == group
    assert stage.notes() == {
        "a": UNSCHEDULABLE,
        "b": UNSCHEDULABLE,
        "c": f"0/1 nodes are available: 1 Insufficient cpu.{pod}",
    }
    assert stage.evict() == ["low-0"]

    stage.said.clear()
    stage.show(low("high", "n1", "3", priority=900))
    stage.show(member("d", "late"))
    stage.group("late", priority=100, min_count=1)
    assert (SAYS in stage.condition()) is (minor != "1.36")


@pytest.mark.parametrize(
    ("minor", "points", "goes"),
    [
        ("1.37", {}, ["low-0"]),
        ("1.37", {"podGroupPostFilter": {"disabled": [{"name": "*"}]}}, []),
        ("1.37", {"postFilter": {"disabled": [{"name": "*"}]}}, ["low-0"]),
        ("1.36", {"postFilter": {"disabled": [{"name": "*"}]}}, []),
    ],
)
def test_the_point_of_preemption_for_groups(
    minor: str, points: dict[str, Any], goes: list[str]
) -> None:
    profiles = [{"schedulerName": "default-scheduler", "plugins": points}]
    stage = Stage(cpus("n1", 3), gates=in_groups(minor), profiles=profiles)
    stage.show(low("low-0"))
    stage.crew("a", "b", "c", min_count=3)
    assert stage.evict(leave=False) == goes


# --- waiting for the victims ---------------------------------------------------------------------


def leaving(name: str) -> PodBuilder:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    pod = low(name).metadata(deletionTimestamp=STAMP, resourceVersion="2")
    return pod.status(conditions=[condition])


def test_while_victims_leave_nobody_else_goes() -> None:
    stage = Stage(cpus("n1", 3))
    stage.show(*(low(f"low-{i}") for i in range(3)))
    stage.crew("a", "b", min_count=2)
    gone = stage.evict(leave=False)
    assert len(gone) == 2
    stage.said.clear()
    for name in gone:
        stage.show(leaving(name))
    for _ in range(4):
        stage.go(after_s=6)

    assert not stage.evict()
    assert not stage.notes(), "nor is the group tried in vain"
    assert not stage.bound()
    for name in gone:
        stage.lose(name)
    stage.go(after_s=12)
    assert stage.bound() == {"a", "b"}


def test_while_evictions_are_sent_the_group_is_not_tried_nor_a_pod_that_joins_it() -> None:
    stage = Stage(cpus("n1", 3))
    stage.show(*(low(f"low-{i}") for i in range(3)))
    stage.crew("a", "b", min_count=2)
    stage.said.clear()
    stage.show(member("c"))
    stage.go(Seen(NODE, cpus("n2", 1).build()), after_s=30)
    assert not stage.notes()

    context = stage.play.machine.context
    plugin = context.runners["default-scheduler"].profile.plugins["DefaultPreemption"]
    status = plugin.pre_enqueue(member("c").build())  # type: ignore[attr-defined]
    assert status.message == "waiting for the preemption for this pod group to be finished"
    held = plugin.holding()  # type: ignore[attr-defined]
    assert {"default/a", "default/b"} <= set(held), "so that nobody asks each of them"


def test_once_the_last_victim_has_gone_the_group_is_tried_at_once() -> None:
    """Its pods were rejected for a port that is free long before the last victim goes, for whom
    nobody who rejected them cares.
    """
    stage = Stage(cpus("n1", 2))
    stage.show(low("port").host_port(80), low("cpu"))
    stage.show(member("a", cpu="2").host_port(80))
    stage.said.clear()
    stage.group(priority=100, min_count=1)
    assert sorted(stage.evict(leave=False)) == ["cpu", "port"]
    stage.lose("port")
    assert not stage.bound()
    stage.lose("cpu")
    assert stage.bound() == {"a"}


def test_room_that_was_made_is_not_given_to_less_important_pods() -> None:
    stage = Stage(cpus("n1", 2))
    stage.show(low("low-0"), low("low-1"))
    stage.crew("a", "b", min_count=2)
    gone = stage.evict(leave=False)
    assert len(gone) == 2
    stage.said.clear()
    stage.show(a_pod("again").requests(cpu="1").priority(10))
    stage.lose(gone[0])
    assert not stage.bound()
    stage.lose(gone[1])
    assert stage.bound() == {"a", "b"}


# --- trials --------------------------------------------------------------------------------------


def test_a_pod_of_a_gang_that_is_supposed_gone_waits_for_its_gang_again() -> None:
    stage = Stage(cpus("n1", 3))
    cluster = stage.play.parts.cluster
    stage.show(low("low-0").spec(schedulingGroup={"podGroupName": "old"}))
    (info,) = cluster.placed.values()
    cluster.pod_groups.hold(info.pod)

    with cluster.supposing().without([info]):
        assert not cluster.pod_groups.holds(info.pod)

    assert cluster.pod_groups.holds(info.pod)


def test_a_group_that_is_refused_later_on_loses_the_room_that_it_was_promised() -> None:
    """Or it would keep others out for good, whom nobody evicts either."""
    stage = Stage(cpus("n1", 2))
    stage.show(low("low-0"), low("low-1"))
    stage.crew("a", "b", min_count=2)
    gone = stage.evict(leave=False)
    nominator = stage.play.parts.nominator
    assert {nominator.node_of(f"uid-{name}") for name in "ab"} == {"n1"}
    for name in "ab":
        stage.show(member(name).status(nominatedNodeName="n1").metadata(resourceVersion="2"))
    stage.show(low("big", priority=500), a_pod("small").requests(cpu="1"))
    for name in gone:
        stage.lose(name)
    stage.go(after_s=12)

    assert not stage.bound() & {"a", "b"}
    assert {nominator.node_of(f"uid-{name}") for name in "ab"} == {None}
    assert stage.nominated()["a"] == ""
    assert stage.bound() == {"small"}
