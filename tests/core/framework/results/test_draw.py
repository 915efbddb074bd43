"""Seeded choices: equal seeds choose alike, consecutive ones evenly."""

from collections import Counter

from asched.core.framework.results.draw import draw, draw_above, draw_again


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


def test_the_second_choice_is_another_one() -> None:
    same = sum(draw(seed, 10) == draw_again(seed, 10) for seed in range(1000))
    assert 60 < same < 140, "about one in ten is the same by chance"
