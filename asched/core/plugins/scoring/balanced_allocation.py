"""How evenly the resources of a node are used, with a pod and without it."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from asched.core.cluster.view import with_more

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


def balanced_allocation(requested: I64, amounts: I64, allocatable: I64) -> I64:
    """Score nodes by how a pod changes the balance between their resources.

    Shapes    requested and allocatable int64[R, M], amounts int64[R, 1] of the pod; returns
              int64[M] in 50..100, 75 where the balance stays as it is.
    Rounding  fractions in float64, in the order of the resources; balance toward zero; half the
              difference toward zero.
    Edges     a resource a node does not offer is left out; with fewer than two there is nothing to
              balance.
    Source    kubernetes/kubernetes v1.36 plugins/noderesources/balanced_allocation.go
    """
    return gain_in_balance(
        balance(with_more(requested, amounts), allocatable), balance(requested, allocatable)
    )


def gain_in_balance(with_pod: I64, without_pod: I64) -> I64:
    """int64[M] in 50..100 from the balance of both states."""
    # The sum is never negative, so that halving by a shift truncates toward zero.
    points = with_pod - without_pod
    points += 50
    points >>= 1
    points += 50
    return points


def balance(requested: I64, allocatable: I64) -> I64:
    """int64[M] in 0..100: 100 where all resources are used by the same share."""
    offered = allocatable > 0
    fractions = np.minimum(requested / np.maximum(allocatable, 1), 1.0)
    deviation = _deviation(fractions, offered)
    np.subtract(1.0, deviation, out=deviation)
    deviation *= 100.0
    points: I64 = deviation.astype(np.int64)
    return points


def balanced_allocation_one(
    requested: Sequence[int], amounts: Sequence[int], allocatable: Sequence[int]
) -> int:
    """The same for one node that offers both of two resources, in plain numbers."""
    first, second = float(allocatable[0]), float(allocatable[1])
    held, other = requested
    before = _balance_of(float(held) / first, float(other) / second)
    held += amounts[0]
    other += amounts[1]
    gain = _balance_of(float(held) / first, float(other) / second) - before
    return 50 + ((50 + gain) >> 1)


def balance_of_two(requested: F64, allocatable: F64, more: Sequence[float]) -> I64:
    """`balance` with these amounts added, where all nodes offer both resources and floats are
    exact: float64[2, M] each.
    """
    first, second = requested[0] + more[0], requested[1] + more[1]
    for fraction, offered in ((first, allocatable[0]), (second, allocatable[1])):
        np.divide(fraction, offered, out=fraction)
        if np.maximum.reduce(fraction, initial=0.0) > 1.0:
            np.minimum(fraction, 1.0, out=fraction)
    first -= second
    np.abs(first, out=first)
    np.subtract(2.0, first, out=first)  # twice what `balance` has, half of the factor: no other
    first *= 50.0  # bits, since powers of two round nothing
    points: I64 = first.astype(np.int64)
    return points


def balance_one(requested: Sequence[float], allocatable: Sequence[float]) -> int:
    """`balance` of one node that offers both of two resources, in plain numbers."""
    return _balance_of(
        float(requested[0]) / float(allocatable[0]), float(requested[1]) / float(allocatable[1])
    )


def _balance_of(first: float, second: float) -> int:
    """0..100 from two fractions, which count up to 1."""
    apart = (min(first, 1.0)) - (min(second, 1.0))
    return int((1.0 - abs(apart) / 2) * 100.0)


def _deviation(fractions: F64, offered: npt.NDArray[np.bool_]) -> F64:
    """float64[M]: the population's standard deviation over the resources each node offers.

    The order of summation is fixed: a different order may round differently.
    """
    total, gap, squares = np.zeros((3, fractions.shape[1]))
    counts = np.zeros(fractions.shape[1], dtype=np.int64)
    for position, is_offered in enumerate(offered):
        kept = np.where(is_offered, fractions[position], 0.0)
        total += kept
        gap += np.where(counts == 1, -kept, kept)  # first minus second, where there are just two
        counts += is_offered
    divisor = np.maximum(counts, 1)
    mean = total / divisor
    for position, is_offered in enumerate(offered):
        off = fractions[position] - mean
        squares += np.where(is_offered, off * off, 0.0)
    spread = np.sqrt(squares / divisor)
    return np.where(counts == 2, np.abs(gap) / 2, np.where(counts > 2, spread, 0.0))
