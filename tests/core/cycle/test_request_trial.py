"""The trial of a request: its pods as a gang that is only supposed, then slots in their places."""

from collections.abc import Callable, Generator, Iterator
from itertools import count
from typing import Any

import pytest

from asched.core.config.args import CheckAndHoldArgs
from asched.core.cycle import request_trial
from asched.core.cycle.group_trial import LET_GO_STEPS
from asched.core.cycle.request_book import Bookings, giving_back, keep
from asched.core.cycle.request_cycle import served
from asched.core.cycle.request_trial import Found, answer, rehouse
from asched.core.framework.status import PointError
from asched.core.model.kinds import NODE, POD
from asched.core.model.timestamp import rfc3339
from asched.core.state.audit import recount
from asched.core.state.changes import Change
from asched.core.state.facts import Gone, Seen
from tests.builders import NodeBuilder, a_pod
from tests.core.cycle.attempts import run
from tests.core.cycle.test_request_plays import (
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


def answered(play: RequestPlay, **fields: Any) -> Found:
    born_s = fields.pop("born_s", WALL_S)
    play.ask(**fields)
    play.stored["job"]["metadata"]["creationTimestamp"] = rfc3339(born_s) if born_s else "never"
    play.parts.cluster.wall_clock_s = WALL_S
    context = play.machine.context
    found: Found = run(answer(context, play.record("job"), served(context)))
    return found


def told(found: Found) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in found.wanted.conditions}


def why(found: Found) -> str:
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


def test_many_pods_are_paid_for_as_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_trial(_context: Any, group: Any) -> Iterator[Any]:
        uids = {attempt.pod.uid for attempt in group.attempts}
        assert len(uids) == len(group.attempts) == 1_100
        yield from ()
        return "no"

    monkeypatch.setattr(request_trial, "_trial", no_trial)
    play = a_scene()
    play.template("other", cpu="2")
    spent = play.parts.cluster.budget.spent
    answered(play, sets={"worker": 1_000, "other": 100})
    assert play.parts.cluster.budget.spent - spent == 2 * 100 * LET_GO_STEPS


def test_no_search_is_begun_where_one_pod_after_the_other_found_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor where a plugin failed: that is no lack of room."""
    searched: list[str] = []
    real = request_trial.search_places

    def search_places(*about: Any) -> Any:
        searched.append("")
        return real(*about)

    monkeypatch.setattr(request_trial, "search_places", search_places)
    play = a_scene()
    assert told(answered(play, sets={"worker": 3}))["Provisioned"][0] == "True"
    assert not searched
    play = a_scene()
    answered(play, sets={"worker": 4})
    assert searched
    searched.clear()
    play = a_scene()
    state_of = play.machine.context.runners["default-scheduler"].cache.state_of

    def fails(pod: Any) -> Any:
        raise PointError("broken")

    play.machine.context.runners["default-scheduler"].cache.state_of = fails  # type: ignore[method-assign]
    found = answered(play, sets={"worker": 1})
    assert "broken" in why(found)
    assert not searched
    assert state_of is not fails


def meanwhile(
    play: RequestPlay, steps: Generator[Any, Any, Any], deed: Callable[[], None], at: int
) -> Any:
    """What steps come to if they pause whenever they may, and this is done at one of the pauses."""
    budget = play.parts.cluster.budget
    try:
        for number in count(1):
            budget.open(0)
            next(steps)
            if number == at:
                deed()
    except StopIteration as end:
        budget.close()
        return end.value


def asked(play: RequestPlay, count: int) -> Generator[Any, Any, Found]:
    play.ask(sets={"worker": count})
    context = play.machine.context
    return answer(context, play.record("job"), served(context))


def pauses(play: RequestPlay, steps: Generator[Any, Any, Any]) -> int:
    seen: list[str] = []
    budget = play.parts.cluster.budget
    budget.open(0)
    for _ in steps:
        seen.append("")
        budget.open(0)
    budget.close()
    return len(seen)


def test_who_saw_room_taken_by_a_trial_in_vain_hears_that_it_is_free() -> None:
    play = a_scene()
    told_of: list[str] = []

    def move(change: Change, _now_s: float, **_: Any) -> int:
        told_of.append(change.old.spec.node_name)
        return 0

    steps = asked(play, 4)
    play.machine.context.queue.move = move  # type: ignore[method-assign]
    assert pauses(play, steps) > 0
    assert told_of == ["n1"], "of equal pods one, whatever their nodes"


@pytest.mark.parametrize("what", ["taken", "ended"])
def test_places_that_are_lost_while_they_are_written_down_are_looked_for_again(what: str) -> None:
    """At its last pause half of them are held, and the others supposed."""
    last = pauses(play := a_scene(), asked(play, 3))
    play = a_scene()
    bookings = play.parts.cluster.singleton(Bookings)

    def deed() -> None:
        assert bookings.get("default/job") is not None
        if what == "ended":
            bookings.end("default/job")
        else:
            large = a_pod("large").requests(cpu="2").spec(schedulerName="another")
            for node in ("n1", "n2"):
                play.turn(Seen(POD, large.on(node).build()))

    found = meanwhile(play, asked(play, 3), deed, last)
    assert told(found)["Provisioned"] == ("False", "CapacityIsNotFound")
    assert found.is_tried_again
    run(giving_back(play.machine.context))
    assert (play.held(), bookings.get("default/job")) == ({}, None)
    assert not any("job" in uid for uid in play.parts.cluster.placed)
    assert recount(play.parts.cluster) == []


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


def test_a_booking_that_ends_while_others_have_their_turn_gets_no_other_places() -> None:
    play, booking = lost(room("n2", 1))
    context, bookings = play.machine.context, play.parts.cluster.singleton(Bookings)
    last = pauses(play, rehouse(context, booking))
    assert play.held() == {"n2": 1}
    play, booking = lost(room("n2", 1))
    context, bookings = play.machine.context, play.parts.cluster.singleton(Bookings)
    meanwhile(play, rehouse(context, booking), lambda: bookings.end(booking.key) and None, last)
    assert play.held() == {}
    assert not play.parts.cluster.placed
