"""The cycle of requests: which is tried and written next, after which pause, and which it is."""

import pytest

from asched.core.config.args import CheckAndHoldArgs
from asched.core.cycle import request_cycle
from asched.core.cycle.request_book import Bookings
from asched.core.cycle.request_cycle import WRITES_MAX, Requests, Tracked, next_s
from asched.core.model.kinds import NODE, PROVISIONING_REQUEST
from asched.core.state.facts import Done, Gone, Refused, Seen, Unknown
from tests.builders import a_cluster
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


def known(*keys: str) -> tuple[Requests, dict[str, Tracked]]:
    requests = Requests(a_cluster())
    for key in keys:
        requests.tracked[key] = Tracked(key, f"uid-{key}")
    return requests, requests.tracked


# --- whose turn it is ----------------------------------------------------------------------------


def test_the_earliest_is_tried_first_and_one_at_a_time() -> None:
    requests, by_key = known("a", "b", "c")
    for key, at_s in (("a", 3.0), ("c", 1.0), ("b", 1.0)):
        requests.try_at(by_key[key], at_s)
    assert (requests.next_s(), requests.to_try(0.9)) == (1.0, None)
    assert requests.to_try(1.0) is by_key["c"]
    assert requests.trying == "c"
    assert (requests.next_s(), requests.to_try(9.0)) == (None, None)
    requests.trying = ""
    assert requests.to_try(9.0) is by_key["b"]
    requests.trying = ""
    assert requests.next_s() == 0.0
    assert requests.to_try(9.0) is by_key["a"]


def test_only_the_last_time_that_was_set_counts() -> None:
    requests, by_key = known("a")
    requests.try_at(by_key["a"], 1.0)
    requests.try_at(by_key["a"], 5.0)
    assert requests.to_try(4.9) is None
    assert requests.to_try(5.0) is by_key["a"]
    requests.trying = ""
    assert requests.to_try(5.0) is None


def test_whoever_went_is_neither_tried_nor_written() -> None:
    requests, by_key = known("a")
    requests.try_at(by_key["a"], 1.0)
    requests.write_at(by_key["a"], 1.0)
    by_key.clear()
    assert requests.to_try(1.0) is None
    assert requests.to_write(1.0) is None
    assert (requests.trying, requests.writes, requests.next_s()) == ("", 0, None)


def test_so_many_writes_are_under_way_and_one_a_request() -> None:
    requests, by_key = known(*(f"r{number}" for number in range(WRITES_MAX + 1)))
    for tracked in by_key.values():
        requests.write_at(tracked, 1.0)
    assert requests.to_write(0.9) is None
    begun = [requests.to_write(1.0) for _ in range(WRITES_MAX)]
    assert begun == list(by_key.values())[:WRITES_MAX]
    assert (requests.writes, requests.to_write(1.0), requests.next_s()) == (WRITES_MAX, None, None)
    requests.writes -= 1
    assert requests.next_s() == 1.0
    assert requests.to_write(1.0) is by_key[f"r{WRITES_MAX}"]


def test_a_request_that_is_being_written_is_not_written_beside_that() -> None:
    requests, by_key = known("a")
    requests.write_at(by_key["a"], 1.0)
    assert requests.to_write(1.0) is by_key["a"]
    requests.write_at(by_key["a"], 2.0)
    assert requests.to_write(2.0) is None
    assert requests.writes == 1


def test_an_old_time_of_a_write_is_passed_over() -> None:
    requests, by_key = known("a")
    requests.write_at(by_key["a"], 1.0)
    requests.write_at(by_key["a"], 5.0)
    assert requests.to_write(4.9) is None
    assert requests.to_write(5.0) is by_key["a"]


def test_the_next_of_all_is_the_earliest() -> None:
    requests, by_key = known("a", "b")
    requests.try_at(by_key["a"], 7.0)
    requests.write_at(by_key["b"], 4.0)
    assert requests.next_s() == 4.0
    requests.try_at(by_key["b"], 2.0)
    assert requests.next_s() == 2.0


