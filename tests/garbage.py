"""What is left to the collector of garbage by a block of a test."""

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[Counter[str]]:
    """Around the block nobody collects but who is told to; afterwards: how many of which types are
    in circles that nobody uses, or hang on one.
    """
    found: Counter[str] = Counter()
    gc.unfreeze()
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.unfreeze()
        gc.collect()
        types = map(type, gc.garbage)
        found.update(f"{one.__module__}.{one.__qualname__}" for one in types)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
