"""Logs of changes: what came after a cursor, or that nobody knows any more."""

import functools
import operator
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


def test_a_log_may_be_shorter() -> None:
    log: ChangeLog[int] = ChangeLog(6)
    for number in range(100):
        log.append(number)
        assert len(log._entries) <= 6
    assert log.since(log.end - 3) == [97, 98, 99]


def test_a_log_that_forgets_sends_everybody_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "BLOCK", 1)
    log = RowLog()
    log.add(3, 1)
    assert log.rows(0, 1) == (3,)
    assert log._blocks
    cursor = log.end
    log.forget()
    assert not log._blocks
    assert not log._found
    assert log.end != cursor
    assert (log.since(cursor), log.rows(cursor, 1), log.touched(cursor)) == (None, None, None)
    assert log.rows(log.end, 1) == ()


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


@pytest.mark.parametrize("seed", range(10))
def test_a_row_log_says_the_same_of_long_stretches_as_of_single_entries(seed, monkeypatch) -> None:
    monkeypatch.setattr(change_log, "BLOCK", 4)
    rng, log, cursors = random.Random(seed), RowLog(), [0]
    for _ in range(400):
        if rng.random() < 0.02:
            log.forget()
        log.add(rng.randrange(6), 1 << rng.randrange(3))
        cursors.append(log.end - rng.randrange(3))
        cursor, aspects = rng.choice((rng.choice(cursors), cursors[-1])), rng.randrange(1, 8)
        entries = log.since(cursor)
        rows, touched = log.rows(cursor, aspects), log.touched(cursor)
        if entries is None:
            assert rows is touched is None
            continue
        assert rows is not None
        assert sorted(rows) == sorted({row for row, found in entries if found & aspects})
        assert touched == functools.reduce(operator.or_, (found for _, found in entries), 0)
        assert len(log._blocks) <= MAX // 4 + 1


def test_a_long_stretch_is_read_once_for_all_readers(monkeypatch) -> None:
    monkeypatch.setattr(change_log, "LOG_ENTRIES_MAX", 1 << 16)
    log = RowLog()
    for _ in range(2 * change_log.BLOCK):
        log.forget()
    start = log.end
    for number in range(40 * change_log.BLOCK):
        log.add(number % 2, 1)
    reads, outside = [], RowLog._outside

    def counting(self, *where):
        found = outside(self, *where)
        reads.append(len(found))
        return found

    monkeypatch.setattr(RowLog, "_outside", counting)
    for cursor in range(start, start + 500):
        assert sorted(log.rows(cursor, 1)) == [0, 1]
        assert log.touched(cursor) == 1
    assert max(reads) < change_log.BLOCK
    assert len(log._blocks) == 40


def test_answers_are_kept_until_the_next_entry_and_so_many_at_most() -> None:
    log = RowLog()
    for row in range(10):
        log.add(row, 1)
    for cursor in range(10):
        for aspects in (1, 3, 5, 7):
            assert sorted(log.rows(cursor, aspects) or ()) == list(range(cursor, 10))
            assert len(log._found) <= change_log.FOUND_MAX
    assert log.rows(9, 7) is log.rows(9, 7)
    log.add(3, 2)
    assert (log.rows(9, 1), sorted(log.rows(9, 3) or ())) == ((9,), [3, 9])


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
