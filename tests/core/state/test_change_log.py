"""Logs of changes: what came after a cursor, or that nobody knows any more."""

import random

import pytest

from asched.core.state import change_log
from asched.core.state.change_log import ChangeLog, Reader, RowLog

MAX = 40


@pytest.fixture(autouse=True)
def short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "LOG_ENTRIES_MAX", MAX)


def test_a_reader_sees_what_came_after_its_cursor() -> None:
    log: ChangeLog[str] = ChangeLog()
    log.append("a")
    cursor = log.end
    log.append("b")
    assert log.since(cursor) == ["b"]
    assert log.since(log.end) == []
    assert log.since(-1) is None  # who never looked knows nothing
    assert RowLog().last == (-1, 0), "no row, no aspect"


def test_a_late_reader_is_told_to_start_afresh() -> None:
    log: ChangeLog[int] = ChangeLog()
    for number in range(MAX + 1):
        log.append(number)
    assert log.since(0) is None
    assert log.since(log.end - 1) == [MAX]
    assert log.since(MAX // 2 - 1) is None, "the older half is forgotten"
    assert log.since(log.end - MAX // 2) == list(range(MAX // 2 + 1, MAX + 1))


@pytest.mark.parametrize("seed", range(5))
def test_rows_and_aspects_are_those_of_the_entries(seed: int) -> None:
    """Readers with any cursors and aspects, in any order, against the entries as a plain list."""
    rng = random.Random(seed)
    log, entries = RowLog(), []
    for _ in range(MAX):
        entries.append((rng.randrange(6), 1 << rng.randrange(3)))
        log.add(*entries[-1])
        for _ in range(3):
            cursor, aspects = rng.randint(0, len(entries)), rng.randrange(1, 8)
            after = entries[cursor:]
            rows = log.rows(cursor, aspects)
            assert rows is not None
            assert len(rows) == len(set(rows))
            assert set(rows) == {row for row, touched in after if touched & aspects}
            told = 0
            for _, touched in after:
                told |= touched
            assert log.touched(cursor) == told


def test_who_follows_a_log_hears_each_entry_once_or_that_it_missed_some() -> None:
    log: ChangeLog[int] = ChangeLog()
    reader = Reader(log)
    assert reader.news() is None, "it knows nothing yet"
    assert list(reader.news() or ()) == []
    log.append(1)
    log.append(2)
    assert reader.news() == [1, 2]
    assert list(reader.news() or ()) == []
    for number in range(MAX + 1):
        log.append(number)
    assert reader.news() is None
    log.forget()
    assert reader.news() is None
    log.append(3)
    assert reader.news() == [3]
