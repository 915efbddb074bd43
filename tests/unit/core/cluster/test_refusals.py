"""Kubelets that refused a pod: whom they are spared, for how long, and that it is forgotten."""

import pytest

from asched.core.cluster.nodes import NodeTable
from asched.core.cluster.refusals import HOLD_S, HOLD_S_MAX, Owner, Refusals
from asched.core.cycle.orders import KubeletRefused
from asched.testing import World, given, node, pod
from tests.builders import PodBuilder, a_node, a_pod

WEB = Owner("default", "web")


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
        told.append(refusals.note(WEB, "n1", at_s))
        at_s += told[-1]
    assert told == [10, 20, 40, 80, 160, 300, 300, 300]
    assert told[0] == HOLD_S
    assert told[-1] == HOLD_S_MAX


def test_only_pods_of_the_owner_are_kept_away_and_only_so_long(nodes: NodeTable) -> None:
    refusals = Refusals(nodes)
    refusals.note(WEB, "n2", 1000.0)
    row = nodes.row_of["n2"]
    assert refusals.rows(owned("p").build(), 1009.9) == {row: pytest.approx(0.1)}
    assert refusals.rows(owned("p").build(), 1010.0) == {}
    assert refusals.rows(owned("p", "other").build(), 1001.0) == {}
    assert refusals.rows(a_pod("bare").build(), 1001.0) == {}
    nodes.remove("n2")
    assert refusals.rows(owned("p").build(), 1001.0) == {}


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


def test_meanwhile_it_is_not_tried_every_few_seconds() -> None:
    world = given([node("n1", cpu=64)])
    for _ in range(4):
        refused(world, "n1")  # for 80 s
    world.schedule(replica("a"))
    world.wait(75)
    rejected = [event for event in world.events if "FailedScheduling" in event]
    assert len(rejected) <= 3
    assert world.outcome("a").node == ""
    world.wait(30)
    assert world.outcome("a").node == "n1"


@pytest.mark.parametrize("change", ["allocatable", "departure"])
def test_a_change_of_the_node_ends_the_time(change: str) -> None:
    world = given([node("n1", cpu=64)])
    runs = pod("runs", cpu=1, on="n1")
    runs["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
    world.add(runs)
    for _ in range(4):
        refused(world, "n1")
    assert world.schedule(replica("a")).node == ""
    if change == "allocatable":
        world.add(node("n1", cpu=65))
    else:
        world.remove(runs)
    assert world.outcome("a").node == "n1"


def test_a_pod_that_was_nominated_to_such_a_node_goes_elsewhere_too() -> None:
    world = given([node("n1", cpu=64), node("n2", cpu=2)])
    refused(world, "n1")
    for name, owned_by_it, expected in (("a", True, "n2"), ("b", False, "n1")):
        nominated = replica(name) if owned_by_it else pod(name, cpu=1)
        nominated["status"] = {"nominatedNodeName": "n1"}
        assert world.schedule(nominated).node == expected
