"""What is remembered of pods, and what makes way for newer things."""

from asched.core.cycle.history import LINES_MAX, PODS_MAX, Histories, Line, Step


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


def test_the_oldest_line_of_a_pod_makes_way() -> None:
    histories = Histories()
    for number in range(LINES_MAX + 3):
        histories.tell("default/web", float(number), number, Step.REJECTED)
    kept = histories.of("default/web")
    assert len(kept) == LINES_MAX
    assert (kept[0].attempt, kept[-1].attempt) == (3, LINES_MAX + 2)


def test_the_pod_untouched_for_longest_makes_way() -> None:
    histories = Histories()
    for number in range(PODS_MAX):
        histories.tell(f"default/p{number}", 0.0, number, Step.REJECTED)
    histories.tell("default/p0", 1.0, 1, Step.BOUND, "n1")  # told of again: p1 is the oldest now
    histories.tell("default/new", 2.0, 2, Step.NODE)
    assert histories.of("default/p1") == ()
    assert len(histories.of("default/p0")) == 2
    assert len(histories.of("default/p2")) == 1
    assert len(histories.of("default/new")) == 1
