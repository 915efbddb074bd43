"""Reservations: room promised from a moment on, whom that keeps off, and when it is broken."""

from functools import partial
from typing import Any

import pytest

from asched.core.model.kinds import NODE, POD
from asched.core.state.ends import GRACE_S, START_S
from asched.core.state.facts import Gone, Seen
from asched.core.state.reservations import NodeNeed, vector
from tests.core.state.scenes import NOW_S, Scene, endless, lasting, room

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


def test_classes_that_are_tried_at_another_time_are_not_bound() -> None:
    scene = Scene()
    scene.reserve()
    info = scene.info(endless("a"))
    before = scene.cluster.counts
    scene.ledger.suspend([info.cls.number])
    assert scene.ledger.binding(info) == []
    scene.ledger.suspend(())
    assert len(scene.ledger.binding(info)) == 1
    assert scene.cluster.counts > before


def test_what_goes_and_what_comes_until_then_counts() -> None:
    running = lasting("running", 100).on("n1").status(startTime="1970-01-12T13:46:40Z")
    scene = Scene(running, endless("stays", cpu="1").on("n1"))
    one = scene.reserve(cpus={"n1": 2})
    left = scene.ledger.left(one)
    assert left.rows.tolist() == [0]
    assert left.amounts[CPU].tolist() == [1000], (
        "four, less one that stays and two that are promised"
    )
    assert [info.pod.metadata.name for info, _ in scene.ledger.leaving(0, one.start_s)] == [
        "running"
    ]
    scene.cluster.apply(Seen(POD, endless("new", cpu="1").on("n1").build()))
    assert scene.ledger.left(one).amounts[CPU].tolist() == [0]
    scene.cluster.apply(Gone(POD, endless("stays").on("n1").build()))
    assert scene.ledger.left(one).amounts[CPU].tolist() == [1000]
    assert scene.ledger.left(one) is left


def test_others_that_have_begun_by_then_and_not_ended_take_their_room() -> None:
    scene = Scene()
    one = scene.reserve("one", at_s=1000, cpus={"n1": 1})
    assert scene.ledger.left(one).amounts[CPU].tolist() == [3000]
    scene.reserve("during", at_s=500, cpus={"n1": 1})
    assert scene.ledger.left(one).amounts[CPU].tolist() == [2000]
    scene.reserve("before", at_s=100, lasts_s=900, cpus={"n1": 1})
    scene.reserve("after", at_s=1001, cpus={"n1": 1})
    scene.reserve("elsewhere", at_s=500, cpus={"n2": 1})
    assert scene.ledger.left(one).amounts[CPU].tolist() == [2000]


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


def test_reservations_stand_in_their_order_and_go() -> None:
    scene = Scene()
    scene.reserve("late", since_s=5.0)
    scene.reserve("early", since_s=1.0)
    scene.reserve("vip", since_s=9.0, priority=7)
    assert [one.owner for one in scene.ledger.all()] == ["vip", "early", "late"]
    assert scene.ledger.of("vip") is scene.ledger.all()[0]
    assert scene.ledger.all()[0].priority == 7
    version = scene.ledger.version
    assert scene.ledger.drop("nobody") is None
    assert scene.ledger.version == version
    dropped = scene.ledger.drop("vip")
    assert dropped is not None
    assert (scene.ledger.of("vip"), len(scene.ledger)) == (None, 2)
    assert scene.ledger.version == version + 1


def test_time_alone_binds_who_was_free() -> None:
    scene = Scene()
    scene.reserve(at_s=1000)
    short = lasting("short", 100)
    assert scene.codes(short) == [0, 0]
    before = scene.cluster.counts
    scene.ledger.tick()
    assert scene.cluster.counts == before
    scene.cluster.wall_clock_s += 950
    scene.ledger.tick()
    assert scene.cluster.counts > before, "whoever kept an answer asks again"
    assert scene.codes(short) == [1, 0]


