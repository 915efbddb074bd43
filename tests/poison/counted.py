"""What something costs, counted: calls of functions, and the most memory at one time.

The clock would say how busy the machine is; the number of calls is the same everywhere.
"""

import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Cost:
    """`calls` of Python's and of C's functions; `bytes_max` beyond what there was before."""

    def __init__(self) -> None:
        self.calls = 0
        self.bytes_max = 0


@contextmanager
def counted() -> Iterator[Cost]:
    """Counts what happens inside, in this thread."""
    cost = Cost()

    def note(_frame: Any, event: str, _what: Any) -> None:
        if event in {"call", "c_call"}:
            cost.calls += 1

    before = sys.getprofile()
    tracemalloc.start()
    sys.setprofile(note)
    try:
        yield cost
    finally:
        sys.setprofile(before)
        cost.bytes_max = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
