"""The cycle of requests while others have their turn: what ended, came or went meanwhile."""

from typing import Any

import pytest

from asched.core.config.args import CheckAndHoldArgs
from asched.core.cycle import holding, request_cycle, request_status, request_trial
from asched.core.cycle.request_adoption import TIME_IS_UP
from asched.core.cycle.request_book import Bookings
from asched.core.cycle.request_cycle import Requests, Tracked, next_s
from asched.core.model.kinds import NODE, POD, PROVISIONING_REQUEST
from asched.core.state.facts import Gone, Refused, Seen
from tests.core.cycle.attempts import run
from tests.core.cycle.test_request_plays import (
    RequestPlay,
    a_play,
    again,
    consumer,
    held_play,
    room,
    too_large,
)

SERVED = {"default-scheduler": CheckAndHoldArgs()}


def begun(play: RequestPlay) -> request_cycle.Work:
    """The only work there is now."""
    (work,) = request_cycle.due(play.machine.context)
    return work


def asking() -> tuple[RequestPlay, Requests]:
    """Two places for a request that nobody has tried yet."""
    play = a_play(room("n1", 2))
    play.machine.is_active = False
    play.template()
    play.ask()
    return play, play.parts.cluster.singleton(Requests)


def test_what_ended_here_says_nothing_any_more_whatever_is_written_there() -> None:
    play = held_play(room("n1", 2))
    promised = dict(play.stored["job"]["status"])
    ended = {"type": "Failed", "status": "True", "reason": "Admin", "message": ""}
    play.stored["job"]["status"] = {"conditions": [ended]}
    play.show("job")
    for forged in ({}, promised):
        play.stored["job"]["status"] = forged
        play.show("job")
        play.turn(after_s=60)
        assert (play.held(), play.patches(), next_s(play.parts.cluster)) == ({}, [], None)
    play.turn(Gone(PROVISIONING_REQUEST, play.record("job")))
    assert play.parts.cluster.singleton(Requests).ended == {}


def test_without_any_class_that_is_served_what_was_held_is_free() -> None:
    play = held_play(room("n1", 2))
    context = play.machine.context
    context.runners = {}
    assert list(request_cycle.due(context)) == []
    assert (play.held(), play.parts.cluster.singleton(Requests).tracked) == ({}, {})


def test_nobody_is_tried_before_all_are_known() -> None:
    """Each of them is a part of its own, so that others may have their turn."""
    play, requests = asking()
    sliced = play.machine.context.queue.sliced
    sliced.budget.open(0)
    sliced.do(iter([None]))
    other = requests.tracked["default/other"] = Tracked("default/other", "u")
    requests.try_at(other, play.now_s)
    assert list(request_cycle.due(play.machine.context)) == []
    assert list(requests.tracked) == ["default/other"]
    requests.tracked.clear()
    sliced.budget.open(1000)
    spent = sliced.budget.spent
    sliced.go_on()
    assert sliced.budget.spent == spent + request_cycle.CONSIDER_STEPS
    assert begun(play).decides


def test_each_place_that_is_held_again_may_be_the_last_of_a_turn() -> None:
    play = held_play(room("n1", 2))
    other = again(play, room("n1", 2))
    other.machine.is_active = False
    other.template()
    other.show("job")
    context = other.machine.context
    classes, budget = request_cycle.served(context), context.queue.sliced.budget
    spent = budget.spent
    assert len(list(request_cycle._considering(context, classes, ["default/job"]))) == 1 + 4
    assert budget.spent - spent == request_cycle.CONSIDER_STEPS + 4 * request_cycle.PLACE_STEPS


def test_each_that_is_looked_at_may_be_the_last_of_a_turn() -> None:
    play, requests = asking()
    play.ask("other")
    sliced = play.machine.context.queue.sliced
    sliced.budget.open(request_cycle.CONSIDER_STEPS)
    list(request_cycle.due(play.machine.context))
    assert len(requests.tracked) < 2
    sliced.budget.open(1000)
    sliced.go_on()
    assert len(requests.tracked) == 2


def test_a_promise_is_not_adopted_for_one_that_is_being_tried() -> None:
    play = held_play(room("n1", 2))
    other = again(play, room("n1", 2))
    other.template()
    requests = other.parts.cluster.singleton(Requests)
    requests.trying = "default/job"
    other.show("job")
    assert other.held() == {}
    requests.trying = ""
    other.show("job")
    assert other.held() == {"n1": 2}


def test_a_promise_that_comes_late_is_held_and_not_looked_for() -> None:
    play = held_play(room("n1", 2))
    promised = play.stored["job"]["status"]
    other = again(play, room("n1", 2))
    requests = other.parts.cluster.singleton(Requests)
    play.stored["job"]["status"] = {}
    other.show("job")  # without its template
    assert requests.tracked["default/job"].try_s is not None
    play.stored["job"]["status"] = promised
    other.machine.is_active = False
    other.template()
    other.show("job")
    assert list(request_cycle.due(other.machine.context)) == []
    assert other.held() == {"n1": 2}
    assert requests.tracked["default/job"].try_s is None


