"""The log of pools: what came after a cursor, or that nobody knows any more."""

from asched.core.dra.pool_log import LOG_ENTRIES_MAX, PoolLog

P, Q = ("d", "p"), ("d", "q")


def test_a_reader_sees_what_came_after_its_cursor() -> None:
    log = PoolLog()
    log.add(P)
    cursor = log.end
    log.add(Q)
    assert log.since(cursor) == [Q]
    assert log.since(log.end) == []


def test_a_late_reader_is_told_to_start_afresh() -> None:
    log = PoolLog()
    for _ in range(LOG_ENTRIES_MAX + 1):
        log.add(P)
    assert log.since(0) is None
    assert log.since(log.end - 1) == [P]
