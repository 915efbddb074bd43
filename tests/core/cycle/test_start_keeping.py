"""Promises of starts, turn by turn: kept, looked at again, given up, and passed on."""

import pytest

from asched.batch.backfill.keeping import (
    GIVE_UP_S,
    REPLAN_S,
    StartTimes,
    drop,
    is_due,
    keep,
    next_s,
    owner_of,
    started,
)
from asched.core.model.kinds import NODE, POD
from asched.core.state.changes import Change
from asched.core.state.facts import Gone, Seen
from asched.core.state.reservations import StartOrder
from tests.builders import a_node, a_pod
from tests.core.cycle.batch_stage import EPOCH_S, LABEL, Promises


def test_who_is_promised_a_start_is_a_gang_or_a_pod() -> None:
    scene = Promises()
    alone = a_pod("alone").build()
    assert owner_of(scene.context, alone) == "pod:uid-alone"
    member = a_pod("m").labels({LABEL: "crew"}).spec(schedulerName="default-scheduler")
    assert owner_of(scene.context, member.build()) == "pod:uid-m", "nobody knows the group"
    scene.play.gang("crew", member)
    assert owner_of(scene.context, member.build()) == "scheduling.x-k8s.io:default/crew"


def test_a_promise_is_left_alone_while_it_holds_and_looked_at_when_it_is_due() -> None:
    scene = Promises()
    assert scene.after(60) == []
    assert not is_due(scene.cluster, scene.one)
    assert scene.after(3540) == ["web"]
    assert is_due(scene.cluster, scene.one)
    assert scene.one.woken_s == scene.cluster.wall_clock_s
    assert next_s(scene.cluster) == scene.now_s + REPLAN_S, "not before, though it is due"
    assert scene.after(REPLAN_S - 1) == [], "it was woken just now"
    assert scene.after(1) == ["web"]


def test_a_promise_that_is_broken_is_looked_at_at_once() -> None:
    scene = Promises()
    cordoned = a_node("n1").allocatable(cpu="4", memory="8Gi", pods="9").cordoned()
    scene.cluster.apply(Seen(NODE, cordoned.build()))
    assert scene.after(1) == ["web"]


def test_room_that_came_is_worth_another_look_after_a_while() -> None:
    scene = Promises()
    other = a_pod("other").requests(cpu="1").on("n1").build()
    scene.cluster.apply(Seen(POD, other))
    scene.after(5)
    scene.cluster.apply(Gone(POD, other))
    assert scene.after(5) == []
    assert scene.kept.ended_early_s == scene.cluster.wall_clock_s
    assert scene.after(REPLAN_S) == ["web"]


def test_whoever_was_woken_is_left_alone_for_a_while_whatever_came() -> None:
    """Else a process would look at it turn after turn until then."""
    scene = Promises()
    scene.kept.ended_early_s = scene.one.made_s + 1
    assert scene.after(REPLAN_S) == ["web"]
    until_s = scene.cluster.wall_clock_s + REPLAN_S - scene.cluster.wall_ahead_s
    assert next_s(scene.cluster) == until_s
    scene.kept.ended_early_s = scene.one.made_s
    assert scene.after(REPLAN_S) == []
    assert next_s(scene.cluster) == scene.one.start_s - scene.cluster.wall_ahead_s


def test_while_a_search_is_under_way_nothing_is_concluded() -> None:
    scene = Promises(at_s=10)
    scene.kept.is_trying = True
    assert scene.after(60) == []
    scene.kept.is_trying, scene.kept.searching = False, scene.one.owner
    assert scene.after(60) == []
    scene.kept.searching = "another"
    assert scene.after(60) == ["web"]


def test_whose_start_is_long_past_is_given_up() -> None:
    scene = Promises(at_s=10)
    scene.after(10 + GIVE_UP_S)
    assert len(scene.ledger) == 1
    scene.after(1)
    assert (len(scene.ledger), scene.kept.outcomes["dropped"]) == (0, 1)


