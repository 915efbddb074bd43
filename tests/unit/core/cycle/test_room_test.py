"""For whom room is being made on one node: whether what is left of another may be enough for it."""

from typing import Any

from asched.core.cluster.facts import Seen
from asched.core.model.kinds import POD
from tests.builders import PodBuilder, a_node, a_pod
from tests.unit.core.cycle.leaving import Leaving, wants

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
    return scene.dry_runs.room_test(node)(scene.rests(pod.priority(50), **fields))


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
