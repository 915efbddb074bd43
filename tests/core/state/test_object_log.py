"""The log of objects: what came after a cursor, or that nobody knows any more."""

from asched.core.state.object_log import LOG_ENTRIES_MAX, ObjectLog


def test_a_reader_sees_what_came_after_its_cursor() -> None:
    log = ObjectLog()
    log.add("services", "d/a")
    cursor = log.end
    log.add("services", "d/b")
    assert log.since(cursor) == [("services", "d/b")]
    assert log.since(log.end) == []


def test_a_late_reader_is_told_to_start_afresh() -> None:
    log = ObjectLog()
    for _ in range(LOG_ENTRIES_MAX + 1):
        log.add("services", "d/a")
    assert log.since(0) is None
    assert log.since(log.end - 1) == [("services", "d/a")]