@pytest.mark.parametrize("version", ["gone", "another", "placed", "ended", "assumed"])
def test_a_promise_ends_with_who_waits_for_it(version: str) -> None:
    scene = Promises()
    if version == "gone":
        scene.cluster.apply(Gone(POD, a_pod("web").build()))
    elif version == "assumed":
        scene.cluster.assume(scene.one.likes[0], "n1")
    else:
        pod = {
            "another": a_pod("web").metadata(uid="anew"),
            "placed": a_pod("web").on("n1"),
            "ended": a_pod("web").on("n1").status(phase="Succeeded"),
        }[version]
        scene.cluster.apply(Seen(POD, pod.build()))
    scene.after(1)
    assert len(scene.ledger) == 0


@pytest.mark.parametrize(("late_s", "outcome"), [(0, "kept"), (REPLAN_S, "kept"), (31, "late")])
def test_a_start_is_kept_or_late(late_s: float, outcome: str) -> None:
    scene = Promises()
    scene.cluster.wall_clock_s = scene.one.start_s + late_s
    scene.one.first_s -= 1000  # it was moved back
    started(scene.context, a_pod("stranger").build())
    assert len(scene.ledger) == 1
    started(scene.context, scene.one.likes[0].pod)
    assert dict(scene.kept.outcomes) == {outcome: 1}
    assert len(scene.ledger) == 0


def test_what_is_promised_no_more_is_told_once_in_the_next_turn() -> None:
    scene = Promises()
    drop(scene.context, "nobody", "dropped")
    assert not scene.kept.has_moved
    drop(scene.context, scene.one.owner, "displaced")
    assert next_s(scene.cluster) == 0.0
    labels: list[str] = []

    def move(change: Change, now_s: float, **_: str) -> int:
        labels.append(change.trigger.label)
        return 0

    scene.context.queue.move = move  # type: ignore[method-assign]
    scene.kept.freed.add(1, a_pod("tried").build(), "n1")
    scene.after(1)
    assert labels == ["AssignedPodDelete", "ReservationDelete"]
    scene.after(1)
    assert len(labels) == 2
    assert next_s(scene.cluster) is None
    scene.kept.freed.add(1, a_pod("tried").build(), "n1")
    assert next_s(scene.cluster) == 0.0


def test_the_next_who_waits_for_a_promise_is_tried_when_there_is_one_to_be_had() -> None:
    scene = Promises(reservations=1)
    scene.waits("a-later-one")
    scene.waits("first")
    scene.kept.waiting["b"] = StartOrder(0, 9.0, 2), "default/a-later-one"
    scene.kept.waiting["a"] = StartOrder(0, 1.0, 1), "default/first"
    assert scene.after(1) == [], "the only one is taken"
    drop(scene.context, scene.one.owner, "dropped")
    scene.kept.has_moved, scene.kept.searching = False, "somebody"
    assert (scene.after(1), next_s(scene.cluster)) == ([], None), "one search at a time"
    scene.kept.searching = ""
    assert next_s(scene.cluster) == 0.0
    assert scene.after(1) == ["first"]
    assert list(scene.kept.waiting) == ["b"]
    scene.cluster.apply(Gone(POD, a_pod("a-later-one").build()))
    assert (scene.after(1), scene.kept.waiting) == ([], {})


def test_when_there_is_something_to_do_next() -> None:
    scene = Promises(at_s=3600)
    ahead_s = scene.cluster.wall_ahead_s
    assert ahead_s > EPOCH_S / 2
    assert next_s(scene.cluster) == scene.one.start_s - ahead_s
    scene.one.woken_s = scene.cluster.wall_clock_s
    assert next_s(scene.cluster) == scene.cluster.wall_clock_s + REPLAN_S - ahead_s
    scene.one.woken_s = scene.cluster.wall_clock_s - 999
    assert next_s(scene.cluster) == scene.cluster.wall_clock_s - ahead_s, "not in the past"


def test_numbers_stay_with_their_owner() -> None:
    kept, scene = StartTimes(), Promises()
    assert [kept.number_of("a", None), kept.number_of("b", None)] == [1, 2]
    assert kept.number_of("c", scene.one) == scene.one.order.number
    kept.waiting["d"] = StartOrder(0, 0.0, 77), "default/d"
    assert kept.number_of("d", None) == 77


def test_profiles_that_promise_nothing_any_more_end_what_they_promised() -> None:
    scene = Promises()
    assert scene.kept.reservations_max > 0
    scene.context.runners, scene.kept.has_recalled = {}, False
    keep(scene.context)
    assert (scene.ledger.is_on, len(scene.ledger)) == (False, 0)
    assert keep(scene.context) is False
