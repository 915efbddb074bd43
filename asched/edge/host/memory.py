"""The garbage collector of a process that is one scheduler: quiet while everything is listed.

Records are not tracked, so little garbage is cyclic, and a full pass would stop the loop.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

#: Of the collector of garbage, once everything is listed: containers made and not given back,
#: then collections of the generation before. A young one takes 1.5 ms (one of 100,000 took 15), the
#: next 15 ms at most, once for 100,000 containers that stay. A full one would stop the loop for
#: seconds, and finds next to nothing: it never comes.
GC_THRESHOLDS: Final = (10_000, 10, 1_000_000)


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
