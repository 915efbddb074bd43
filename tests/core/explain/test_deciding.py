"""Deciding on supposition: where a pod fits, how many do, and that all of it undoes itself."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from asched.core.state.audit import recount
from asched.core.state.budget import OutOfTurn
from asched.core.state.nodes import Aspect
from asched.insight.explain.deciding import DECISIONS_MAX, STEPS_MAX, Deciding, smallest
from asched.insight.explain.ways import with_spec
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod, term
from tests.core.cycle.playbook import Play


def deciding(*nodes: NodeBuilder, pod: PodBuilder | None = None, **gang: Any) -> Deciding:
    play = Play(*nodes)
    runner = play.machine.context.runners["default-scheduler"]
    built = (pod or wants("1")).build()
    one = Deciding(runner, play.machine.context.nominator, built, **gang)
    one._left = DECISIONS_MAX
    return one


def wants(cpu: str, name: str = "web") -> PodBuilder:
    return a_pod(name).requests(cpu=cpu)


def room(name: str, cpu: int) -> NodeBuilder:
    return a_node(name).allocatable(cpu=str(cpu))


def test_where_a_pod_fits_and_why_not_elsewhere() -> None:
    one = deciding(room("n1", 2), room("n2", 1), pod=wants("2"))
    assert one.rows().tolist() == [True, False]
    assert one.rows(wants("1").build()).tolist() == [True, True]
    assert (one.fits_on(0), one.fits_on(1)) == (True, False)
    status = one.status_on(1)
    assert status is not None
    assert status.plugin == "NodeResourcesFit"
    assert one.status_on(0) is None


def test_whether_it_would_fit_with_a_change() -> None:
    one = deciding(room("n1", 1), pod=wants("1").selects(zone="a"))
    assert not one.fits()
    assert one.fits(lambda pod: with_spec(pod, node_selector=None))
    assert not one.is_gang


def test_how_many_find_a_node_one_after_the_other() -> None:
    one = deciding(room("n1", 2), room("n2", 1))
    pods = [wants("1", f"p{number}").build() for number in range(5)]
    assert one.takes(pods) == 3
    assert one.takes(pods, 2) == 2
    assert one.takes(pods, 1) == 1
    assert one.takes([wants("9", "large").build(), *pods]) == 3, (
        "one that does not fit stops nobody"
    )
    assert recount(one.cluster) == []
    assert not one.cluster.placed


def test_a_gang_fits_if_enough_of_it_do() -> None:
    mates = [wants("1", f"m{number}").build() for number in range(2)]
    assert deciding(room("n1", 3), gang=mates, needed=3).fits()
    assert not deciding(room("n1", 2), gang=mates, needed=3).fits()
    assert deciding(room("n1", 2), gang=mates, needed=2).fits()
    assert not deciding(room("n1", 1), gang=mates, needed=2).fits()
    small = deciding(room("n1", 2), gang=mates, needed=3)
    assert small.is_gang
    halved: Callable[[Any], Any] = lambda pod: with_spec(pod, containers=None)  # noqa: E731
    assert small.fits(halved)


def of_labels(_name: str, reads: int | None) -> bool:
    return reads is not None and bool(reads & Aspect.LABELS)


def test_rows_that_some_filters_refuse() -> None:
    one = deciding(room("n1", 9), room("n2", 1), pod=wants("2").requires_nodes(term("zone In a")))
    assert one.refusals(lambda name, _: name == "NodeResourcesFit").tolist() == [False, True]
    assert one.refusals(of_labels).tolist() == [True, True]
    assert one.refusals(lambda *_: False).tolist() == [False, False]
    named = wants("1").requires_nodes(term(fields=["metadata.name In n2"]))
    narrowed = deciding(room("n1", 9), room("n2", 9), pod=named)
    assert narrowed.refusals(lambda *_: False).tolist() == [True, False]
    gone = deciding(room("n1", 9), room("n2", 9))
    gone.cluster.nodes.remove("n1")
    assert gone.refusals(lambda *_: False).tolist() == [True, False]


def test_so_many_decisions_are_made_and_each_block_begins_anew() -> None:
    one = deciding(room("n1", 1))
    for _ in range(2):
        with one.within_budget():
            for _ in range(DECISIONS_MAX):
                one.rows()
            assert one.cluster.budget.left <= STEPS_MAX
            with pytest.raises(OutOfTurn, match="too many decisions"):
                one.rows()
    assert one.cluster.budget.left == math.inf


def test_nothing_is_decided_outside_of_such_a_block() -> None:
    context = Play(room("n1", 1)).machine.context
    runner = context.runners["default-scheduler"]
    one = Deciding(runner, context.nominator, wants("1").build())
    with pytest.raises(OutOfTurn):
        one.rows()


@pytest.mark.parametrize(
    ("low", "high", "from_", "found"),
    [(1, 10, 1, 1), (1, 10, 7, 7), (1, 10, 10, 10), (1, 10, 11, None), (3, 3, 0, 3)],
)
def test_the_smallest_that_does(low: int, high: int, from_: int, found: int | None) -> None:
    assert smallest(low, high, lambda n: n >= from_) == found


def test_the_smallest_wherever_it_is() -> None:
    assert [smallest(1, 9, lambda n, f=f: n >= f) for f in range(1, 10)] == list(range(1, 10))
