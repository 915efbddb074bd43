"""Kubelets that refused a pod: whom they are spared, for how long, and that it is forgotten."""

import pytest

from asched.core.cycle.orders import KubeletRefused
from asched.core.model.kinds import NODE
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Gone, Seen
from asched.core.state.nodes import NodeTable
from asched.core.state.pod_classes import PodClasses
from asched.core.state.refusals import (
    CONTESTED_MAX,
    FORGET_S,
    HALF_S,
    HOLD_S,
    HOLD_S_MAX,
    OVERLAP_S,
    PAIRS_MAX,
    Refusals,
)
from asched.testing import World, given, node, pod
from tests.builders import PodBuilder, a_node, a_pod


def owned(name: str, owner: str = "web") -> PodBuilder:
    reference = {"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
    built = a_pod(name)
    built.json["metadata"]["ownerReferences"] = [reference]
    return built


@pytest.fixture
def nodes() -> NodeTable:
    table = NodeTable()
    for name in ("n1", "n2"):
        table.put(a_node(name).build())
    return table


def test_each_refusal_doubles_the_time(nodes: NodeTable) -> None:
    refusals = Refusals(nodes)
    at_s, told = 1000.0, []
    for _ in range(8):
        told.append(refusals.note("web", "n1", at_s))
        at_s += told[-1]
    assert told == [10, 20, 40, 80, 160, 300, 300, 300]
    assert told[0] == HOLD_S
    assert told[-1] == HOLD_S_MAX


def test_only_pods_of_the_owner_are_kept_away_and_only_so_long(nodes: NodeTable) -> None:
    refusals = Refusals(nodes)
    refusals.note("web", "n2", 1000.0)
    row = nodes.row_of["n2"]
    assert refusals.rows(owned("p").build(), 1009.9) == (row,)
    assert refusals.rows(owned("p").build(), 1010.0) == ()
    assert refusals.rows(owned("p", "other").build(), 1001.0) == ()
    assert refusals.rows(a_pod("bare").build(), 1001.0) == ()
    nodes.remove("n2")
    assert refusals.rows(owned("p").build(), 1001.0) == ()


def test_what_is_long_past_is_forgotten_and_there_are_never_too_many(nodes: NodeTable) -> None:
    refusals = Refusals(nodes)
    for number in range(PAIRS_MAX + 50):
        refusals.note(f"owner-{number}", "n1", 1000.0)
    assert len(refusals) == PAIRS_MAX
    assert refusals.note("late", "n1", 1000.0 + HOLD_S + FORGET_S) == HOLD_S
    assert len(refusals) == len(refusals._by_owner) == 1
    assert not refusals.rows(owned("p", "owner-60").build(), 1001.0)


@pytest.mark.parametrize(("after_s", "hold_s"), [(-0.1, 2 * HOLD_S), (0.0, HOLD_S)])
def test_a_refusal_long_after_the_last_one_is_the_first_again(
    nodes: NodeTable, after_s: float, hold_s: float
) -> None:
    refusals = Refusals(nodes)
    assert (refusals.are_none, refusals.overlaps, refusals.refused) == (True, 0, 0)
    refusals.note("web", "n1", 1000.0)
    assert not refusals.are_none
    assert refusals.note("web", "n1", 1000.0 + HOLD_S + FORGET_S + after_s) == hold_s


def test_nothing_is_left_of_the_highest_level_after_a_minute_and_a_half(nodes: NodeTable) -> None:
    refusals = Refusals(nodes)
    for _ in range(10):
        refusals.clash("n1", None, 1000.0)
    info = PodClasses().info_of(a_pod("p").build())
    for seconds, left in ((3 * HALF_S - 1, 1), (3 * HALF_S, 0)):
        refusals.crowded(info, lambda _: True, 1000.0 + seconds)
        assert refusals.contested == left


def refused(world: World, name: str, owner: str = "web") -> None:
    order = KubeletRefused("default", "old", "u", owner, name, "OutOfcpu", "asched")
    world._settle([order])


def replica(name: str) -> dict[str, object]:
    made = pod(name, cpu=1)
    reference = {"kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    made["metadata"]["ownerReferences"] = [reference]
    return made


def test_the_next_pod_of_the_owner_goes_elsewhere() -> None:
    world = given([node("n1", cpu=64), node("n2", cpu=2)])
    refused(world, "n1")
    assert world.schedule(replica("a")).node == "n2"
    assert world.schedule(pod("somebody", cpu=8)).node == "n1"
    told = [event for event in world.events if "KubeletRefused" in event]
    said = "the kubelet of n1 refused the pod: OutOfcpu; no other pod of its owner goes there for"
    assert told == [f"Warning KubeletRefused: {said} 10 s"]


def test_where_there_is_no_other_node_it_waits_is_told_and_comes_back_by_itself() -> None:
    world = given([node("n1", cpu=64), node("full", cpu="500m")])
    refused(world, "n1")
    outcome = world.schedule(replica("a"))
    assert outcome.node == ""
    assert outcome.message.startswith(
        "0/2 nodes are available: 1 Insufficient cpu,"
        " 1 node(s) had refused a pod of the same owner a moment ago."
    )
    world.wait(30)
    assert world.outcome("a").node == "n1"


def test_a_pod_that_was_nominated_to_such_a_node_goes_elsewhere_too() -> None:
    world = given([node("n1", cpu=64), node("n2", cpu=2)])
    refused(world, "n1")
    for name, owned_by_it, expected in (("a", True, "n2"), ("b", False, "n1")):
        nominated = replica(name) if owned_by_it else pod(name, cpu=1)
        nominated["status"] = {"nominatedNodeName": "n1"}
        assert world.schedule(nominated).node == expected


# --- contested nodes -----------------------------------------------------------------------------

MESSAGE = "node(s) contested by another scheduler, which is left some room for a moment"


def stranger(name: str, on: str, cpu: object = 1) -> dict[str, object]:
    made = pod(name, cpu=cpu)
    made["spec"].update(schedulerName="another", nodeName=on)
    return made


def clashing(seconds_between: float = 1.0) -> World:
    """One node of 8 CPU: a pod of ours went there, and a stranger of 1 CPU appeared beside it."""
    world = given([node("n1", cpu=8)])
    assert world.schedule(pod("ours", cpu=1)).node == "n1"
    world.wait(seconds_between)
    world.add(stranger("theirs", "n1"))
    return world


def test_a_stranger_beside_a_choice_of_ours_is_left_room_for_one_more() -> None:
    world = clashing()
    assert world.schedule(pod("much", cpu=6)).message.startswith(
        f"0/1 nodes are available: 1 {MESSAGE}."
    )
    assert world.schedule(pod("less", cpu=5)).node == "n1"


def test_whoever_waited_for_that_comes_back_by_itself_when_it_is_quiet() -> None:
    world = clashing()
    assert world.schedule(pod("much", cpu=6)).node == ""
    world.wait(HALF_S + 15)
    assert world.outcome("much").node == "n1"


def test_strangers_that_come_long_after_us_contest_nothing() -> None:
    assert clashing(OVERLAP_S + 1).schedule(pod("much", cpu=6)).node == "n1"


def test_without_strangers_nothing_is_contested() -> None:
    world = given([node("n1", cpu=8)])
    for name in ("a", "b"):
        assert world.schedule(pod(name, cpu=4)).node == "n1"


def test_each_refusal_of_a_kubelet_asks_for_more_room_up_to_a_part_of_the_node() -> None:
    world = clashing()
    for _ in range(3):
        refused(world, "n1", owner="")
    assert world.schedule(pod("much", cpu="4500m")).message.count(MESSAGE) == 1
    assert world.schedule(pod("a quarter is left", cpu=4)).node == "n1"


def test_a_pod_that_room_was_made_for_takes_it() -> None:
    world = clashing()
    promised = pod("promised", cpu=6)
    promised["status"] = {"nominatedNodeName": "n1"}
    assert world.schedule(promised).node == "n1"


def test_strangers_are_counted_by_node_as_long_as_it_is_known(nodes: NodeTable) -> None:
    refusals, info = Refusals(nodes), PodClasses().info_of(a_pod("p").build())
    for row, name in ((0, "n1"), (0, "n1"), (1, "n2"), (-1, "n9")):
        info.row, info.node_name = row, name
        refusals.stranger(info, 1000.0)
    assert [refusals.strangers(name) for name in ("n1", "n2", "n9")] == [2, 1, 0]
    assert (refusals.overlaps, refusals.contested) == (0, 0), "we placed nothing there"
    refusals.node_goes("n1")
    assert [refusals.strangers(name) for name in ("n1", "n2")] == [0, 1]


def test_clashes_are_counted_by_their_kind(nodes: NodeTable) -> None:
    refusals, info = Refusals(nodes), PodClasses().info_of(a_pod("p").build())
    info.row, info.node_name = 0, "n1"
    refusals.stranger(info, 1.0)  # early on the clock of a simulation
    refusals.chosen("n1", 1000.0)
    for seconds in (OVERLAP_S - 1, OVERLAP_S):
        refusals.stranger(info, 1000.0 + seconds)
    assert (refusals.overlaps, refusals.refused) == (1, 0)
    for _ in range(2):
        refusals.clash("n2", info, 1000.0)
    assert (refusals.overlaps, refusals.refused) == (1, 2)


def test_only_of_rows_that_would_do_it_is_told_that_they_are_crowded() -> None:
    table = NodeTable()
    table.put(a_node("n1").allocatable(cpu="8", pods="110").build())
    refusals, classes = Refusals(table), PodClasses()
    refusals.clash("n1", classes.info_of(a_pod("theirs").requests(cpu="1").build()), 1000.0)
    for cpu, crowded in (("7", []), ("7500m", [0])):
        info = classes.info_of(a_pod("p").requests(cpu=cpu).build())
        assert refusals.crowded(info, lambda _: True, 1000.0) == crowded
        assert refusals.crowded(info, lambda _: False, 1000.0) == []


@pytest.mark.parametrize(
    ("clashes", "there", "crowded"),
    [
        (1, 6, False),
        (1, 7, True),
        (2, 5, False),
        (2, 6, True),
        (3, 5, False),
        (3, 6, True),
        (0, 6, False),
        (0, 7, True),
    ],
)
def test_places_for_pods_are_left_as_room_is(clashes: int, there: int, crowded: bool) -> None:
    """For as many as the level says, a quarter of the node's eight at most."""
    table = NodeTable()
    table.put(a_node("n1").allocatable(cpu="8", pods="8").build())
    table.columns.write["pod_count"][0] = there
    whole = a_pod("p").requests(cpu="8").build()  # of what nobody else asked for, nothing is left
    refusals, info = Refusals(table), PodClasses().info_of(whole)
    for _ in range(clashes):
        refusals.clash("n1", None, 1000.0)
    if not clashes:
        theirs = PodClasses().info_of(a_pod("theirs").build())
        theirs.row, theirs.node_name = 0, "n1"
        refusals.chosen("n1", 1000.0)
        refusals.stranger(theirs, 1000.0)
    assert refusals.crowded(info, lambda _: True, 1000.0) == [0] * crowded


@pytest.mark.parametrize(
    ("asked", "crowded"),
    [
        ({"cpu": "0"}, False),
        ({"cpu": "1m"}, True),
        ({"example.com/a": "1"}, False),
        ({"example.com/a": "1", "example.com/z": "1"}, True),
        ({"example.com/z": "1", "example.com/a": "1"}, True),
    ],
)
def test_only_what_a_pod_asks_for_and_nodes_have_is_left_room_of(
    asked: dict[str, str], crowded: bool
) -> None:
    """The node has more placed than it offers, of CPU and of z."""
    table, classes = NodeTable(), PodClasses()
    table.put(a_node("n1").allocatable({"example.com/z": "1"}, cpu="8", pods="99").build())
    table.columns.write["requested"][:, 0] = 9000
    refusals = Refusals(table)
    refusals.clash("n1", None, 1000.0)
    info = classes.info_of(a_pod("p").requests(asked).build())
    assert refusals.crowded(info, lambda _: True, 1000.0) == [0] * crowded


def test_room_is_left_for_the_largest_of_the_strangers_by_resource(nodes: NodeTable) -> None:
    nodes.put(a_node("n1").allocatable(cpu="8", memory="16Gi", pods="99").build())
    refusals, classes = Refusals(nodes), PodClasses()
    for name, asked in (("a", {"cpu": "500m"}), ("b", {"memory": "1Gi"}), ("c", {"cpu": "250m"})):
        theirs = classes.info_of(a_pod(name).requests(asked).build())
        theirs.row, theirs.node_name = 0, "n1"
        refusals.chosen("n1", 1000.0)
        refusals.stranger(theirs, 1000.0)
    for asked, crowded in (
        ({"cpu": "7500m", "memory": "15Gi"}, False),
        ({"cpu": "7501m"}, True),
        ({"memory": f"{(15 << 30) + 1}"}, True),
    ):
        info = classes.info_of(a_pod("p").requests(asked).build())
        assert refusals.crowded(info, lambda _: True, 1000.0) == [0] * crowded


def test_nodes_that_are_unknown_or_contested_no_more_keep_nobody_off(nodes: NodeTable) -> None:
    """Whatever else there is or is not on them."""
    refusals, classes = Refusals(nodes), PodClasses()
    info = classes.info_of(a_pod("p").requests(cpu="1000").build())
    refusals.clash("nobody-knows-it", None, 1000.0)
    assert refusals.crowded(info, lambda _: True, 1000.0) == []
    refusals.clash("n1", None, 1000.0)
    assert refusals.crowded(info, lambda _: True, 1000.0) == [0]
    assert refusals.crowded(info, lambda _: True, 1000.0 + HALF_S * 4) == []


def test_a_node_made_anew_is_contested_by_nobody() -> None:
    cluster, n1 = Cluster(), a_node("n1").allocatable(cpu="8").build()
    cluster.apply(Seen(NODE, n1))
    cluster.refusals.clash("n1", None, 1000.0)
    assert cluster.refusals.contested == 1
    cluster.apply(Gone(NODE, n1))
    assert cluster.refusals.contested == 0


def test_no_more_nodes_are_remembered_than_there_is_room_for(nodes: NodeTable) -> None:
    refusals = Refusals(nodes)
    for number in range(CONTESTED_MAX + 10):
        refusals.clash(f"n{number}", None, 1000.0)
    assert refusals.contested == CONTESTED_MAX
    assert next(iter(refusals._contested)) == "n10", "the oldest are forgotten"
    info = PodClasses().info_of(a_pod("p").build())
    assert refusals.crowded(info, lambda _: True, 1000.0 + HALF_S * 4) == []
    assert refusals.contested == 0