def test_on_trial_each_row_is_asked_about_as_it_is_supposed() -> None:
    scene = Scene(endless("there", cpu="1").on("n1"))
    scene.reserve(cpus={"n1": 3})
    assert scene.codes(endless("a")) == [1, 0]
    with scene.cluster.supposing() as suppose:
        suppose.gone([scene.cluster.placed["uid-there"]], 0)
        assert scene.codes(endless("a")) == [0, 0]
        assert scene.codes(endless("a"), rows=[1, 0]) == [0, 0]
    assert scene.codes(endless("a")) == [1, 0]


def test_amounts_of_what_no_node_has_are_left_out() -> None:
    scene = Scene()
    assert vector(scene.cluster, {"cpu": 5, "x.com/y": 7}, 2).tolist() == [5, 0, 0, 2]
    one = scene.reserve(at_s=10, lasts_s=5)
    assert [one.is_active(NOW_S + s) for s in (9, 10, 14, 15)] == [False, True, True, False]


def test_in_the_very_moment_of_its_start_who_ends_then_is_not_kept_off() -> None:
    scene = Scene()
    scene.reserve(at_s=100 + START_S + GRACE_S)
    assert scene.codes(lasting("to-the-moment", 100)) == [0, 0]
    assert scene.codes(lasting("longer", 101)) == [1, 0]


def test_whoever_is_like_any_of_its_pods_is_one_of_its_own() -> None:
    scene = Scene()
    likes = scene.info(endless("driver", cpu="1")), scene.info(endless("worker", cpu="2"))
    scene.reserve(likes=likes)
    assert [scene.ledger.binding(one) for one in likes] == [[], []]


def test_who_kept_an_answer_asks_again_once_for_each_moment_that_turns_it() -> None:
    scene = Scene()
    lasts_s = 100 + START_S + GRACE_S
    scene.reserve("later", at_s=2000)
    scene.reserve("soon", at_s=1000, cpus={"n2": 4})
    assert scene.codes(lasting("short", 100)) == [0, 0]

    def asked_again_at(seconds: float) -> bool:
        before = scene.cluster.counts
        scene.cluster.wall_clock_s = NOW_S + seconds
        scene.ledger.tick()
        return bool(scene.cluster.counts > before)

    assert not asked_again_at(1000 - lasts_s), "it ends in the moment of that start still"
    assert asked_again_at(1001 - lasts_s)
    assert not asked_again_at(1002 - lasts_s), "nobody has asked since"
    assert scene.codes(lasting("short", 100)) == [0, 1]
    assert asked_again_at(2001 - lasts_s)


def test_whatever_is_reserved_or_given_up_lets_everybody_ask_again() -> None:
    scene = Scene()
    before = scene.cluster.counts
    scene.ledger.tick()
    assert scene.cluster.counts == before, "nothing is reserved"
    for change in (scene.reserve, partial(scene.ledger.drop, "gang")):
        before = scene.cluster.counts, scene.ledger.version
        change()
        assert (scene.cluster.counts > before[0], scene.ledger.version) == (True, before[1] + 1)
    scene.reserve(at_s=1000)
    scene.codes(lasting("short", 100))
    scene.ledger.drop("gang")
    before = scene.cluster.counts
    scene.cluster.wall_clock_s += 5000
    scene.ledger.tick()
    assert scene.cluster.counts == before, "no moment is waited for that was a dropped one's"


@pytest.mark.parametrize("on_trial", [False, True])
def test_only_what_a_pod_asks_for_keeps_it_off_and_one_reservation_is_enough(
    on_trial: bool,
) -> None:
    scene = Scene()
    scene.reserve("roomy", cpus={"n1": 1})
    one = scene.reserve("all-of-its-memory", cpus={"n1": 1})
    one.needs = {"n1": NodeNeed({"memory": 100 << 30}, 1)}
    scene.reserve("elsewhere", cpus={"n2": 4})
    guest = scene.info(endless("guest", cpu="1"))

    def codes(cpu: str) -> list[int]:
        if not on_trial:
            return scene.codes(endless(f"asks-{cpu}", cpu=cpu))
        with scene.cluster.supposing() as suppose:
            suppose.there((guest,), 0)
            return scene.codes(endless(f"asks-{cpu}", cpu=cpu))

    assert codes("1") == [0, 1], "two thirds of n1 are left, and none of n2"
    assert codes("4") == [1, 1]
    assert scene.codes(endless("memory").requests(memory="1Gi", cpu="0")) == [1, 0]


