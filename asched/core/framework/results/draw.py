"""Seeded choices: equal seeds choose alike, so that a run can be replayed to the last tie."""

from typing import Final

#: Odd constant of a multiplicative hash; spreads consecutive attempt ids evenly.
_SPREAD: Final = 0x9E3779B97F4A7C15
#: Another one, for choices above those of `draw`.
_SPREAD_ABOVE: Final = 0xD1B54A32D192ED03
_MASK64: Final = 2**64 - 1
#: (shift, factor) of the finaliser of splitmix64 (Steele, Lea and Flood, 2014).
_ROUNDS: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))


def draw(seed: int, count: int) -> int:
    """One of 0 … count - 1, as the seed has it."""
    return (((seed * _SPREAD) & _MASK64) >> 32) % count


def draw_again(seed: int, count: int) -> int:
    """Another choice by the same seed, from bits that `draw` does not look at first; of these ones
    the lowest turn with almost every seed, too.
    """
    return (((seed * _SPREAD) & _MASK64) >> 16 & 0xFFFFFF) % count


def draw_above(seed: int, level: int, count: int) -> int:
    """One more for each level of a choice that goes from the large to the small."""
    return (((seed + level) * _SPREAD_ABOVE & _MASK64) >> 40) % count


def scattered(*numbers: int) -> int:
    """64 bits, each of which may turn with any bit of any number: for choices by counters, which
    are small and begin alike.
    """
    found = 0
    for number in numbers:
        found = (found + number + 1) * _SPREAD & _MASK64
        for shift, factor in _ROUNDS:
            found = (found ^ found >> shift) * factor & _MASK64
    return found
