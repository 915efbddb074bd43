"""For whom room is being made on one node: whether what is left of another may be enough for it."""

from typing import Any

import pytest

from asched.core.cycle.look import DryRuns
from asched.core.model.kinds import NODE, POD
from asched.core.queue.queued import QueuedPod
from asched.core.state.facts import Seen
from tests.builders import PodBuilder, a_node, a_pod
from tests.core.cycle.leaving import Leaving, wants

OPEN = a_node("n1").allocatable(cpu="4", pods="3")


def promising(cpu: str = "3", priority: int = 50) -> Leaving:
    """Node n1 has four cores, of which so many are promised to a pod of such a priority."""
    scene = Leaving(OPEN)
    vip = a_pod("vip").requests(cpu=cpu).priority(priority)
    vip = vip.spec(schedulerName="default-scheduler").build()
    scene.cluster.apply(Seen(POD, vip))
    scene.context.nominator.add(vip, "n1")
    return scene


def may_fit(scene: Leaving, pod: PodBuilder, node: str = "n1", **fields: Any) -> bool:
    return scene.looks.room_left(node)(scene.rests(pod.priority(50), **fields))


def test_what_is_promised_to_others_there_is_not_left() -> None:
    scene = promising()
    assert may_fit(scene, wants("1"))
    assert not may_fit(scene, wants("2"))
    assert may_fit(promising("2"), wants("2"))
    assert may_fit(promising(priority=49), wants("4")), "they are less important"
    assert not may_fit(promising(priority=51), wants("2"))


def test_pods_that_run_there_are_in_the_way_however_unimportant() -> None:
    scene = promising("1")
    scene.cluster.apply(Seen(POD, a_pod("low").requests(cpu="2").priority(0).on("n1").build()))
    assert may_fit(scene, wants("1"))
    assert not may_fit(scene, wants("2"))


def test_places_of_pods_are_counted_too() -> None:
    scene = promising("1")
    scene.place("a", cpu="0")
    assert may_fit(scene, wants("1"))
    scene.place("b", cpu="0")
    assert not may_fit(scene, wants("1"))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"rejected_by": frozenset({"NodeAffinity"})}, "others than amounts rejected it"),
        ({"rejected_by": frozenset({"NodeResourcesFit", "NodePorts"})}, "ports are no amounts"),
        ({"also_blamed": frozenset({"InterPodAffinity"})}, "somebody else does by now"),
        ({"rejected_by": frozenset()}, "nobody did"),
        ({"pending_on": frozenset({"Later"})}, "it waits for something else"),
        ({"gang": "crew"}, "others are tried with it"),
    ],
)
def test_where_amounts_do_not_tell_it_is_looked_at(fields: dict[str, Any], why: str) -> None:
    assert may_fit(promising(), wants("2"), **fields), why


def test_the_gate_that_holds_it_meanwhile_is_none_of_those_who_rejected_it() -> None:
    both = frozenset({"NodeResourcesFit", "DefaultPreemption"})
    assert not may_fit(promising(), wants("2"), rejected_by=both, gated_by="DefaultPreemption")
    assert may_fit(promising(), wants("2"), rejected_by=both), "it did, in an attempt"


def test_of_what_nobody_knows_nothing_is_told() -> None:
    scene = promising()
    assert may_fit(scene, wants("2"), "n9")
    other = QueuedPod(wants("2").spec(schedulerName="another").build(), 0.0)
    assert scene.looks.room_left("n1")(other)
    assert DryRuns().room_left("n1")(QueuedPod(wants("2").build(), 0.0)), "there is no context yet"
    own = scene.rests(wants("2"))
    scene.context.nominator.add(own.pod, "n1")
    assert scene.looks.room_left("n1")(own), "it is promised room there itself"
    vast = promising(str(2**62))
    vast.cluster.apply(Seen(NODE, OPEN.allocatable(cpu=str(2**62), pods="3").build()))
    vast.place("a", cpu=str(2**62))
    vast.place("b", cpu=str(2**62))
    assert may_fit(vast, wants("2")), "64 bits do not say what is left"
