"""Groups with a topology constraint, played through the machine."""

from typing import Any, ClassVar

import numpy as np
import pytest

from asched.core.cluster.facts import Seen
from asched.core.config.gates import default_gates
from asched.core.framework.effects import Patch
from asched.core.framework.placements import (
    Assignments,
    Placement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
)
from asched.core.model.decode import decode
from asched.core.model.kinds import POD, POD_GROUP
from asched.core.model.workload import PodGroup
from asched.serve.telemetry.metrics import Metrics
from tests.builders import NodeBuilder, a_node, a_pod
from tests.playbook import Play, a_member, bound, places, uid_of
from tests.unit.core.cycle.group_attempts import nominated, notes_of

ZONE = "topology.kubernetes.io/zone"
PLUGINS = ("GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount")


def a_play(*nodes: NodeBuilder) -> Play:
    enabled = [{"name": name} for name in PLUGINS]
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": enabled}},
    }
    return Play(*nodes, profiles=[profile])


def in_zone(name: str, zone: str | None, cpu: int) -> NodeBuilder:
    node = a_node(name).allocatable(cpu=str(cpu), memory="8Gi", pods="20")
    return node if zone is None else node.labels({ZONE: zone})


def meet(play: Play, names: str = "abc", min_count: int = 3, key: str | None = ZONE) -> None:
    """The pods of a group, then the group."""
    for name in names:
        play.see(a_member(name))
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": min_count}}}
    if key is not None:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    group = {"metadata": {"namespace": "default", "name": "crew"}, "spec": spec}
    play.turn(Seen(POD_GROUP, decode(PodGroup, group)))


def condition(play: Play) -> dict[str, Any]:
    (patch,) = [effect for effect in play.of(Patch) if effect.kind is POD_GROUP]
    found: dict[str, Any] = patch.body["status"]["conditions"][0]
    return found


def test_a_gang_goes_where_all_of_it_fits_whatever_else_is_roomier() -> None:
    play = a_play(in_zone("a1", "a", 2), in_zone("b1", "b", 2), in_zone("b2", "b", 1))
    meet(play)

    assert bound(play) == {"a", "b", "c"}
    assert {play.node_of(uid_of(name)) for name in "abc"} == {"b1", "b2"}
    assert condition(play)["reason"] == "Scheduled"


@pytest.mark.parametrize(("minor", "is_counted"), [("1.36", False), ("1.37", True)])
def test_placements_count_by_version(minor: str, *, is_counted: bool) -> None:
    play, metrics = a_play(in_zone("a1", "a", 2), in_zone("b1", "b", 3)), Metrics()
    metrics.follow({**default_gates(minor), "TopologyAwareWorkloadScheduling": True})
    play.machine.context.observer = metrics.scheduler
    meet(play)
    lines = metrics.render().decode().splitlines()
    profile = 'profile="default-scheduler"'
    wanted = {f"scheduler_generated_placements_total{{{profile}}} 2.0"}
    for result in "feasible", "infeasible":
        for name in "evaluations_total", "evaluation_duration_seconds_count":
            wanted.add(f'scheduler_placement_{name}{{{profile},result="{result}"}} 1.0')
    assert wanted.issubset(lines) is is_counted
    assert any("placement" in line for line in lines) is is_counted


def test_nodes_outside_every_domain_are_not_used() -> None:
    play = a_play(in_zone("a1", "a", 2), in_zone("b1", "b", 2), in_zone("big", None, 64))
    meet(play)

    assert not bound(play)
    assert not places(play)
    said = (
        "0/2 placements are available, first placement status: pod group is unschedulable: there"
        " is no place for it: the nodes have places for 2 of 3 pods like a"
    )
    assert condition(play)["message"] == said
    # Zone a comes first: its one node is all that the pods are told about.
    assert notes_of(play)["c"] == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption:"
        " not eligible due to placement-based pod group scheduling limitation"
    )


def test_the_placement_that_takes_more_of_the_group_is_taken() -> None:
    """Two suffice. Zone b takes all four, and no node scores better for being fuller: of zone a
    2 of 2 CPUs would be used (100), of zone b 4 of 8 (50). Memory is in use nowhere to speak of, so
    the means are about 50 and 25; the counts 2 and 4 weigh as 50 and 100.
    """
    play = a_play(in_zone("a1", "a", 2), in_zone("b1", "b", 8))
    meet(play, names="abcd", min_count=2)

    assert {play.node_of(uid_of(name)) for name in "abcd"} == {"b1"}


def test_pods_that_come_later_stay_in_the_domain_of_the_others() -> None:
    play = a_play(in_zone("a1", "a", 3), in_zone("b1", "b", 64))
    meet(play, min_count=2, names="ab")
    first = play.node_of(uid_of("a"))
    assert first == "a1", "the fuller one"

    play.see(a_member("c"))
    assert play.node_of(uid_of("c")) == first
    play.see(a_member("d"))

    assert not play.node_of(uid_of("d"))
    assert notes_of(play)["d"].startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_a_group_without_a_constraint_may_use_every_node_and_preempt() -> None:
    play = a_play(in_zone("a1", "a", 2), in_zone("big", None, 1))
    play.see(a_pod("low").requests(cpu="1").priority(-1).on("big"))
    meet(play, key=None)

    assert nominated(play).keys() == set("abc")
    assert "big" in nominated(play).values()
    assert "waiting for preemption" in condition(play)["message"]


def test_what_was_tried_elsewhere_leaves_no_trace() -> None:
    play = a_play(in_zone("a1", "a", 2), in_zone("b1", "b", 3))
    meet(play)
    assert {play.node_of(uid_of(name)) for name in "abc"} == {"b1"}

    play.turn(Seen(POD, a_pod("other").requests(cpu="2").build()))

    assert play.node_of("uid-other") == "a1"
    requested = play.parts.cluster.nodes.columns.read("requested")[0].tolist()[:2]
    assert requested == [2000, 3000]


class Halves(PlacementGeneratePlugin):
    """Nodes with an even row, and those with an odd one."""

    name = "Halves"

    def generate_placements(self, group: str, parent: Placement) -> list[Placement]:
        assert group == "default/crew"
        rows = np.arange(4)
        return [Placement("even", rows % 2 == 0), Placement("odd", rows % 2 == 1)]


class LikesOdd(PlacementScorePlugin):
    name = "LikesOdd"
    seen: ClassVar[list[tuple[str, int]]] = []

    def score_placement(self, group: str, assignments: Assignments) -> int:
        self.seen.append((assignments.placement.name, len(assignments.pods)))
        return 100 if assignments.placement.name == "odd" else 0


def test_plugins_of_ones_own_may_divide_the_cluster_and_judge_the_parts() -> None:
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {
            "multiPoint": {"enabled": [{"name": "GangScheduling"}, {"name": "Halves"}]},
            "placementScore": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": "LikesOdd", "weight": 2}],
            },
        },
    }
    nodes = [in_zone(f"n{row}", None, 2) for row in range(4)]
    play = Play(*nodes, plugins=[Halves, LikesOdd], profiles=[profile])
    LikesOdd.seen.clear()
    meet(play, key=None)

    assert {play.node_of(uid_of(name)) for name in "abc"} == {"n1", "n3"}
    assert LikesOdd.seen == [("even", 3), ("odd", 3)]
