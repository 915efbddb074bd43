"""The garbage collector of a process that is one scheduler: never within a turn, never for long.

    while everything is listed      nothing is collected
    once it is                      it stays for good, and is taken out of the collector's sight
    then, between turns             young containers are looked through every so often, and those
                                    that stayed with every fourth look
    more of them than a pause has   they are taken out of its sight unseen
    time for

Records are not tracked, and what the machine makes is in no cycle once it is of no use (a test says
so): reference counts are enough for it. Cycles are left by tasks at the edge, a few at a time, and
those are young. So little is missed where a long turn made a hundred thousand containers, which it
would take a long pause to look through. Python's own rule would pause anywhere within a turn, and
counts containers made less those given back: where a turn does both, it looks late, at all of them.
"""

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

#: From one look to the next, in which busy turns make a few thousand containers that stay.
EVERY_S: Final = 0.02
#: Young collections before those that stayed are looked through again. What dies in a cycle has
#: died by then: a binding takes milliseconds.
YOUNG_LOOKS: Final = 4
#: Containers that one pause looks through, at 0.3 us each: ten milliseconds.
PAUSE_CONTAINERS_MAX: Final = 30_000
#: Where nobody says when a turn ends: containers made and not given back, then collections of the
#: generation before.
SELDOM: Final = (5_000, 3, 1_000_000)


class Collector:
    """Collects when it is told that a turn has ended, once all is settled."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._due_s = math.inf
        self._looks = 0

    def settle(self) -> None:
        """What the first lists made stays for good: take it out of the collector's sight. It is not
        gone through before, since that takes 0.1 s and more, and finds a few kB that imports left.
        """
        gc.freeze()
        self._due_s = self._now_s() + EVERY_S

    def turned(self) -> None:
        """No turn is under way."""
        if self._now_s() >= self._due_s:
            self._look()
            self._due_s = self._now_s() + EVERY_S

    def _look(self) -> None:
        self._looks += 1
        with_old = not self._looks % YOUNG_LOOKS
        count = len(gc.get_objects(generation=0))
        if with_old:
            count += len(gc.get_objects(generation=1))
        if count > PAUSE_CONTAINERS_MAX:
            gc.freeze()
        else:
            gc.collect(1 if with_old else 0)


@contextmanager
def own_process() -> Iterator[Collector]:
    """Around a scheduler's life: its collector, to be told when all is listed, and of each turn."""
    gc.disable()
    try:
        yield Collector()
    finally:
        gc.enable()


@contextmanager
def collected_seldom() -> Iterator[None]:
    """Around the work of a command that knows of no turns: looking for garbage took a fifth."""
    before = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