@pytest.mark.parametrize("status", ["told", "not told"])
def test_a_hold_that_ended_is_told_if_anybody_was_told_of_it_else_looked_for_again(
    status: str,
) -> None:
    play = a_play(room("n1", 2))
    play.template()
    play.ask(parameters={"holdSeconds": "5"})
    if status == "told":
        play.settle()
    play.machine.is_active = False
    play.turn(after_s=6)
    context, requests = play.machine.context, play.parts.cluster.singleton(Requests)
    holding.keep(context)
    assert play.held() == {}
    for patch in play.patches():
        play.turn(Refused(patch.id, 403, "no"))
    work = list(request_cycle.due(context))
    tracked = requests.tracked["default/job"]
    if status == "told":
        assert tracked.wanted is not None
        assert [condition.reason for condition in tracked.wanted.conditions] == [TIME_IS_UP[0]]
        assert [one.decides for one in work] == [False]
        play.show("job")  # as it was
        assert list(request_cycle.due(context)) == []
        assert play.held() == {}, "nor is it adopted once more"
    else:
        assert (tracked.wanted, tracked.write_s, work) == (None, None, [])
        assert tracked.try_s is not None


@pytest.mark.parametrize("what", ["consumed", "homeless"])
def test_a_booking_is_looked_at_once_its_request_is_not_being_tried(what: str) -> None:
    play = held_play(room("n1", 2))
    play.machine.is_active = False
    cluster, context = play.parts.cluster, play.machine.context
    requests, bookings = cluster.singleton(Requests), cluster.singleton(Bookings)
    requests.trying = "default/job"
    if what == "consumed":
        play.turn(*(Seen(POD, consumer(name).on("n1").build()) for name in ("a", "b")))
    else:
        play.turn(Gone(NODE, room("n1", 2).build()))
    holding.keep(context)
    assert list(bookings.moved) == ["default/job"]
    assert list(request_cycle.due(context)) == []
    tracked = requests.tracked["default/job"]
    assert (tracked.wanted, tracked.try_s) == (None, None)
    requests.trying, bookings.moved["default/job"] = "", None
    assert begun(play).decides == (what == "homeless")


def test_places_of_which_nothing_became_are_no_reason_to_look_for_others() -> None:
    play = held_play(room("n1", 2))
    play.machine.is_active = False
    play.parts.cluster.singleton(Bookings).moved["default/job"] = None
    assert list(request_cycle.due(play.machine.context)) == []


@pytest.mark.parametrize("now", ["gone", "another"])
def test_a_request_that_went_before_its_try_is_not_tried(now: str) -> None:
    play, requests = asking()
    work = begun(play)
    if now == "another":
        play.stored["job"]["metadata"]["uid"] = "uid-another"
        play.parts.cluster.apply(Seen(PROVISIONING_REQUEST, play.record("job")))
    else:
        play.parts.cluster.apply(Gone(PROVISIONING_REQUEST, play.record("job")))
    run(work.steps)
    assert (play.held(), requests.trying) == ({}, "")
    assert len(play.parts.cluster.singleton(Bookings)) == 0


def test_places_for_a_request_that_went_during_its_try_are_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play, requests = asking()
    real = request_trial.answer

    def answer(*asked: Any) -> Any:
        found = yield from real(*asked)
        assert play.held() == {"n1": 2}
        requests.tracked["default/job"] = Tracked("default/job", "uid-another")
        return found

    monkeypatch.setattr(request_trial, "answer", answer)
    run(begun(play).steps)
    assert (play.held(), len(play.parts.cluster.singleton(Bookings))) == ({}, 0)
    assert requests.tracked["default/job"].wanted is None


def test_it_is_tried_again_only_if_anything_moved_or_its_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []
    real = request_trial.answer

    def answer(*asked: Any) -> Any:
        tried.append("")
        return real(*asked)

    monkeypatch.setattr(request_trial, "answer", answer)
    play = too_large(ValidUntilSeconds="100")
    play.turn(after_s=1)  # what it was told moved the request itself
    tried.clear()
    for _ in range(4):
        play.turn(after_s=60 / 4)
    assert len(tried) == 0
    play.turn(Seen(NODE, room("n2", 1).cordoned().build()), after_s=30)
    assert len(tried) == 1
    play.turn(after_s=9)
    assert len(tried) == 2


def written(play: RequestPlay) -> request_cycle.Work:
    """What it is to be told, once it was tried."""
    run(begun(play).steps)
    work = begun(play)
    assert not work.decides
    return work


@pytest.mark.parametrize("now", ["gone", "another", "said"])
def test_what_nobody_wants_to_hear_any_more_is_not_written(now: str) -> None:
    play, requests = asking()
    work = written(play)
    tracked = requests.tracked["default/job"]
    if now == "another":
        play.stored["job"]["metadata"]["uid"] = "uid-another"
        play.parts.cluster.apply(Seen(PROVISIONING_REQUEST, play.record("job")))
    elif now == "gone":
        play.parts.cluster.apply(Gone(PROVISIONING_REQUEST, play.record("job")))
    else:
        assert tracked.wanted is not None
        patch = request_status.patch_of(play.parts.cluster, play.record("job"), tracked.wanted)
        play.stored["job"]["status"] = patch.body["status"]
        play.parts.cluster.apply(Seen(PROVISIONING_REQUEST, play.record("job")))
    run(work.steps)  # asks for no write
    assert (requests.writes, tracked.is_writing) == (0, False)
    if now == "said":
        assert (tracked.wanted, tracked.write_s) == (None, None)
    else:  # it is not known yet that it went
        assert tracked.write_s == play.machine.context.now_s + request_cycle.WRITE_PAUSE_S


def test_an_answer_that_comes_when_the_request_is_another_is_nobodys() -> None:
    play, requests = asking()
    steps = written(play).steps
    patch = next(steps)
    requests.tracked["default/job"] = Tracked("default/job", "uid-another")
    with pytest.raises(StopIteration):
        steps.send(Refused(patch.id, 500, "no"))
    assert requests.writes == 0
    assert requests.tracked["default/job"].write_s is None
