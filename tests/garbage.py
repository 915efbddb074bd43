"""What is left to the collector of garbage by a block of a test."""

import gc
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import _lru_cache_wrapper

import numpy.ma  # noqa: F401 - it leaves circles when NumPy imports it, at the first np.unique


@contextmanager
def uncollected() -> Iterator[Counter[str]]:
    """Around the block nobody collects but who is told to; afterwards: how many of which types are
    in circles that nobody uses, or hang on one.
    """
    found: Counter[str] = Counter()
    _forget_of_other_tests()
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


def _forget_of_other_tests() -> None:
    """What caches keep of the plugins of other tests goes when the block brings plugins of its own,
    with whatever those tests hung on them.
    """
    for module in [m for name, m in sys.modules.items() if name.startswith("asched.")]:
        for cached in [v for v in vars(module).values() if isinstance(v, _lru_cache_wrapper)]:
            cached.cache_clear()
