"""The wall clock is set by a day: held places, requests and promises last as long as before."""

import pytest

from asched.core.cluster.facts import Seen, WallClock
from asched.core.model.kinds import NODE
from asched.core.model.timestamp import rfc3339
from tests.builders import a_pod, room
from tests.playbook import (
    EPOCH_S,
    HOLD_S,
    LIMIT_S,
    Batch,
    Play,
    ScaleUpPlay,
    held_play,
    lasting,
    request_play,
    restarted,
    two_full_nodes,
)

DAY_S = 86_400.0
GRACE_S = 30.0
STEPS = pytest.mark.parametrize("step_s", [-DAY_S, 0.0, DAY_S])


def step(play: Play, step_s: float) -> None:
    """Set the wall clock."""
    ahead_s = play.parts.cluster.wall_clock_s - play.now_s
    play.turn(WallClock(ahead_s + step_s))


@STEPS
def test_held_places_last_as_long_as_was_said(step_s: float) -> None:
    play = held_play()
    step(play, step_s)
    play.turn(after_s=HOLD_S - 1.0)
    assert sum(play.held().values()) == 2
    play.turn(after_s=1.0)
    assert play.held() == {}
    assert play.settle()["BookingExpired"] == ("True", "CapacityReservationTimeExpired")


def test_the_next_process_reads_the_end_as_a_date() -> None:
    nodes = room("n1", 2), room("n2", 1)
    play = held_play(*nodes)
    play.turn(after_s=HOLD_S / 2)
    other = restarted(play, *nodes)
    other.template()
    other.show("job")
    assert sum(other.held().values()) == 2
    step(other, -DAY_S)
    other.turn(after_s=HOLD_S / 2 - 1.0)
    assert sum(other.held().values()) == 2
    other.turn(after_s=1.0)
    assert other.held() == {}


@STEPS
def test_a_request_fails_at_its_time(step_s: float) -> None:
    play = request_play(room("n1", 1))
    play.template()
    play.ask(sets={"worker": 2}, parameters={"ValidUntilSeconds": "100"})
    assert play.settle()["Provisioned"] == ("False", "CapacityIsNotFound")
    step(play, step_s)
    for _ in range(99):
        play.turn(after_s=1.0)
    assert "Failed" not in play.settle()
    for _ in range(3):
        play.turn(after_s=1.0)
    assert play.settle()["Failed"] == ("True", "Expired")


@STEPS
def test_a_request_for_nodes_is_withdrawn_at_its_time(step_s: float) -> None:
    play = ScaleUpPlay(room("n1", 1))
    play.crew()
    step(play, step_s)
    play.settle(LIMIT_S - 10)
    assert play.requests
    play.settle(15)
    assert play.is_clean


@STEPS
def test_a_promise_is_kept_when_its_pods_end(step_s: float) -> None:
    play = two_full_nodes()
    play.gang("crew", lasting("w0", 600, cpu=4), lasting("w1", 600, cpu=4))
    step(play, step_s)
    play.pass_time(100.0 + GRACE_S)
    play.end("a")
    assert play.promised("scheduling.x-k8s.io:default/crew") is not None
    play.show(lasting("long", 500, cpu=2))
    assert "long" not in play.places, "the room is still reserved"
    play.pass_time(100.0)
    play.end("b")
    play.pass_time(15.0)
    assert {"w0", "w1"} <= play.places.keys()


@STEPS
def test_a_promise_moves_forward_when_a_pod_ends_early(step_s: float) -> None:
    play = two_full_nodes()
    play.gang("crew", lasting("w0", 600, cpu=4))
    before_s = play.to("crew").start_s
    play.show(lasting("c", 50, cpu=1))
    step(play, step_s)
    play.end("a")
    play.pass_time(31.0)
    assert play.places.get("w0") == "n1" or play.to("crew").start_s < before_s


@STEPS
def test_a_broken_promise_is_made_again_within_the_usual_pause(step_s: float) -> None:
    play = two_full_nodes()
    play.gang("crew", lasting("w0", 600, cpu=4), lasting("w1", 600, cpu=4))
    play.turn(Seen(NODE, room("n3").build()))
    step(play, step_s)
    play.turn(Seen(NODE, room("n2").cordoned().build()))
    play.pass_time(65.0)
    assert "n2" not in play.to("crew").needs


@STEPS
def test_starts_are_given_up_at_the_horizon(step_s: float) -> None:
    play = Batch(room("n1"), args={"horizonSeconds": 200})
    play.show(lasting("a", 150, cpu=4))
    play.show(a_pod("waits").requests(cpu="4"))
    assert "; expected to start by " in play.told["waits"]
    step(play, step_s)
    play.show(lasting("b", 150, cpu=4).on("n1"))
    play.pass_time(400.0)
    assert "; expected to start by " not in play.told["waits"]


def test_the_dates_in_conditions_are_of_the_wall_clock() -> None:
    play = two_full_nodes()
    play.gang("crew", lasting("w0", 600, cpu=4), lasting("w1", 600, cpu=4))
    by = rfc3339(EPOCH_S + 200 + GRACE_S + 1)
    assert play.told["w0"].endswith(f"; expected to start by {by} (hard)")
