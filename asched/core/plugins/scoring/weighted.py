"""The mean that LeastAllocated and MostAllocated share."""

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


def weighted_mean(points: I64, allocatable: I64, weights: I64) -> I64:
    """floor(Σ weight · points / Σ weight) over the resources a node offers.

    Shapes    points and allocatable int64[R, M], weights int64[R]; returns int64[M].
    Edges     a resource with nothing allocatable has no points and leaves both sums; no resource
              left gives 0.
    """
    if len(weights) == 2:  # the default resources: two rows are added faster than along an axis
        first, second = weights.tolist()
        total = points[0] * first + points[1] * second
    else:
        total = (points * weights[:, None]).sum(axis=0)
    offered = allocatable > 0
    if offered.all():
        return total // max(int(weights.sum()), 1)  # type: ignore[no-any-return]
    return total // np.maximum(weights @ offered, 1)  # type: ignore[no-any-return]
