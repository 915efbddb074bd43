"""Seeded choices: equal seeds give equal choices, so that a run can be replayed exactly."""

from typing import Final

#: Odd constant of a multiplicative hash; spreads consecutive attempt numbers evenly.
_SPREAD: Final = 0x9E3779B97F4A7C15
#: The constant for `draw_above`.
_SPREAD_ABOVE: Final = 0xD1B54A32D192ED03
_MASK64: Final = 2**64 - 1
#: (shift, factor) of the finaliser of splitmix64 (Steele, Lea and Flood, 2014).
_ROUNDS: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))


def draw(seed: int, count: int) -> int:
    """A number from 0 to count - 1, determined by the seed."""
    return (((seed * _SPREAD) & _MASK64) >> 32) % count


def draw_again(seed: int, count: int) -> int:
    """Another choice by the same seed, from bits that `draw` uses last; the lowest of these bits
    changes with almost every seed, too.
    """
    return (((seed * _SPREAD) & _MASK64) >> 16 & 0xFFFFFF) % count


def draw_above(seed: int, level: int, count: int) -> int:
    """A further choice for each level of a search from large parts to small ones."""
    return (((seed + level) * _SPREAD_ABOVE & _MASK64) >> 40) % count


def scattered(*numbers: int) -> int:
    """64 bits, each of which depends on every bit of every number: for choices by counters, which
    are small and similar.
    """
    found = 0
    for number in numbers:
        found = (found + number + 1) * _SPREAD & _MASK64
        for shift, factor in _ROUNDS:
            found = (found ^ found >> shift) * factor & _MASK64
    return found
