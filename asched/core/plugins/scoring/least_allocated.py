"""LeastAllocated: prefer emptier nodes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from asched.core.plugins.scoring.weighted import mean_share

I64 = npt.NDArray[np.int64]
Ints = Sequence[int]


def least_allocated(requested: I64, allocatable: I64, weights: I64) -> I64:
    """Score nodes by the share of capacity that would stay free.

    Shapes    requested and allocatable int64[R, M], weights int64[R]; returns int64[M] in 0..100.
    Units     milli-CPU, bytes, whole devices; only the ratio matters, so rows may differ.
    Rounding  floor for each resource, then floor of the mean: one point can move a pod.
    Edges     a resource a node does not offer leaves the mean; an overdrawn one counts as 0.
    Source    kubernetes/kubernetes v1.36 plugins/noderesources/least_allocated.go
    """
    free = allocatable - requested
    np.maximum(free, 0, out=free)
    return mean_share(free, allocatable, weights)


def least_allocated_one(requested: Ints, allocatable: Ints, weights: Ints) -> int:
    """The same for one node, in plain integers: each sequence has one entry per resource."""
    total = weight_sum = 0
    for held, offered, weight in zip(requested, allocatable, weights, strict=True):
        if offered > 0:
            total += weight * (max(offered - held, 0) * 100 // offered)
            weight_sum += weight
    return total // weight_sum if weight_sum else 0
