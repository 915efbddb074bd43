"""Random numbers of Go before 1.20, which the published runs drew.

x[n] = x[n-607] + x[n-273] modulo 2^64. The seed is mixed into a start table, which is the same
recurrence 7.8e12 steps on: reached by powers of x modulo x^607 - x^334 - 1.

Source  golang/go src/math/rand: rng.go and gen_cooked.go (how its table was made), rand.go
"""

from collections.abc import MutableSequence
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]

LENGTH: Final = 607
TAP: Final = 273
TABLE_STEPS: Final = 7_800_000_000_000
_INT31_MAX: Final = 2**31 - 1
_MASK32: Final = 2**32 - 1
_MASK64: Final = 2**64 - 1


class GoRandom:
    """One seeded source."""

    def __init__(self, seed: int) -> None:
        words = _seed_words(seed % _INT31_MAX or 89_482_311, (40, 20, 0))
        start = [word ^ cooked for word, cooked in zip(words, _table(), strict=True)]
        self._values = start
        self._tap = 0
        self._feed = LENGTH - TAP

    def uint64(self) -> int:
        self._tap = (self._tap - 1) % LENGTH
        self._feed = (self._feed - 1) % LENGTH
        value = (self._values[self._feed] + self._values[self._tap]) & _MASK64
        self._values[self._feed] = value
        return value

    def below(self, count: int) -> int:
        """`Intn` for counts below 2^31."""
        largest = _INT31_MAX - 2**31 % count
        while True:
            value = (self.uint64() >> 32) & _INT31_MAX
            if value <= largest:
                return value % count

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """In place, from the end."""
        for last in range(len(items) - 1, 0, -1):
            other = self._below_32(last + 1)
            items[last], items[other] = items[other], items[last]

    def permutation(self, count: int) -> list[int]:
        found = [0] * count
        for number in range(count):
            other = self.below(number + 1)
            found[number] = found[other]
            found[other] = number
        return found

    def _below_32(self, count: int) -> int:
        """The generator of `Shuffle`."""
        product = ((self.uint64() >> 31) & _MASK32) * count
        if product & _MASK32 < count:
            threshold = (2**32 - count) % count
            while product & _MASK32 < threshold:
                product = ((self.uint64() >> 31) & _MASK32) * count
        return product >> 32


def _seed_words(seed: int, shifts: tuple[int, int, int]) -> list[int]:
    """607 words from the small generator: each made of three numbers, shifted."""
    value = seed
    for _ in range(20):
        value = value * 48_271 % _INT31_MAX
    words = []
    for _ in range(LENGTH):
        word = 0
        for shift in shifts:
            value = value * 48_271 % _INT31_MAX
            word ^= value << shift
        words.append(word & _MASK64)
    return words


@cache
def _table() -> list[int]:
    """The start table, in the order of Go's array."""
    in_order = np.zeros(2 * LENGTH, dtype=np.uint64)
    words = _seed_words(1, (20, 10, 0))
    # Step t lies at index (334 - t) mod 607; the start are the steps -606 to 0.
    for step in range(1 - LENGTH, 1):
        in_order[step + LENGTH - 1] = words[(LENGTH - TAP - step) % LENGTH]
    for at in range(LENGTH, 2 * LENGTH):
        in_order[at : at + 1] = in_order[at - LENGTH] + in_order[at - TAP : at - TAP + 1]
    factors = _power_of_x(TABLE_STEPS)
    table = [0] * LENGTH
    for step in range(1 - LENGTH, 1):
        start = step + LENGTH - 1
        value = int((factors * in_order[start : start + LENGTH]).sum(dtype=np.uint64))
        table[(LENGTH - TAP - step - TABLE_STEPS) % LENGTH] = value
    return table


def _power_of_x(exponent: int) -> U64:
    """uint64[607]: x^exponent modulo the recurrence's polynomial, lowest power first."""
    found = np.zeros(LENGTH, dtype=np.uint64)
    found[0] = 1
    for bit in f"{exponent:b}":
        square = np.zeros(2 * LENGTH, dtype=np.uint64)
        for power, factor in enumerate(found):
            square[power : power + LENGTH] += factor * found
        if bit == "1":
            square[1:] = square[:-1].copy()
            square[0] = 0
        for end in range(2 * LENGTH, LENGTH, -TAP):  # parts that do not overlap themselves
            start = max(end - TAP, LENGTH)
            part = square[start:end].copy()
            square[start - LENGTH : end - LENGTH] += part
            square[start - TAP : end - TAP] += part
        found = square[:LENGTH]
    return found
