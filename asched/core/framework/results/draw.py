"""Seeded choices: equal seeds choose alike, so that a run can be replayed to the last tie."""

from typing import Final

#: Odd constant of a multiplicative hash; spreads consecutive attempt ids evenly.
_SPREAD: Final = 0x9E3779B97F4A7C15
#: Another one, for choices above those of `draw`.
_SPREAD_ABOVE: Final = 0xD1B54A32D192ED03
_MASK64: Final = 2**64 - 1


def draw(seed: int, count: int) -> int:
    """One of 0 … count - 1, as the seed has it."""
    return (((seed * _SPREAD) & _MASK64) >> 32) % count


def draw_again(seed: int, count: int) -> int:
    """Another choice by the same seed, from other bits than `draw` looks at."""
    return (((seed * _SPREAD) & _MASK64) >> 8 & 0xFFFFFF) % count


def draw_above(seed: int, level: int, count: int) -> int:
    """One more for each level of a choice that goes from the large to the small."""
    return (((seed + level) * _SPREAD_ABOVE & _MASK64) >> 40) % count
