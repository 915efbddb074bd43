"""The mean that LeastAllocated and MostAllocated share."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from asched.core.plugins.scoring.quotient import quotient

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


def mean_share(parts: I64, allocatable: I64, weights: I64) -> I64:
    """floor(Σ weight · floor(100 · part / allocatable) / Σ weight) over what a node offers.

    `parts` is overwritten: fresh arrays of this size cost more than the arithmetic on them.

    Shapes    parts and allocatable int64[R, M], weights int64[R]; returns int64[M].
    Edges     a resource with nothing allocatable must have no part and leaves both sums; no
              resource left gives 0.
    """
    parts *= 100
    points = quotient(parts, np.maximum(allocatable, 1))
    points *= weights[:, None]
    total: I64 = points.sum(axis=0)
    total //= np.maximum(weights @ (allocatable > 0), 1)
    return total


def mean_of_two(
    hundredfold: F64, offered: F64, more: Sequence[float], weights: Sequence[int]
) -> I64:
    """The same for two resources that all nodes offer, where floats are exact.

    Shapes    hundredfold parts and what nodes offer float64[2, M]; of each resource so much more
              of parts (hundredfold), and its weight; returns int64[M].
    Edges     parts below nothing and beyond all that a node offers count as these.
    """
    total = np.zeros(offered.shape[1], dtype=np.int16)  # weights are 100 at most
    for part, step, most, weight in zip(hundredfold, more, offered, weights, strict=True):
        share = part + step
        share /= most
        share.clip(0.0, 100.0, out=share)
        points = share.astype(np.int16)
        total += points if weight == 1 else points * np.int16(weight)
    total //= np.int16(sum(weights))
    return total.astype(np.int64)
