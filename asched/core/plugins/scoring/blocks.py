"""Score large tables block by block.

Temporary arrays of a moderate size stay in the processor's cache and are reused by the allocator;
larger ones are handed back to the operating system and faulted in again at each step, which costs
several times the arithmetic.

Bounds   VALUES_MAX: 96 KiB of 8-byte values, below the 128 KiB from which glibc maps memory anew.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
Amounts = npt.NDArray[Any]

VALUES_MAX: Final = 12_288


def by_blocks(kernel: Callable[[Any, Any], I64], requested: Amounts, allocatable: Amounts) -> I64:
    """`kernel(requested, allocatable)` for [R, M] each, where rows are independent."""
    resources, size = requested.shape
    rows = max(VALUES_MAX // max(resources, 1), 1)
    if size <= rows:
        return kernel(requested, allocatable)
    points = np.empty(size, dtype=np.int64)
    for start in range(0, size, rows):
        block = slice(start, start + rows)
        points[block] = kernel(requested[:, block], allocatable[:, block])
    return points
