"""The numbers are Go's."""

from asched_lab.trace.go_random import GoRandom


def test_the_first_numbers_of_two_seeds_are_those_go_prints() -> None:
    # What math/rand gave every Go program before 1.20, and its tour's second example.
    one, other = GoRandom(1), GoRandom(42)
    assert [one.below(100) for _ in range(10)] == [81, 87, 47, 59, 81, 18, 25, 40, 56, 0]
    assert [other.below(100) for _ in range(2)] == [5, 87]


def test_a_shuffle_and_a_permutation_keep_everybody() -> None:
    items = list(range(1000))
    GoRandom(7).shuffle(items)
    assert items != sorted(items)
    assert sorted(items) == list(range(1000))
    assert sorted(GoRandom(7).permutation(1000)) == list(range(1000))
