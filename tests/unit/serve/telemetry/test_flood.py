"""How many lines one cause may have."""

import logging

from asched.serve.telemetry.flood import LINES_MAX, WINDOW_S, Flood


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


def test_what_informs_is_not_counted_unless_its_cause_is_named() -> None:
    flood = Flood()
    informing = [flood.filter(a_record(level=logging.INFO)) for _ in range(LINES_MAX * 2)]
    assert all(informing)
    named = [flood.filter(a_record(level=logging.INFO, line=n, cause="x")) for n in range(18)]
    assert named == [True] + [False] * 17