@pytest.mark.parametrize("on_trial", [False, True])
def test_pods_are_counted_as_amounts_are(on_trial: bool) -> None:
    scene = Scene()
    scene.cluster.apply(Seen(NODE, room("n1").allocatable(pods="3").build()))
    scene.reserve(cpus={"n1": 0})
    for count, code in ((0, 0), (1, 0), (2, 1)):
        pods = [scene.info(endless(f"p{n}", cpu="0")) for n in range(count)]
        if on_trial:
            with scene.cluster.supposing() as suppose:
                suppose.there((*pods,), 0)
                assert scene.codes(endless("one-more", cpu="0")) == [code, 0]
            continue
        for info in pods:
            scene.cluster.apply(
                Seen(POD, endless(info.pod.metadata.name, cpu="0").on("n1").build())
            )
        assert scene.codes(endless("one-more", cpu="0")) == [code, 0]


def test_rows_whose_node_went_keep_nobody_off() -> None:
    scene = Scene()
    scene.reserve(cpus={"n1": 4, "n2": 4})
    scene.cluster.apply(Gone(NODE, room("n1").build()))
    guest = scene.info(endless("guest", cpu="1"))
    with scene.cluster.supposing() as suppose:
        suppose.there((guest,), 1)
        assert scene.codes(endless("a")) == [0, 1]


def test_what_is_left_follows_nodes_that_go_and_come_back() -> None:
    scene = Scene()
    one = scene.reserve(cpus={"n1": 1, "n2": 2})
    assert scene.ledger.left(one).amounts[CPU].tolist() == [3000, 2000]
    scene.cluster.apply(Gone(NODE, room("n1").build()))
    assert scene.ledger.left(one).amounts[CPU].tolist() == [2000]
    assert scene.ledger.is_broken(one)
    scene.cluster.apply(Seen(NODE, room("n1", 8).build()))
    assert scene.ledger.left(one).amounts[CPU].tolist() == [7000, 2000]
    assert not scene.ledger.is_broken(one)
    scene.cluster.apply(Gone(NODE, room("n1", 8).build()))
    scene.cluster.apply(Seen(NODE, room("stranger", 50).build()))
    scene.cluster.apply(Seen(NODE, room("n1", 6).build()))
    assert scene.ledger.left(one).amounts[CPU].tolist() == [5000, 2000], "in another row now"
    assert scene.codes(endless("long", cpu="6")) == [0, 1, 1]


def test_one_node_whose_room_somebody_has_who_goes_before_breaks_it() -> None:
    scene = Scene()
    one = scene.reserve("one", since_s=5.0, cpus={"n1": 4, "n2": 4})
    scene.reserve("later", since_s=9.0, at_s=500, cpus={"n1": 4})
    assert not scene.ledger.is_broken(one)
    scene.reserve("earlier", since_s=1.0, at_s=500, cpus={"n2": 1})
    assert scene.ledger.is_broken(one)


def test_what_is_free_at_a_time_counts_pods_and_who_ends_in_that_moment() -> None:
    started = "1970-01-12T13:46:40Z"
    scene = Scene(
        lasting("ends", 100, cpu="2").on("n1").status(startTime=started),
        endless("stays", cpu="1").on("n1"),
    )
    end_s = NOW_S + 100 + GRACE_S
    for at_s, cpu, pods in ((end_s - 1, 1000, 8), (end_s, 3000, 9)):
        free = scene.ledger.free_at(0, at_s)
        assert (free[CPU], free[-1]) == (cpu, pods)
    assert not scene.ledger.is_on, "until a profile has the plugin"
