"""The garbage collector of a process that is one scheduler: quiet while everything is listed.

Records are not tracked, so little garbage is cyclic, and a full pass would stop the loop.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

#: Of the collector of garbage, once everything is listed: containers made and not given back,
#: then collections of the generation before. On a slow machine a container takes 0.4 us: a young
#: collection 2 ms, one of those that stayed 10 ms, since it comes after every fourth and not after
#: every tenth (20 to 48 ms of a turn). What both leave was not in a cycle that ends with a binding.
#: A full one would stop the loop for seconds, and finds next to nothing: it never comes.
GC_THRESHOLDS: Final = (5_000, 3, 1_000_000)


@contextmanager
def own_process() -> Iterator[Callable[[], None]]:
    """Around a scheduler's life; what it is given is called when the first lists are in."""
    gc.disable()
    try:
        yield _settle
    finally:
        gc.enable()


def _settle() -> None:
    """What the first lists made stays for good: take it out of the collector's sight. It is not
    gone through before, since that takes 0.1 s and more, and finds a few kB that imports left.
    """
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()
