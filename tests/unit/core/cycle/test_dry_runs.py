"""A look at a waiting pod: who would reject it by now, or None if only an attempt can tell."""

from typing import Any, ClassVar

import numpy as np
import pytest

from asched.core.cluster.facts import Gone, Seen
from asched.core.cluster.nodes import Aspect
from asched.core.framework.points import FilterPlugin, PreFilterPlugin, PreFilterResult
from asched.core.framework.status import Status, pending, unschedulable
from asched.core.model.kinds import (
    POD,
)
from tests.builders import a_node, a_pod
from tests.unit.core.cycle.leaving import Leaving, Scene, wants


def test_who_fits_is_worth_an_attempt_and_who_does_not_is_told_by_whom() -> None:
    scene = Scene()
    assert scene.dry_run(wants()) is None
    scene.place("a")
    assert scene.dry_run(wants()) == ({"NodeResourcesFit"}, True)
    scene.cluster.apply(Gone(POD, a_pod("a").on("n1").build()))
    assert scene.dry_run(wants()) is None


def test_one_to_whom_room_is_promised_is_tried() -> None:
    scene = Scene()
    scene.place("a")
    assert scene.dry_run(wants()) is not None
    scene.context.nominator.add(scene.cluster.pods_seen["default/web"], "n1")
    assert scene.dry_run(wants()) is None


def test_one_that_may_evict_others_is_tried() -> None:
    scene = Scene()
    scene.place("a")
    assert scene.dry_run(wants().priority(50)) is not None
    assert scene.dry_run(wants(name="vip").priority(51)) is None
    assert scene.dry_run(wants(name="mild").priority(51).spec(preemptionPolicy="Never")) is not None


class Counted(FilterPlugin):
    """Rejects all; counts how often it was asked."""

    name = "Counted"
    depends_on = Aspect.LABELS
    asked: ClassVar[int] = 0

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        type(self).asked += 1
        return np.ones(nodes.size, dtype=np.int32)

    def explain(self, pod: Any, code: int) -> Status:
        return unschedulable("no")


def test_room_that_is_promised_to_a_more_important_pod_counts() -> None:
    scene = Scene()
    assert scene.dry_run(wants()) is None
    vip = wants(name="vip").priority(9).spec(schedulerName="default-scheduler").build()
    scene.cluster.apply(Seen(POD, vip))
    scene.context.nominator.add(vip, "n1")
    assert scene.dry_run(wants()) == ({"NodeResourcesFit"}, True)
    assert scene.dry_run(wants(name="higher").priority(10)) is None


class Waiting(Counted):
    name = "Waiting"

    def explain(self, pod: Any, code: int) -> Status:
        return pending("soon")


def test_who_waits_for_something_outside_is_tried() -> None:
    assert Scene(plugins=[Waiting]).dry_run(wants()) is None
    assert Scene(plugins=[Counted]).dry_run(wants()) == ({"Counted"}, True)


class Early(PreFilterPlugin):
    name = "Early"
    depends_on = Aspect(0)

    def pre_filter(self, pod: Any) -> PreFilterResult:
        return PreFilterResult(unschedulable("early"))


def two_nodes() -> Leaving:
    """n1 has one core left of four, n2 none of two; pods there are of priority 50."""
    scene = Leaving(a_node("n1").allocatable(cpu="4"), a_node("n2").allocatable(cpu="2"))
    scene.place("a", "n1", "2")
    scene.place("b", "n1", "1")
    scene.place("c", "n2", "2")
    return scene


def test_a_pod_that_leaves_helps_whom_its_node_has_room_for() -> None:
    scene = two_nodes()
    assert not scene.may_help(wants("2"), "n1")
    assert not scene.may_help(wants("1", "small"), "n2")
    assert scene.may_help(wants("1", "small"), "n1")
    scene.leaves("b", "n1")
    assert scene.may_help(wants("2"), "n1")
    assert not scene.may_help(wants("2"), "n2"), "it has heard of n1"
    assert scene.may_help(wants("2"), "n3"), "nobody knows that node"


def test_less_important_pods_may_make_room_there() -> None:
    scene = two_nodes()
    assert not scene.may_help(wants("3", "equal").priority(50), "n1")
    assert scene.may_help(wants("4", "vip").priority(51), "n1")
    assert not scene.may_help(wants("5", "large").priority(51), "n1")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rejected_by": frozenset({"NodePorts"})}, "ports are no amounts"),
        ({"rejected_by": frozenset()}, "nobody rejected it"),
        ({"rejected_by": frozenset({"Early"})}, "no filter rejected it"),
        ({"pending_on": frozenset({"Later"})}, "it waits for something else"),
        ({"gang": "crew"}, "others are tried with it"),
    ],
)
def test_where_other_nodes_may_have_changed_for_a_pod_it_is_looked_at(
    change: dict[str, Any], why: str
) -> None:
    scene = two_nodes()
    wish = wants("2").host_port(80)
    assert not scene.may_help(wish, "n1")
    assert scene.may_help(wish, "n1", **change), why
