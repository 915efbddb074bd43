"""Reservations: room promised from a moment on, whom that keeps off, and when it is broken."""

from typing import Any

import pytest

from asched.batch.backfill.expected_ends import GRACE_S, START_S
from asched.core.cluster.facts import Gone, Seen
from asched.core.model.kinds import NODE, POD
from tests.unit.core.cluster.scenes import Scene, endless, lasting, room

CPU = 0


def test_who_would_still_run_by_then_is_kept_off() -> None:
    scene = Scene()
    scene.reserve()
    assert scene.codes(endless("a")) == [1, 0]
    assert scene.codes(lasting("b", 5000)) == [1, 0]
    assert scene.codes(lasting("c", 100)) == [0, 0]
    assert scene.codes(endless("a"), rows=[1, 0]) == [0, 1]
    assert scene.codes(endless("a"), rows=[1]) == [0]


def test_who_leaves_it_enough_is_not() -> None:
    scene = Scene()
    scene.reserve(cpus={"n1": 3})
    assert scene.codes(endless("a", cpu="1")) == [0, 0]
    assert scene.codes(endless("b", cpu="2")) == [1, 0]


def test_the_more_important_and_its_own_pods_are_not_bound() -> None:
    scene = Scene()
    one = scene.reserve(priority=5)
    assert scene.codes(endless("a", priority=5)) == [1, 0]
    assert scene.codes(endless("b", priority=6)) == [0, 0]
    assert scene.ledger.binding(one.likes[0]) == []
    assert scene.ledger.binding(scene.info(endless("a"))) == [one]


def test_what_goes_and_what_comes_until_then_counts() -> None:
    running = lasting("running", 100).on("n1").status(startTime="1970-01-12T13:46:40Z")
    scene = Scene(running, endless("stays", cpu="1").on("n1"))
    one = scene.reserve(cpus={"n1": 2})
    left = scene.ledger.free(one)
    assert left.rows.tolist() == [0]
    assert left.amounts[CPU].tolist() == [1000], (
        "four, less one that stays and two that are promised"
    )
    assert [info.pod.metadata.name for info, _ in scene.ledger.leaving(0, one.start_s)] == [
        "running"
    ]
    scene.cluster.apply(Seen(POD, endless("new", cpu="1").on("n1").build()))
    assert scene.ledger.free(one).amounts[CPU].tolist() == [0]
    scene.cluster.apply(Gone(POD, endless("stays").on("n1").build()))
    assert scene.ledger.free(one).amounts[CPU].tolist() == [1000]
    assert scene.ledger.free(one) is left


def test_others_that_have_begun_by_then_and_not_ended_take_their_room() -> None:
    scene = Scene()
    one = scene.reserve("one", at_s=1000, cpus={"n1": 1})
    assert scene.ledger.free(one).amounts[CPU].tolist() == [3000]
    scene.reserve("during", at_s=500, cpus={"n1": 1})
    assert scene.ledger.free(one).amounts[CPU].tolist() == [2000]
    scene.reserve("before", at_s=100, lasts_s=900, cpus={"n1": 1})
    scene.reserve("after", at_s=1001, cpus={"n1": 1})
    scene.reserve("elsewhere", at_s=500, cpus={"n2": 1})
    assert scene.ledger.free(one).amounts[CPU].tolist() == [2000]


@pytest.mark.parametrize(
    ("fact", "broken"),
    [
        (Seen(NODE, room("n1").labels(a="b").build()), False),
        (Seen(NODE, room("n1").cordoned().build()), True),
        (Gone(NODE, room("n1").build()), True),
        (Seen(NODE, room("n1", 3).build()), True),
        (Gone(NODE, room("n2").build()), False),
        (Seen(POD, endless("new", cpu="1").on("n1").build()), True),
        (Seen(POD, lasting("short", 100).on("n1").build()), False),
    ],
)
def test_when_its_room_will_not_be_there_it_is_broken(fact: Any, broken: bool) -> None:
    scene = Scene()
    one = scene.reserve()
    assert not scene.ledger.is_broken(one)
    scene.cluster.apply(fact)
    assert scene.ledger.is_broken(one) == broken


def test_those_that_come_after_it_do_not_break_it() -> None:
    scene = Scene()
    one = scene.reserve("one", since_s=1.0)
    scene.reserve("later", since_s=2.0, at_s=500)
    assert not scene.ledger.is_broken(one)
    scene.reserve("earlier", since_s=0.0, at_s=500)
    assert scene.ledger.is_broken(one)


def test_in_the_very_moment_of_its_start_who_ends_then_is_not_kept_off() -> None:
    scene = Scene()
    scene.reserve(at_s=100 + START_S + GRACE_S)
    assert scene.codes(lasting("to-the-moment", 100)) == [0, 0]
    assert scene.codes(lasting("longer", 101)) == [1, 0]


def test_what_is_left_follows_nodes_that_go_and_come_back() -> None:
    scene = Scene()
    one = scene.reserve(cpus={"n1": 1, "n2": 2})
    assert scene.ledger.free(one).amounts[CPU].tolist() == [3000, 2000]
    scene.cluster.apply(Gone(NODE, room("n1").build()))
    assert scene.ledger.free(one).amounts[CPU].tolist() == [2000]
    assert scene.ledger.is_broken(one)
    scene.cluster.apply(Seen(NODE, room("n1", 8).build()))
    assert scene.ledger.free(one).amounts[CPU].tolist() == [7000, 2000]
    assert not scene.ledger.is_broken(one)
    scene.cluster.apply(Gone(NODE, room("n1", 8).build()))
    scene.cluster.apply(Seen(NODE, room("stranger", 50).build()))
    scene.cluster.apply(Seen(NODE, room("n1", 6).build()))
    assert scene.ledger.free(one).amounts[CPU].tolist() == [5000, 2000], "in another row now"
    assert scene.codes(endless("long", cpu="6")) == [0, 1, 1]
