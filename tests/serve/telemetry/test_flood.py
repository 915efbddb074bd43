"""How many lines one cause may have."""

import logging

from asched.serve.telemetry.flood import CAUSES_MAX, LINES_MAX, WINDOW_S, Flood


def a_record(at_s: float = 0.0, level: int = logging.ERROR, line: int = 1, **values: object):
    made = {"created": at_s, "levelno": level, "pathname": "x.py", "lineno": line, **values}
    return logging.makeLogRecord(made)


def test_one_cause_has_so_many_lines_and_then_tells_how_many_it_kept() -> None:
    flood = Flood()
    said = [flood.filter(a_record(at_s=n / 1_000)) for n in range(LINES_MAX + 5)]
    assert said == [True] * LINES_MAX + [False] * 5
    assert flood.filter(a_record(line=2))
    later = a_record(at_s=WINDOW_S + 1)
    assert flood.filter(later)
    assert later.leftOut == 5
    after = a_record(at_s=WINDOW_S + 2)
    assert flood.filter(after)
    assert not hasattr(after, "leftOut")


def test_plugins_and_exceptions_are_causes_of_their_own() -> None:
    flood = Flood()
    for _ in range(LINES_MAX + 1):
        said = flood.filter(a_record(plugin="Loud", exc_info=(ValueError, ValueError(), None)))
    assert not said
    assert flood.filter(a_record(plugin="Quiet", exc_info=(ValueError, ValueError(), None)))
    assert flood.filter(a_record(plugin="Loud", exc_info=(KeyError, KeyError(), None)))


def test_what_informs_is_not_counted_unless_its_cause_is_named() -> None:
    flood = Flood()
    informing = [flood.filter(a_record(level=logging.INFO)) for _ in range(LINES_MAX * 2)]
    assert all(informing)
    named = [flood.filter(a_record(level=logging.INFO, line=n, cause="x")) for n in range(18)]
    assert named == [True] + [False] * 17


def test_causes_are_forgotten_before_they_fill_memory() -> None:
    flood = Flood()
    for line in range(CAUSES_MAX * 2):
        assert flood.filter(a_record(line=line))
    assert len(flood.causes) == CAUSES_MAX


def test_a_window_begins_with_its_first_line_and_ends_a_minute_later() -> None:
    """Counted anew from the line that comes when it is over."""
    flood = Flood()
    for at_s, expected in (
        (10.0, True),
        (69.999, False),
        (70.0, True),
        (129.9, False),
        (130, True),
    ):
        assert flood.filter(a_record(at_s=at_s, cause="x")) is expected, at_s


def test_what_was_left_out_is_told_once_by_the_line_after_each_pause() -> None:
    flood = Flood()
    told = []
    for window, lines in enumerate((LINES_MAX + 3, LINES_MAX, 1, LINES_MAX + 1, 1)):
        records = [a_record(at_s=window * WINDOW_S + n / 1_000) for n in range(lines)]
        said = [flood.filter(record) for record in records]
        assert said == [n < LINES_MAX for n in range(lines)]
        told.append([getattr(record, "leftOut", 0) for record in records])
        assert not any(told[-1][1:])
    assert [first for first, *_ in told] == [0, 3, 0, 0, 1]


def test_the_cause_that_spoke_longest_ago_is_forgotten_first() -> None:
    flood = Flood()
    for line in range(CAUSES_MAX):
        flood.filter(a_record(line=line, cause=f"c{line}"))
    assert not flood.filter(a_record(cause="c0"))
    flood.filter(a_record(cause="new"))
    assert not flood.filter(a_record(cause="c0")), "it spoke lately"
    assert flood.filter(a_record(cause="c1")), "it was forgotten"


def test_warnings_are_counted_and_files_tell_causes_apart() -> None:
    flood = Flood()
    said = [flood.filter(a_record(level=logging.WARNING)) for _ in range(LINES_MAX + 1)]
    assert said[-2:] == [True, False]
    assert flood.filter(a_record(level=logging.WARNING, pathname="y.py"))
