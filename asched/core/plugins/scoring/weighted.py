"""The mean that LeastAllocated and MostAllocated share."""

import numpy as np
import numpy.typing as npt

from asched.core.plugins.scoring.quotient import quotient

I64 = npt.NDArray[np.int64]


def mean_share(parts: I64, allocatable: I64, weights: I64) -> I64:
    """floor(Σ weight · floor(100 · part / allocatable) / Σ weight) over what a node offers.

    `parts` is overwritten: fresh arrays of this size cost more than the arithmetic on them.

    Shapes    parts and allocatable int64[R, M], weights int64[R]; returns int64[M].
    Edges     a resource with nothing allocatable must have no part and leaves both sums; no
              resource left gives 0.
    """
    offered = allocatable > 0
    is_whole = bool(offered.all())
    parts *= 100
    points = quotient(parts, allocatable if is_whole else np.maximum(allocatable, 1))
    weight = int(weights.sum()) if is_whole else weights @ offered
    if weights.max(initial=1) > 1:
        points *= weights[:, None]
    total: I64 = points[0] + points[1] if len(points) == 2 else points.sum(axis=0)
    total //= max(weight, 1) if isinstance(weight, int) else np.maximum(weight, 1)
    return total
