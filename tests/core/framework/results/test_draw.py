"""Seeded choices: equal seeds choose alike, consecutive ones evenly."""

from collections import Counter
from collections.abc import Callable
from itertools import groupby, pairwise

import pytest

from asched.core.framework.results.draw import draw, draw_above, draw_again, scattered


def above(seed: int, count: int) -> int:
    return draw_above(seed, 1, count)


def test_equal_seeds_choose_alike_and_within_bounds() -> None:
    for choose in (draw, draw_again, above):
        chosen = [choose(seed, 7) for seed in range(1000)]
        assert chosen == [choose(seed, 7) for seed in range(1000)]
        assert set(chosen) == set(range(7))
        assert {choose(seed, 1) for seed in range(50)} == {0}


def test_consecutive_seeds_are_spread_evenly() -> None:
    for choose in (draw, draw_again, above):
        counts = Counter(choose(seed, 4) for seed in range(4000))
        assert all(900 < count < 1100 for count in counts.values())


@pytest.mark.parametrize("choose", [draw, draw_again, above])
@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_consecutive_seeds_do_not_keep_to_one_choice(
    choose: Callable[[int, int], int], count: int
) -> None:
    chosen = (choose(seed, count) for seed in range(20_000))
    assert max(sum(1 for _ in run) for _, run in groupby(chosen)) <= 6


def test_the_second_choice_is_another_one() -> None:
    same = sum(draw(seed, 10) == draw_again(seed, 10) for seed in range(1000))
    assert 60 < same < 140, "about one in ten is the same by chance"


def test_choices_by_counters_are_as_those_of_coins() -> None:
    """Of small numbers in a row, at any place among several."""
    by_first = [scattered(n) % 4 for n in range(400)]
    by_second = [scattered(7, n) % 2 for n in range(400)]
    by_both = [scattered(n, n) % 2 for n in range(400)]
    assert all(70 <= by_first.count(one) <= 130 for one in range(4))
    for coins in (by_second, by_both):
        assert 160 <= sum(coins) <= 240
        assert 160 <= sum(a == b for a, b in pairwise(coins)) <= 240
        assert 160 <= sum(a == b for a, b in zip(coins, coins[4:], strict=False)) <= 240
    assert scattered(1, 2) != scattered(2, 1)
    assert 0 <= scattered(2**70) < 2**64


def test_recordings_of_other_versions_find_the_same_choices() -> None:
    """The first one looks at the upper half of a product modulo 2^64, the second at the bits from
    the sixteenth on.
    """
    golden = (2**64 * 618_033_988_749_894_848 // 10**18) | 1
    for seed in (0, 1, 2, 77, 2**40):
        product = seed * 0x9E3779B97F4A7C15 % 2**64
        assert abs(golden - 0x9E3779B97F4A7C15) < 2**14, "2^64 by the golden ratio"
        assert draw(seed, 1000) == product // 2**32 % 1000
        assert draw_again(seed, 1000) == product // 2**16 % 2**24 % 1000


def test_single_numbers_are_scattered_as_splitmix64_does_from_zero() -> None:
    """Its first outputs, as they are published with its implementations."""
    assert [scattered(n) for n in range(5)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
        0xF88BB8A8724C81EC,
        0x1B39896A51A8749B,
    ]
