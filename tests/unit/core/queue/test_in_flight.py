"""Attempts in flight have every change that came meanwhile, or report that some were dropped."""

from asched.core.cluster.changes import NODE_ADD, Change
from asched.core.queue.in_flight import CHANGES_MAX, POD_POPPED, InFlightPods
from asched.core.queue.queued import QueuedPod
from tests.builders import a_node, a_pod


def some_changes(count: int) -> list[Change]:
    return [Change(NODE_ADD, None, a_node(f"n{number}").build()) for number in range(count)]


def with_attempts(*names: str) -> InFlightPods:
    in_flight = InFlightPods()
    for name in names:
        begin(in_flight, name)
    return in_flight


def begin(in_flight: InFlightPods, name: str) -> None:
    assert in_flight.start(QueuedPod(a_pod(name).build(), 0.0))


def test_a_later_attempt_has_its_changes_though_an_earlier_one_missed_too_many() -> None:
    in_flight = with_attempts("early")
    *many, one, two = some_changes(CHANGES_MAX + 2)
    for change in many:
        in_flight.record(change)
    begin(in_flight, "late")
    in_flight.record(one)
    in_flight.record(two)
    assert in_flight.changes_since("uid-early") is None
    assert in_flight.changes_since("uid-late") == [one, two]


def test_nothing_is_recorded_while_every_attempt_missed_too_many() -> None:
    in_flight = with_attempts("early")
    for change in some_changes(CHANGES_MAX + 2):
        in_flight.record(change)
    assert in_flight.counts == {POD_POPPED: 1}
    begin(in_flight, "late")
    (one,) = some_changes(1)
    in_flight.record(one)
    assert in_flight.changes_since("uid-late") == [one]
    in_flight.done("uid-late")
    assert in_flight.counts == {POD_POPPED: 1}
    assert in_flight.changes_since("uid-early") is None
