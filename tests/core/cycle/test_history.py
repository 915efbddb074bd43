"""What is remembered of pods, and what makes way for newer things."""

from asched.core.cycle.history import Histories, Line, Step


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
    histories = Histories(lines_max=100, bytes_max=1_000)
    for number in range(5):
        histories.tell("default/web", 0.0, number, Step.REJECTED, number, 400)
        histories.tell("default/web", 0.0, number, Step.NOMINATED, number)
    assert [line.attempt for line in histories.of("default/web")] == [2, 3, 3, 4, 4]
    histories.tell("default/web", 0.0, 9, Step.REJECTED, "huge", 5_000)
    assert [line.details for line in histories.of("default/web")] == ["huge"]
    for number in range(250):  # and what has gone is not counted twice
        histories.tell("default/web", 0.0, number, Step.REJECTED, number, 10)
    assert len(histories.of("default/web")) == 100
