"""What is remembered of pods, and what makes way for newer things."""

import random
from collections import deque

import pytest

from asched.core.cycle.history import (
    LINKED_MAX,
    TOLD_MAX,
    DecisionStep,
    Histories,
    Line,
    NodeChoice,
)


def test_a_pod_s_lines_come_oldest_first() -> None:
    histories = Histories()
    histories.tell("default/web", 1.0, 7, DecisionStep.REJECTED, "no room")
    histories.tell("default/other", 1.5, 8, DecisionStep.BOUND, "n2")
    histories.tell("default/web", 2.0, 9, DecisionStep.BOUND, "n1")
    assert histories.of("default/web") == (
        Line(1.0, 7, DecisionStep.REJECTED, "no room"),
        Line(2.0, 9, DecisionStep.BOUND, "n1"),
    )
    assert histories.of("default/unknown") == ()


def test_the_oldest_lines_make_way_whosever_they_are() -> None:
    histories = Histories(lines_max=4)
    for number in range(7):
        histories.tell(
            f"default/{'ab'[number % 2]}", float(number), number, DecisionStep.REJECTED, number
        )
    assert [line.details for line in histories.of("default/a")] == [4, 6]
    assert [line.details for line in histories.of("default/b")] == [3, 5]
    for number in range(3):
        histories.tell("default/c", 9.0, number, DecisionStep.BOUND)
    assert histories.of("default/b") == ()
    assert [line.details for line in histories.of("default/a")] == [6]
    assert len(histories.of("default/c")) == 3


def test_large_details_make_way_before_there_are_many_lines() -> None:
    histories = Histories(lines_max=100, bytes_max=10_000)
    for number in range(5):
        histories.tell("default/web", 0.0, number, DecisionStep.ERROR, "x" * 4_000)
    assert [line.attempt for line in histories.of("default/web")] == [3, 4]
    histories.tell(
        "default/web", 0.0, 9, DecisionStep.NOMINATED, ("n1", (("default/x" * 5_000, 0),))
    )
    assert [line.step for line in histories.of("default/web")] == [DecisionStep.NOMINATED]
    for number in range(250):  # and what has gone is not counted twice
        histories.tell("default/web", 0.0, number, DecisionStep.REJECTED, number, 10)
    assert len(histories.of("default/web")) == 100


def test_a_binding_that_comes_next_is_a_line_of_its_own_for_whoever_reads() -> None:
    histories = Histories(lines_max=2)
    chosen = NodeChoice("default/web", 1.0, 7, 0, "n1", None)
    histories.add(chosen)
    assert histories.of("default/web") == (Line(1.0, 7, DecisionStep.NODE, chosen),)
    chosen.bound_s = 2.5
    lines = (Line(1.0, 7, DecisionStep.NODE, chosen), Line(2.5, 7, DecisionStep.BOUND, "n1"))
    assert histories.of("default/web") == lines
    assert histories.newest("default/web", (DecisionStep.BOUND,)) == lines[1]
    assert histories.newest("default/web", (DecisionStep.NODE,)) == lines[0]
    assert list(histories.latest(1)) == [("default/web", line) for line in reversed(lines)]


def test_a_line_that_made_way_has_no_key() -> None:
    histories = Histories(lines_max=2)
    chosen = NodeChoice("default/web", 1.0, 7, 0, "n1", None)
    histories.add(chosen)
    for number in range(2):
        assert chosen.key
        histories.tell("default/other", 2.0, number, DecisionStep.ERROR, "no")
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
        histories.tell(key, 0.0, number, DecisionStep.BOUND)
        kept.append((key, number))
        if draw.random() < 0.01:
            asked = f"default/{draw.randrange(20)}"
            wanted = [attempt for key, attempt in kept if key == asked]
            assert [line.attempt for line in histories.of(asked)] == wanted[-TOLD_MAX:]
            newest = histories.newest(asked, (DecisionStep.BOUND,))
            assert (newest.attempt if newest else None) == (wanted[-1] if wanted else None)