def test_all_are_looked_at_once_the_older_first_then_those_that_moved() -> None:
    play = RequestPlay()
    requests = Requests(play.parts.cluster)
    for name, hour in (("b", 1), ("c", 0), ("a", 1)):
        play.ask(name)
        play.stored[name]["metadata"]["creationTimestamp"] = f"2026-01-01T0{hour}:00:00Z"
        play.show(name)
    play.ask("without-an-age")
    every = ["default/without-an-age", "default/c", "default/a", "default/b"]
    assert requests.changed(SERVED) == every
    assert requests.changed(SERVED) == []
    play.show("b")
    play.turn(Seen(NODE, room("n1", 1).build()))
    assert requests.changed(SERVED) == ["default/b"]
    other = {"default-scheduler": CheckAndHoldArgs(hold_s=5)}
    requests.tracked["default/gone"] = Tracked("default/gone", "u")
    assert requests.changed(other) == ["default/gone", *every]


def test_a_template_moves_those_that_lack_it() -> None:
    play = RequestPlay()
    requests = Requests(play.parts.cluster)
    requests.changed(SERVED)
    requests.tracked["default/x"] = Tracked("default/x", "u", lacks="default/worker")
    requests.tracked["default/y"] = Tracked("default/y", "u", lacks="default/other")
    play.template("worker")
    assert requests.changed(SERVED) == ["default/x"]


# --- pauses --------------------------------------------------------------------------------------


def pause(play: RequestPlay) -> float | None:
    at_s = next_s(play.parts.cluster)
    return None if at_s is None else round(at_s - play.now_s, 3)


def test_what_does_not_fit_is_tried_after_pauses_that_double_up_to_a_minute() -> None:
    play = too_large()
    pauses = []
    for _ in range(8):
        wait_s = pause(play)
        assert wait_s is not None
        pauses.append(wait_s)
        play.turn(after_s=wait_s)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert not play.patches(), "it was told already"


def test_at_its_last_hour_it_is_tried_and_then_told() -> None:
    play = too_large(ValidUntilSeconds="5")
    play.turn(after_s=1.0)
    play.turn(after_s=2.0)
    assert pause(play) == 2.0
    play.turn(after_s=1.9)
    assert not play.patches()
    play.turn(after_s=0.1)
    assert play.settle()["Failed"] == ("True", "Expired")
    assert play.parts.cluster.singleton(Requests).tracked == {}


def test_what_is_refused_is_written_after_pauses_that_double_up_to_eight_seconds() -> None:
    play = a_play(room("n1", 2))
    play.template()
    play.ask()
    pauses = []
    for _ in range(7):
        (patch,) = play.patches()
        play.turn(Refused(patch.id, 500, "no"))
        assert not play.patches()
        wait_s = pause(play)
        assert wait_s is not None
        pauses.append(wait_s)
        play.turn(after_s=wait_s)
    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0]


def test_what_was_written_is_not_written_again() -> None:
    play = a_play(room("n1", 2))
    play.template()
    play.ask()
    (patch,) = play.patches()
    play.turn(Done(patch.id))  # the watch is late
    assert (play.patches(), pause(play)) == ([], None)


def test_what_the_watch_shows_during_the_write_is_wanted_no_more() -> None:
    play = a_play(room("n1", 2))
    play.template()
    play.ask()
    (patch,) = play.patches()
    status = play.stored["job"]["status"]
    status["conditions"] = list(patch.body["status"]["conditions"])
    status["provisioningClassDetails"] = dict(patch.body["status"]["provisioningClassDetails"])
    play.show("job")
    play.turn(Unknown(patch.id, "timed out"))
    assert pause(play) is None


def test_what_is_wanted_instead_by_then_is_written_after_the_first_write() -> None:
    """Its places are lost while it is told where they are."""
    play = a_play(room("n1", 2))
    play.template()
    play.ask()
    (patch,) = play.patches()
    play.turn(Gone(NODE, room("n1", 2).build()))
    assert play.patches() == [patch], "one write at a time"
    assert "BookingExpired" not in play.settle()
    play.turn(after_s=0.25)
    assert play.settle()["BookingExpired"] == ("True", "CapacityIsLost")
    requests = play.parts.cluster.singleton(Requests)
    assert (requests.writes, requests.trying) == (0, "")


# --- which request it is -------------------------------------------------------------------------


