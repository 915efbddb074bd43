"""What is kept for attempts under way, and for how long."""

from asched.core.queue.inflight import POD_POPPED, InFlightPods
from asched.core.queue.queued import QueuedPod
from asched.core.state.changes import NODE_ADD, NODE_DELETE, Change
from tests.core.queue.waiting import a_pod

ADDED, DELETED = Change(NODE_ADD), Change(NODE_DELETE)


def start(in_flight: InFlightPods, name: str) -> str:
    queued = QueuedPod(a_pod(name), 0.0)
    in_flight.start(queued)
    return queued.pod.uid


def test_nothing_is_kept_for_nobody() -> None:
    in_flight = InFlightPods(changes_max=2)

    in_flight.record(ADDED)

    assert list(in_flight.entries()) == []
    in_flight.done(start(in_flight, "over"))
    for _ in range(5):
        in_flight.record(ADDED)
    assert list(in_flight.entries()) == []


def test_a_pod_hears_what_came_after_its_start() -> None:
    in_flight = InFlightPods()
    first = start(in_flight, "first")
    in_flight.record(ADDED)
    second = start(in_flight, "second")
    in_flight.record(DELETED)

    assert in_flight.changes_since(first) == [ADDED, DELETED]
    assert in_flight.changes_since(second) == [DELETED]
    assert in_flight.changes_since("stranger") is None


def test_changes_go_with_the_last_attempt_that_began_before_them() -> None:
    in_flight = InFlightPods()
    first = start(in_flight, "first")
    in_flight.record(ADDED)
    second = start(in_flight, "second")
    in_flight.record(DELETED)

    in_flight.done(first)

    assert in_flight.counts == {POD_POPPED: 1, "NodeDelete": 1}
    in_flight.done(second)
    in_flight.done(second)
    assert list(in_flight.entries()) == []


def test_a_later_attempt_that_ends_first_drops_nothing() -> None:
    in_flight = InFlightPods()
    first = start(in_flight, "first")
    in_flight.record(ADDED)

    in_flight.done(start(in_flight, "second"))

    assert in_flight.changes_since(first) == [ADDED]


def test_beyond_the_bound_old_attempts_do_not_know_what_they_missed() -> None:
    in_flight = InFlightPods(changes_max=2)
    old = start(in_flight, "old")
    in_flight.record(ADDED)
    young = start(in_flight, "young")

    in_flight.record(DELETED)
    in_flight.record(DELETED)

    assert in_flight.changes_since(old) is None
    assert in_flight.changes_since(young) == [DELETED, DELETED]
    assert in_flight.counts == {POD_POPPED: 2, "NodeDelete": 2}


def test_attempts_and_changes_are_told_in_the_order_in_which_they_came() -> None:
    in_flight = InFlightPods()
    start(in_flight, "z")
    in_flight.record(DELETED)
    start(in_flight, "a")
    in_flight.record(ADDED)

    told = [getattr(entry, "key", entry) for entry in in_flight.entries()]
    assert told == ["default/z", DELETED, "default/a", ADDED]


def test_at_the_bound_the_oldest_attempt_knows_all_still() -> None:
    in_flight = InFlightPods(changes_max=2)
    old = start(in_flight, "old")
    in_flight.record(ADDED)
    in_flight.record(DELETED)
    assert in_flight.changes_since(old) == [ADDED, DELETED]


def test_nothing_is_kept_once_all_have_missed_too_much_until_another_begins() -> None:
    in_flight = InFlightPods(changes_max=2)
    old = start(in_flight, "old")
    for _ in range(3):
        in_flight.record(ADDED)
    assert in_flight.counts == {POD_POPPED: 1}

    in_flight.record(ADDED)
    young = start(in_flight, "young")
    in_flight.record(DELETED)
    assert in_flight.changes_since(old) is None
    assert in_flight.changes_since(young) == [DELETED]
    assert in_flight.counts == {POD_POPPED: 2, "NodeDelete": 1}

    in_flight.done(young)
    in_flight.record(DELETED)
    assert in_flight.changes_since(old) is None
    assert in_flight.counts == {POD_POPPED: 1}, "of it, too"

    in_flight.done(old)
    last = start(in_flight, "last")
    in_flight.record(ADDED)
    assert in_flight.changes_since(last) == [ADDED]
