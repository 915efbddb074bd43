"""What something costs, counted: calls of functions, and the most memory at one time.

The clock would say how busy the machine is; the number of calls is the same everywhere.
"""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from cProfile import Profile


class Cost:
    """`calls` of Python's and of C's functions; `bytes_max` beyond what there was before."""

    def __init__(self) -> None:
        self.calls = 0
        self.bytes_max = 0


@contextmanager
def counted() -> Iterator[Cost]:
    """Counts what happens inside, in this thread."""
    cost, profile = Cost(), Profile()
    tracemalloc.start()
    profile.enable()
    try:
        yield cost
    finally:
        profile.disable()
        cost.calls = sum(entry.callcount for entry in profile.getstats())
        cost.bytes_max = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