def test_another_request_of_the_same_name_begins_anew() -> None:
    play = held_play(room("n1", 2))
    play.stored["job"]["metadata"]["uid"] = "uid-another"
    play.stored["job"]["status"] = {}
    play.show("job")
    booking = play.parts.cluster.singleton(Bookings).get("default/job")
    assert booking is not None
    assert booking.uid == "uid-another"
    assert play.held() == {"n1": 2}
    assert play.settle()["Provisioned"] == ("True", "CapacityIsFound")


def test_an_answer_for_the_request_before_is_not_written_to_another_one() -> None:
    play = a_play(room("n1", 2))
    play.template()
    play.ask()
    (patch,) = play.patches()
    play.turn(Gone(PROVISIONING_REQUEST, play.record("job")))
    play.turn(Refused(patch.id, 409, "conflict"))
    play.turn(after_s=60.0)
    assert (play.patches(), pause(play), play.held()) == ([], None, {})
    assert play.parts.cluster.singleton(Requests).writes == 0


def test_a_request_whose_class_is_served_no_more_holds_nothing() -> None:
    play = held_play(room("n1", 2))
    play.stored["job"]["spec"]["provisioningClassName"] = "check-capacity"
    play.show("job")
    assert play.held() == {}
    assert play.parts.cluster.singleton(Requests).tracked == {}


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"heldUntil": "1970-01-01T01:00:00.000000Z"},
        {"heldUntil": "1970-01-01T01:00:00.000000Z", "places-0": "0/n1,1/n1"},
        {"heldUntil": "1970-01-01T01:00:00.000000Z", "places-0": "-1/n1"},
    ],
)
def test_a_promise_that_cannot_be_read_is_over(details: dict[str, str]) -> None:
    play = held_play(room("n1", 2))
    play.stored["job"]["status"]["provisioningClassDetails"] = details
    other = again(play, room("n1", 2))
    other.template()
    other.show("job")
    assert other.held() == {}
    assert other.settle()["BookingExpired"] == ("True", "CapacityIsLost")


def test_a_promise_is_adopted_once() -> None:
    play = held_play(room("n1", 2))
    other = again(play, room("n1", 2))
    other.template()
    other.show("job")
    booking = other.parts.cluster.singleton(Bookings).get("default/job")
    other.show("job")
    assert other.parts.cluster.singleton(Bookings).get("default/job") is booking
    assert (other.held(), pause(other)) == ({"n1": 2}, None)


def test_a_promise_ends_at_its_very_moment() -> None:
    play = held_play(room("n1", 2))
    other = again(play, room("n1", 2))
    other.now_s += 600
    other.template()
    other.show("job")
    assert other.held() == {}
    assert other.settle()["BookingExpired"] == ("True", "CapacityReservationTimeExpired")


def test_requests_alone_are_nobodys_without_a_class() -> None:
    play = RequestPlay(room("n1", 2))
    play.template()
    play.ask()
    assert (play.patches(), list(request_cycle.due(play.machine.context))) == ([], [])


def test_what_is_tried_is_an_attempt_and_what_is_written_is_none() -> None:
    play = a_play(room("n1", 2))
    play.machine.is_active = False
    play.template()
    play.ask()
    (work,) = request_cycle.due(play.machine.context)
    assert work.decides
    for _ in work.steps:
        pass
    (write,) = request_cycle.due(play.machine.context)
    assert not write.decides


def test_a_template_that_is_there_by_now_is_not_lacking() -> None:
    play = a_play(room("n1", 2))
    play.ask()
    play.settle()
    requests = play.parts.cluster.singleton(Requests)
    assert requests.tracked["default/job"].lacks == "default/worker"
    try_s = requests.tracked["default/job"].try_s
    assert try_s is not None
    play.show("job")
    assert requests.tracked["default/job"].try_s == try_s, "that is no news"
    assert requests.tracked["default/job"].lacks == "default/worker"
    play.template()
    assert requests.tracked["default/job"].lacks == ""
    assert play.held() == {"n1": 2}


def test_pods_in_all_of_its_places_end_it_while_nobody_is_trying_it() -> None:
    play = held_play(room("n1", 1), room("n2", 1))
    requests = play.parts.cluster.singleton(Requests)
    play.see(consumer("a"))
    play.bindings()
    play.settle()
    assert requests.tracked["default/job"].wanted is None
    play.see(consumer("b"))
    play.bindings()
    assert play.settle()["BookingExpired"] == ("True", "CapacityIsConsumed")
    assert requests.tracked == {}
