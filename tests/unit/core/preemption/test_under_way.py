"""Preemptions under way: who is held back, until when, and what is forgotten with them."""

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Seen
from asched.core.model.kinds import NODE, POD, POD_GROUP
from asched.core.model.pod import Pod
from asched.core.preemption.under_way import Preemptor, UnderWay
from tests.builders import a_node, a_pod
from tests.unit.core.preemption.group_stage import a_group

GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


class Scene:
    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.apply(Seen(NODE, a_node("n1").build()))
        self.under_way = UnderWay(self.cluster)
        self.victim = self.see("victim", "n1")

    def see(self, name: str, node: str = "", **metadata: str) -> Pod:
        pod = a_pod(name).metadata(**metadata).on(node).build()
        self.cluster.apply(Seen(POD, pod))
        return pod

    def begin(self, name: str = "pre") -> tuple[Pod, Preemptor]:
        pod = self.see(name)
        preemptor = Preemptor.of_pod(pod, "n1")
        self.under_way.start(preemptor)
        return pod, preemptor


def test_a_preemptor_is_held_back_until_its_last_victim_goes() -> None:
    scene = Scene()
    pod, preemptor = scene.begin()
    assert scene.under_way.holds_back(pod)
    assert list(scene.under_way.holding()) == [pod.key]
    scene.under_way.last(preemptor, scene.victim)
    assert scene.under_way.holds_back(pod)
    assert not scene.under_way.holding(), "what becomes of the victim is not known here"
    scene.see("victim", "n1", **GOING)
    assert not scene.under_way.holds_back(pod)


def test_what_failed_holds_nobody_back_and_what_was_deleted_does_until_it_is_seen() -> None:
    scene = Scene()
    pod, preemptor = scene.begin()
    scene.under_way.last(preemptor, scene.victim)
    scene.under_way.end(preemptor, is_deleted=True)
    assert scene.under_way.holds_back(pod)
    scene.under_way.end(preemptor, is_deleted=False)
    assert not scene.under_way.holds_back(pod)
    pod, preemptor = scene.begin("second")
    scene.under_way.end(preemptor, is_deleted=False)
    assert not scene.under_way.holds_back(pod)
    assert len(scene.under_way.expecting(scene.victim)) == 0


def test_a_group_holds_back_its_pods_and_whoever_joins_it() -> None:
    scene = Scene()
    group = a_group("crew", priority=7)
    scene.cluster.apply(Seen(POD_GROUP, group))

    def member(name: str, crew: str = "crew") -> Pod:
        return a_pod(name).spec(schedulingGroup={"podGroupName": crew}).build()

    preemptor = Preemptor.of_group(group, [member("a")])
    assert (preemptor.kind, preemptor.place, preemptor.priority) == ("podgroup", "cluster", 7)
    assert not scene.under_way.holds_group_back(member("b"))
    scene.under_way.start(preemptor)
    assert scene.under_way.holds_back(member("a"))
    assert not scene.under_way.holds_back(member("b"))
    assert scene.under_way.holds_group_back(member("b"))
    assert not scene.under_way.holds_group_back(member("c", "other"))
    assert not scene.under_way.holds_group_back(a_pod("alone").build())
    assert len(scene.under_way.expecting(scene.victim)) == 0, "a group expects no one node"
    scene.under_way.end(preemptor, is_deleted=True)
    assert not scene.under_way.holds_group_back(member("b"))


def test_who_makes_room_once_more_waits_for_the_new_victims_alone() -> None:
    scene = Scene()
    (pod, one), (other, two) = scene.begin("one"), scene.begin("two")
    for preemptor in (one, two):
        scene.under_way.last(preemptor, scene.victim)
    scene.under_way.start(one)
    scene.under_way.end(one, is_deleted=True)
    assert not scene.under_way.holds_back(pod)
    assert scene.under_way.holds_back(other)
    assert list(scene.under_way.expecting(a_pod("x").build()).keys_at("n1")) == [other.key]
    assert not scene.under_way.holds_back(a_pod("two").metadata(uid="another").build())
