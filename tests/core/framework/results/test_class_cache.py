"""Kept work is bounded in bytes, and goes when it is dropped."""

from asched.core.framework.results.shared import RESULT_BYTES, SharedResults


def test_what_results_take_beside_their_rows_counts_in_a_small_cluster() -> None:
    """A thousand of one row each are not a few kilobytes."""
    shared, most = SharedResults(), 20 * RESULT_BYTES
    for number in range(1_000):
        shared.leave([shared.take(number, 8, object)])
        shared.drop_unused(most, 1)

    assert len(shared) == 19
    assert shared.bytes(1) <= most


def test_results_are_shared_by_the_classes_that_use_them_and_kept_for_a_while() -> None:
    shared = SharedResults()
    made: list[str] = []

    def make() -> object:
        made.append("one")
        return object()

    first = shared.take("a", 8, make)
    assert shared.take("a", 8, make) is first
    shared.leave([first])
    shared.drop_unused(0, 10)
    assert (shared.row_bytes, shared.unused_row_bytes) == (8, 0)  # one class still uses it
    shared.leave([first])
    shared.drop_unused(80 + RESULT_BYTES, 10)
    assert shared.take("a", 8, make) is first
    assert len(made) == 1
    shared.leave([first])
    shared.leave([shared.take("b", 4, make)])
    shared.drop_unused(40 + RESULT_BYTES, 10)  # what was left first goes first
    assert (shared.row_bytes, shared.unused_row_bytes) == (4, 4)
    assert shared.take("a", 8, make) is not first
