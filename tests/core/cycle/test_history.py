"""What is remembered of pods, and what makes way for newer things."""

import random
from collections import deque

import pytest

from asched.core.cycle.history import (
    LINKED_MAX,
    NEWEST_WITHIN,
    TOLD_MAX,
    Choice,
    Histories,
    Line,
    Step,
)


def test_a_pod_s_lines_come_oldest_first() -> None:
    histories = Histories()
    histories.tell("default/web", 1.0, 7, Step.REJECTED, "no room")
    histories.tell("default/other", 1.5, 8, Step.BOUND, "n2")
    histories.tell("default/web", 2.0, 9, Step.BOUND, "n1")
    assert histories.of("default/web") == (
        Line(1.0, 7, Step.REJECTED, "no room"),
        Line(2.0, 9, Step.BOUND, "n1"),
    )
    assert histories.of("default/unknown") == ()


def test_the_oldest_lines_make_way_whosever_they_are() -> None:
    histories = Histories(lines_max=4)
    for number in range(7):
        histories.tell(f"default/{'ab'[number % 2]}", float(number), number, Step.REJECTED, number)
    assert [line.details for line in histories.of("default/a")] == [4, 6]
    assert [line.details for line in histories.of("default/b")] == [3, 5]
    for number in range(3):
        histories.tell("default/c", 9.0, number, Step.BOUND)
    assert histories.of("default/b") == ()
    assert [line.details for line in histories.of("default/a")] == [6]
    assert len(histories.of("default/c")) == 3


def test_large_details_make_way_before_there_are_many_lines() -> None:
    histories = Histories(lines_max=100, bytes_max=10_000)
    for number in range(5):
        histories.tell("default/web", 0.0, number, Step.ERROR, "x" * 4_000)
    assert [line.attempt for line in histories.of("default/web")] == [3, 4]
    histories.tell("default/web", 0.0, 9, Step.NOMINATED, ("n1", (("default/x" * 5_000, 0),)))
    assert [line.step for line in histories.of("default/web")] == [Step.NOMINATED]
    for number in range(250):  # and what has gone is not counted twice
        histories.tell("default/web", 0.0, number, Step.REJECTED, number, 10)
    assert len(histories.of("default/web")) == 100


def test_a_binding_that_comes_next_is_a_line_of_its_own_for_whoever_reads() -> None:
    histories = Histories(lines_max=2)
    chosen = Choice("default/web", 1.0, 7, 0, "n1", None)
    histories.add(chosen)
    assert histories.of("default/web") == (Line(1.0, 7, Step.NODE, chosen),)
    chosen.bound_s = 2.5
    lines = (Line(1.0, 7, Step.NODE, chosen), Line(2.5, 7, Step.BOUND, "n1"))
    assert histories.of("default/web") == lines
    assert histories.newest("default/web", (Step.BOUND,)) == lines[1]
    assert histories.newest("default/web", (Step.NODE,)) == lines[0]
    assert list(histories.latest(1)) == [("default/web", line) for line in reversed(lines)]


def test_a_line_that_made_way_has_no_key() -> None:
    histories = Histories(lines_max=2)
    chosen = Choice("default/web", 1.0, 7, 0, "n1", None)
    histories.add(chosen)
    for number in range(2):
        assert chosen.key
        histories.tell("default/other", 2.0, number, Step.ERROR, "no")
    assert not chosen.key
    assert histories.of("default/web") == ()
    assert len(histories.of("default/other")) == 2


@pytest.mark.parametrize("lines_max", [3, 50, LINKED_MAX + 7])
def test_whoever_reads_at_any_time_is_told_the_same(lines_max: int) -> None:
    """Against a list: lines of a few pods, read now and then, before and after many were told."""
    draw = random.Random(lines_max)
    histories, kept = Histories(lines_max=lines_max), deque[tuple[str, int]](maxlen=lines_max)
    for number in range(3 * LINKED_MAX):
        key = f"default/{draw.randrange(20)}"
        histories.tell(key, 0.0, number, Step.BOUND)
        kept.append((key, number))
        if draw.random() < 0.01:
            asked = f"default/{draw.randrange(20)}"
            wanted = [attempt for key, attempt in kept if key == asked]
            assert [line.attempt for line in histories.of(asked)] == wanted[-TOLD_MAX:]
            newest = histories.newest(asked, (Step.BOUND,))
            assert (newest.attempt if newest else None) == (wanted[-1] if wanted else None)


def test_the_newest_of_a_kind_is_looked_for_among_the_last_few() -> None:
    histories = Histories()
    histories.tell("default/web", 1.0, 1, Step.BOUND, "n1")
    for number in range(NEWEST_WITHIN - 1):
        histories.tell("default/web", 2.0, number, Step.ERROR)
        histories.tell("default/other", 2.0, number, Step.NODE)
    found = histories.newest("default/web", (Step.BOUND, Step.REJECTED))
    assert found is not None
    assert found.details == "n1"
    assert histories.newest("default/web", (Step.NODE,)) is None, "that was another pod"
    histories.tell("default/web", 3.0, 9, Step.ERROR)
    assert histories.newest("default/web", (Step.BOUND,)) is None
    assert histories.newest("default/nobody", (Step.BOUND,)) is None


def test_the_latest_come_newest_first_and_no_more_than_are_kept() -> None:
    histories = Histories(lines_max=4)
    assert list(histories.latest(3)) == []
    for number in range(6):
        histories.tell(f"default/p{number}", 0.0, number, Step.ERROR)
    told = [(key, line.attempt) for key, line in histories.latest(3)]
    assert told == [("default/p5", 5), ("default/p4", 4), ("default/p3", 3)]
    assert len(list(histories.latest(9))) == 4


def test_of_one_pod_no_more_is_told_than_that_and_the_newest_of_it() -> None:
    histories = Histories()
    for number in range(TOLD_MAX + 5):
        histories.tell("default/web", 0.0, number, Step.ERROR)
    told = histories.of("default/web")
    assert (len(told), told[0].attempt, told[-1].attempt) == (TOLD_MAX, 5, TOLD_MAX + 4)


def test_lines_are_linked_so_many_at_a_time_and_it_is_told_whether_more_are_left() -> None:
    histories = Histories()
    for number in range(2 * LINKED_MAX):
        histories.tell("default/web", 0.0, number, Step.ERROR)
    assert [histories.link() for _ in range(3)] == [True, False, False]


def test_what_is_forgotten_of_a_pod_is_forgotten_wholly() -> None:
    """Who reads now and then keeps no names of pods whose lines have gone."""
    histories = Histories(lines_max=10)
    for number in range(1_000):
        histories.tell(f"default/p{number}", 0.0, number, Step.ERROR)
        histories.link()
    assert len(histories._last) == 10


def test_the_size_of_what_went_is_given_back() -> None:
    histories = Histories(lines_max=2, bytes_max=1_000)
    for number in range(50):
        histories.tell("default/web", 0.0, number, Step.ERROR, "x", 300)
    assert len(histories.of("default/web")) == 2
    unbounded = Histories()
    for number in range(9):
        unbounded.tell("default/web", 0.0, number, Step.ERROR, "x", 1_000_000)
    assert len(unbounded.of("default/web")) == 9, "as much as there is room for by default"
