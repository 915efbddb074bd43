"""Order of pods and names of nodes, all from one seed, as in the published runs.

Source  the simulator published with Weng et al., USENIX ATC 2023 (pkg/simulator): one generator
        for the order of the pods, the copies that raise demand, and the names of the nodes

Random numbers are those of Go before 1.20: x[n] = x[n-607] + x[n-273] modulo 2^64. The seed is
mixed into a start table, which is the same recurrence 7.8e12 steps on: reached by powers of x
modulo x^607 - x^334 - 1.

Source  golang/go src/math/rand: rng.go and gen_cooked.go (how its table was made), rand.go
"""

from collections.abc import MutableSequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched.hardware.gpu.shares import WHOLE
from asched_lab.trace.openb import Trace, TraceNode, TracePod

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


#: The sum of the pods' requests is brought to this share of all devices.
RATIO: Final = 1.3
#: Numbers that other parts of the published runs drew before the nodes were renamed; found by
#: experiment, the same in all runs compared.
DRAWN_BEFORE: Final = 10


class Arrivals(NamedTuple):
    nodes: tuple[TraceNode, ...]  # by their new names: the first of equal nodes wins
    pods: tuple[TracePod, ...]
    devices: int  # of all nodes


def arrivals(trace: Trace, seed: int) -> Arrivals:
    """The order and names of one seed."""
    random = GoRandom(seed)
    random.uint64()  # drawn for a log line
    pods = list(trace.pods)
    random.shuffle(pods)
    devices = sum(node.devices for node in trace.nodes)
    _tune(pods, trace.pods, RATIO * float(devices * WHOLE), random)
    for _ in range(DRAWN_BEFORE):
        random.uint64()
    order = random.permutation(len(trace.nodes))
    renamed = sorted(
        node._replace(name=f"{number:04d}-{node.name}")
        for number, node in zip(order, trace.nodes, strict=True)
    )
    return Arrivals(tuple(renamed), tuple(pods), devices)


def _tune(
    pods: list[TracePod], raw_objects: tuple[TracePod, ...], target: float, random: GoRandom
) -> None:
    """Delete pods while they request too much; otherwise add copies until the next one may exceed
    the target; it counts with its share of one device.
    """
    requested = sum(pod.demand.total for pod in pods)
    if requested > target:
        while requested > target:
            requested -= pods.pop(random.below(len(pods))).demand.total
        return
    while True:
        pod = raw_objects[random.below(len(raw_objects))]
        if requested + pod.demand.milli > target:
            return
        pods.append(pod)
        requested += pod.demand.total
