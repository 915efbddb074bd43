"""The harness for plugin authors: a world that obeys."""

from asched.plugin import DeletePod
from asched.testing import given, node, pod


def test_time_passes_when_it_is_told_to() -> None:
    world = given([node("n1", cpu=1)], [pod("old", cpu=1, on="n1")])
    outcome = world.schedule(pod("web", cpu=1))
    assert outcome.node == ""
    assert outcome.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    world.remove(pod("old", cpu=1, on="n1"))
    world.wait(15)
    assert world.outcome("web").node == "n1"
    assert world.events[-1] == "Normal Scheduled: Successfully assigned default/web to n1"


def test_preemption_deletes_and_places() -> None:
    world = given([node("n1", cpu=1)], [pod("old", cpu=1, on="n1")])
    world.schedule(pod("vip", cpu=1, priority=100))
    world.wait(15)
    assert [effect.pod.name for effect in world.asked(DeletePod)] == ["old"]
    assert world.outcome("vip").node == "n1"


def test_nodes_can_be_tainted_and_leave() -> None:
    first = node("n1", taints=["gpu=yes:NoSchedule"])
    world = given([first, node("n2")])
    assert world.schedule(pod("a")).node == "n2"
    world.remove(node("n2"))
    assert world.schedule(pod("b")).message.startswith(
        "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
    )


def test_plugins_of_the_tree_are_enabled_by_name() -> None:
    member = pod("web", schedulingGroup={"podGroupName": "absent"})
    assert given([node("n1")]).schedule(member).node == "n1"
    assert given([node("n1")], plugins=["GangScheduling"]).schedule(member).node == ""
