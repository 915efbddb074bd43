"""How evenly the resources of a node are used, with a pod and without it."""

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


def balanced_allocation(requested: I64, amounts: I64, allocatable: I64) -> I64:
    """Score nodes by what a pod does to the balance between their resources.

    Shapes    requested and allocatable int64[R, M], amounts int64[R, 1] of the pod; returns
              int64[M] in 50..100, 75 where the balance stays as it is.
    Rounding  fractions in float64, in the order of the resources; balance toward zero; half the
              difference toward zero.
    Edges     a resource a node does not offer is left out; with fewer than two there is nothing to
              balance.
    Source    kubernetes/kubernetes v1.36 plugins/noderesources/balanced_allocation.go
    """
    offered = allocatable > 0
    is_whole = bool(offered.all())
    divisor = allocatable if is_whole else np.maximum(allocatable, 1)
    after = np.minimum((requested + amounts) / divisor, 1.0)
    before = np.minimum(requested / divisor, 1.0)
    if is_whole and len(allocatable) == 2:
        gain = _balance(_half_gap(after)) - _balance(_half_gap(before))
    else:
        gain = _balance(_deviation(after, offered)) - _balance(_deviation(before, offered))
    # The bracket is never negative, so that flooring is truncating.
    return 50 + (50 + gain) // 2


def _balance(deviation: F64) -> I64:
    return ((1.0 - deviation) * 100.0).astype(np.int64)


def _half_gap(fractions: F64) -> F64:
    gap: F64 = np.abs(fractions[0] - fractions[1])
    return gap / 2


def _deviation(fractions: F64, offered: npt.NDArray[np.bool_]) -> F64:
    """float64[M]: the population's standard deviation over the resources each node offers.

    Sums run one resource after the other: a different order may round differently.
    """
    total = np.zeros(fractions.shape[1])
    gap = np.zeros(fractions.shape[1])  # first minus second, where there are exactly two
    counts = np.zeros(fractions.shape[1], dtype=np.int64)
    for fraction, here in zip(fractions, offered, strict=True):
        kept = np.where(here, fraction, 0.0)
        total += kept
        gap += np.where(counts == 1, -kept, kept)
        counts += here
    mean = total / np.maximum(counts, 1)
    squares = np.zeros(fractions.shape[1])
    for fraction, here in zip(fractions, offered, strict=True):
        squares += np.where(here, (fraction - mean) * (fraction - mean), 0.0)
    spread = np.sqrt(squares / np.maximum(counts, 1))
    return np.where(counts == 2, np.abs(gap) / 2, np.where(counts > 2, spread, 0.0))
