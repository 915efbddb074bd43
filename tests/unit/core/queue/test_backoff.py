"""Backoff against a table worked out by hand from the documented rule."""

from dataclasses import dataclass
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asched.core.queue.backoff import BackoffTimes, is_backing_off
from asched.core.queue.queued import QueuedPod
from tests.unit.core.queue.waiting import a_pod


@dataclass(frozen=True)
class Case:
    name: str
    unschedulable: int
    errors: int
    until_s: float | None  # for a return at 100.7 seconds


CASES = [
    Case("a new pod has nothing to wait for", 0, 0, None),
    Case("the first rejection costs the initial pause", 1, 0, 101),
    Case("each rejection doubles it", 2, 0, 102),
    Case("and again", 4, 0, 108),
    Case("up to the limit", 5, 0, 110),
    Case("errors in a row count on their own", 4, 1, 101),
    Case("and double too", 1, 3, 104),
    Case("a thousand failures overflow nothing", 1000, 0, 110),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_until(case: Case) -> None:
    queued = QueuedPod(a_pod("web"), 100.7)
    queued.unschedulable_count, queued.consecutive_errors = case.unschedulable, case.errors

    assert BackoffTimes(1, 10).until_s(queued) == case.until_s


def test_a_limit_of_zero_switches_it_off() -> None:
    queued = QueuedPod(a_pod("web"), 100.7)
    queued.unschedulable_count = 3

    assert BackoffTimes(1, 0).until_s(queued) is None


def test_a_limit_below_the_initial_pause_wins() -> None:
    assert BackoffTimes(5, 1).duration_s(1) == 1


@pytest.mark.parametrize(
    ("now_s", "backing_off"), [(100.0, True), (101.0, True), (101.99, True), (102.0, False)]
)
def test_the_whole_second_of_the_end_still_counts(now_s: float, backing_off: bool) -> None:
    queued = QueuedPod(a_pod("web"), 100.7)
    queued.unschedulable_count = 1
    queued.backoff_until_s = BackoffTimes(1, 10).until_s(queued)

    assert is_backing_off(queued, now_s) is backing_off


@given(st.integers(0, 100), st.floats(0.5, 20), st.floats(0, 600))
def test_pauses_never_shrink_and_never_pass_the_limit(
    failures: int, initial_s: float, max_s: float
) -> None:
    rule = BackoffTimes(initial_s, max_s)

    assert rule.duration_s(failures) <= rule.duration_s(failures + 1) <= max_s


def test_a_longer_pause_of_its_own_counts() -> None:
    queued = QueuedPod(a_pod("web"), 100.7)
    for pause_s, until_s in ((0.0, 102), (1.0, 102), (5.0, 105)):
        queued.unschedulable_count, queued.pause_s = 2, pause_s
        assert BackoffTimes(1, 10).until_s(queued) == until_s
