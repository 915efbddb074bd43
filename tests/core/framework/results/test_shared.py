"""Results that classes share: counted by users, and the ones left first dropped first."""

from asched.core.framework.results.shared import RESULT_BYTES, SharedResults


def test_a_result_is_made_once_for_all_who_read_the_same() -> None:
    shared = SharedResults()
    first = shared.take("a", 8, object)
    assert shared.take("a", 8, object) is first
    assert shared.take("b", 4, object) is not first
    assert (len(shared), shared.row_bytes, shared.unused_row_bytes) == (2, 12, 0)
    assert shared.bytes(100) == 1200 + 2 * RESULT_BYTES


def test_one_without_users_waits_for_the_next() -> None:
    shared = SharedResults()
    first = shared.take("a", 8, object)
    shared.take("a", 8, object)
    shared.leave([first])
    assert shared.unused_row_bytes == 0
    shared.leave([first])
    assert (shared.unused_row_bytes, len(shared)) == (8, 1)
    assert shared.take("a", 8, object) is first
    assert shared.unused_row_bytes == 0
    shared.drop_unused(0, 100)
    assert len(shared) == 1, "it has a user again"
