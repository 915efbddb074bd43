"""The trial of a request: its pods as a gang that is only supposed, then slots in their places."""

from typing import Any

import pytest

from asched.batch.provisioning.book import Bookings, keep
from asched.batch.provisioning.cycle import served
from asched.batch.provisioning.trial import RequestOutcome, answer, rehouse
from asched.core.config.args import CheckAndHoldArgs
from asched.core.model.kinds import NODE
from asched.core.model.timestamp import rfc3339
from asched.core.state.audit import recount
from asched.core.state.facts import Gone, Seen
from tests.builders import NodeBuilder
from tests.core.cycle.attempts import run
from tests.core.cycle.request_plays import (
    CLASS,
    RequestPlay,
    a_play,
    consumer,
    held_play,
    room,
)

WALL_S = 1_800_000_000.0


def a_scene(*nodes: NodeBuilder) -> RequestPlay:
    """Nobody is answered by itself."""
    play = a_play(*(nodes or (room("n1", 2), room("n2", 1))))
    play.machine.is_active = False
    play.template()
    play.parts.cluster.wall_clock_s = WALL_S
    return play


def answered(play: RequestPlay, **fields: Any) -> RequestOutcome:
    born_s = fields.pop("born_s", WALL_S)
    play.ask(**fields)
    play.stored["job"]["metadata"]["creationTimestamp"] = rfc3339(born_s) if born_s else "never"
    play.parts.cluster.wall_clock_s = WALL_S
    context = play.machine.context
    found: RequestOutcome = run(answer(context, play.record("job"), served(context)))
    return found


def told(found: RequestOutcome) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in found.wanted.conditions}


def why(found: RequestOutcome) -> str:
    return found.wanted.conditions[-1].message


def test_all_of_its_places_are_held_and_told() -> None:
    play = a_scene()
    found = answered(play, sets={"worker": 3})
    assert told(found)["Provisioned"] == ("True", "CapacityIsFound")
    assert play.held() == {"n1": 2, "n2": 1}
    assert found.wanted.details is not None
    assert sorted(found.wanted.details["places-0"].split(",")) == ["0/n1*2", "0/n2"]
    assert found.wanted.details["heldUntil"].startswith(rfc3339(WALL_S + 600)[:-1])
    assert not found.is_tried_again
    assert not play.parts.cluster.placed, "nobody is supposed to be there any more"
    assert recount(play.parts.cluster) == []


def test_sets_keep_their_numbers() -> None:
    play = a_scene(room("n1", 3))
    play.template("large", cpu="2")
    found = answered(play, sets={"worker": 1, "large": 1})
    assert found.wanted.details is not None
    assert sorted(found.wanted.details["places-0"].split(",")) == ["0/n1", "1/n1"]
    booking = play.parts.cluster.singleton(Bookings).get("default/job")
    assert booking is not None
    assert {s: like.cls.accounted["cpu"] for s, like in booking.likes.items()} == {0: 1000, 1: 2000}


def test_one_place_too_few_is_none_at_all() -> None:
    play = a_scene()
    found = answered(play, sets={"worker": 4})
    assert told(found)["Provisioned"] == ("False", "CapacityIsNotFound")
    assert (play.held(), found.is_tried_again) == ({}, True)
    assert found.valid_until_s == WALL_S + 7 * 86_400
    assert "tried one after the other: 0/2 nodes are available: 2 Insufficient cpu." in why(found)
    assert not play.parts.cluster.placed
    assert play.parts.cluster.singleton(Bookings).get("default/job") is None


def test_without_another_try_it_fails() -> None:
    found = answered(a_scene(), sets={"worker": 4}, parameters={"noRetry": "true"})
    assert told(found)["Failed"] == ("True", "CapacityIsNotFound")
    assert not found.is_tried_again


@pytest.mark.parametrize(
    ("born_s", "expired"), [(WALL_S - 59, False), (WALL_S - 60, True), (0, False)]
)
def test_it_is_answered_within_its_time_and_not_after(born_s: float, expired: bool) -> None:
    found = answered(a_scene(), born_s=born_s, parameters={"ValidUntilSeconds": "60"})
    assert (told(found).get("Failed") == ("True", "Expired")) == expired
    if expired:
        assert "no place was found within 60 s (ValidUntilSeconds)" in why(found)


def test_a_template_that_is_missing_is_waited_for() -> None:
    found = answered(a_scene(), sets={"absent": 1})
    assert told(found)["Provisioned"] == ("False", "FailedToCreatePods")
    assert (found.is_tried_again, found.lacks) == (True, "default/absent")


def test_pods_of_another_scheduler_would_not_get_the_places() -> None:
    play = a_scene()
    play.template("theirs", schedulerName="another")
    found = answered(play, sets={"theirs": 1})
    assert told(found)["Failed"] == ("True", "FailedToCreatePods")
    assert f'the scheduler "another", no profile of which serves {CLASS}' in why(found)
    assert not found.is_tried_again


def test_another_class_of_the_profile_is_not_this_one() -> None:
    play = a_scene()
    play.ask()
    context = play.machine.context
    other = {"default-scheduler": CheckAndHoldArgs(provisioning_class_name="another")}
    found = run(answer(context, play.record("job"), other))
    assert told(found)["Failed"] == ("True", "FailedToCreatePods")


def test_pods_in_whose_places_extenders_have_a_say_are_refused() -> None:
    play = a_scene()
    runner = play.machine.context.runners["default-scheduler"]
    play.template("theirs", cpu="2")
    runner.consults = lambda info: info.cls.accounted["cpu"] == 2000  # type: ignore[method-assign]
    found = answered(play, sets={"worker": 1, "theirs": 1})
    assert told(found)["Failed"] == ("True", "FailedToCreatePods")
    assert "extender" in why(found)


def test_pods_that_have_places_already_have_them_of_the_request() -> None:
    play = a_scene(room("n1", 3))
    play.see(consumer("a").on("n1"))
    answered(play, sets={"worker": 2})
    assert play.held() == {"n1": 1}


# --- slots that lost their places ----------------------------------------------------------------


def lost(*others: NodeBuilder) -> tuple[RequestPlay, Any]:
    """A slot on n1, which went."""
    play = held_play(room("n1", 1), count=1)
    play.machine.is_active = False
    booking = play.parts.cluster.singleton(Bookings).get("default/job")
    play.turn(*(Seen(NODE, node.build()) for node in others))
    play.turn(Gone(NODE, room("n1", 1).build()))
    keep(play.machine.context)  # as before a decision
    return play, booking


def test_a_slot_that_lost_its_place_gets_another() -> None:
    play, booking = lost(room("n2", 1))
    assert list(booking.homeless)
    wanted = run(rehouse(play.machine.context, booking))
    assert wanted.details["places-0"] == "0/n2"
    assert play.held() == {"n2": 1}
    assert not booking.homeless
    again = run(rehouse(play.machine.context, booking))
    assert again.details == wanted.details, "there was nothing to look for"
    assert recount(play.parts.cluster) == []


def test_without_another_it_is_over() -> None:
    play, booking = lost(room("n2", 1).taints("a=b:NoSchedule"))
    wanted = run(rehouse(play.machine.context, booking))
    assert [(c.type, c.reason) for c in wanted.conditions] == [("BookingExpired", "CapacityIsLost")]
    assert not play.parts.cluster.placed


def test_with_a_profile_that_went_it_is_over_too() -> None:
    play, booking = lost(room("n2", 1))
    play.machine.context.runners = {}
    wanted = run(rehouse(play.machine.context, booking))
    assert wanted.conditions[0].reason == "CapacityIsLost"
