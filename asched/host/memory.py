"""Garbage collection of the scheduler process: never within a turn, never for long.

    during the first lists          no collection
    after them                      their objects are frozen (`gc.freeze`)
    between turns                   young generation regularly; every fourth time the next one, too
    more containers than a pause    frozen without a scan
    allows

Records are untracked, and what the machine allocates is not in cycles when it is dropped (checked
by a test), so reference counts suffice. Cycles are left by tasks of the I/O layers, a few at a
time, and those die young. So little garbage is missed where a long turn has allocated a hundred
thousand containers. Python's default would pause within a turn, and counts allocations minus
deallocations: in a turn with both, it starts late and then scans all containers.
"""

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

#: Between two collections; busy turns allocate a few thousand lasting containers in this time.
EVERY_S: Final = 0.02
#: Young collections per collection of the next generation. Garbage in cycles is dead by then: a
#: binding takes milliseconds.
YOUNG_COLLECTIONS: Final = 4
#: Containers scanned in one pause, at 0.3 us each: ten milliseconds.
PAUSE_CONTAINERS_MAX: Final = 30_000
#: Thresholds for code without turns: containers allocated minus deallocated, then collections of
#: the previous generation.
SELDOM: Final = (5_000, 3, 1_000_000)


class Collector:
    """Collects between turns, once the first lists are processed."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._due_s = math.inf
        self._collections = 0

    def settle(self) -> None:
        """Freeze the objects of the first lists. They are not collected before: that takes 0.1 s or
        more and finds a few kB left by imports.
        """
        gc.freeze()
        self._due_s = self._now_s() + EVERY_S

    def turn_ended(self) -> None:
        if self._now_s() >= self._due_s:
            self._collect()
            self._due_s = self._now_s() + EVERY_S

    def _collect(self) -> None:
        self._collections += 1
        with_old = not self._collections % YOUNG_COLLECTIONS
        count = len(gc.get_objects(generation=0))
        if with_old:
            count += len(gc.get_objects(generation=1))
        if count > PAUSE_CONTAINERS_MAX:
            gc.freeze()
        else:
            gc.collect(1 if with_old else 0)


@contextmanager
def own_process() -> Iterator[Collector]:
    """A context for the run of a scheduler: yields its collector."""
    gc.disable()
    try:
        yield Collector()
    finally:
        gc.enable()


@contextmanager
def collected_seldom() -> Iterator[None]:
    """A context for commands without turns: default thresholds cost a fifth of their time."""
    before = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
