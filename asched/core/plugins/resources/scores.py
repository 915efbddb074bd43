"""Points of nodes by their resources, 0 to 100: kernels over all rows, and over one row.

LeastAllocated prefers emptier nodes, MostAllocated fuller ones, RequestedToCapacityRatio follows a
configured curve over utilization, and BalancedAllocation prefers nodes whose resources are used
evenly. Of the configured resources, cpu, memory and ephemeral storage always count, others only if
the pod requests them. Resources are on the first axis, in the order of the configuration.

Integers are divided as in Go: toward zero, with 64 bits that wrap. Large tables are scored block by
block, because temporary arrays of a moderate size stay in the processor's cache.

Most pods are scored by cpu and memory. Where every node offers both, in amounts that floats
represent exactly, one more pod is an addition and a division, without checks for overflow or empty
nodes; what does not depend on the pod is cached per row (`AsFloats`).

Bounds   VALUES_MAX: 96 KiB of 8-byte values, below the 128 KiB from which glibc maps memory anew.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import FIXED_RESOURCES, Aspect
from asched.core.cluster.view import NodeView, with_more
from asched.core.config.args import ResourceSpec, UtilizationShapePoint
from asched.core.framework.results.by_row import ByRow, Rows
from asched.core.model.arrays import F64, I64, Mask
from asched.core.model.requests import is_scalar

Amounts = npt.NDArray[Any]
Ints = Sequence[int]
#: (resource, view) -> (allocatable, requested) int64[M] each, where devices stand for it.
DeviceAmounts = Callable[[str, NodeView], tuple[I64, I64]]

#: Whole numbers below this are exact floats.
EXACT_MAX: Final = 1 << 53


def quotient(dividend: I64, divisor: I64) -> I64:
    """`dividend / divisor` for positive divisors, truncated toward zero, in place of the dividend.

    A dividend is negative only where a product has overflowed 64 bits (amounts beyond 80 PiB).
    """
    least = int(dividend.min()) if dividend.size else 0
    if least >= 0 and int(max(dividend.max(initial=0), divisor.max(initial=0))) < EXACT_MAX:
        # Below that, float division never rounds up to the next whole number, and is twice as fast.
        np.copyto(dividend, dividend / divisor, casting="unsafe")
    elif least < 0:
        negative = dividend < 0
        np.negative(dividend, out=dividend, where=negative)
        dividend //= divisor
        np.negative(dividend, out=dividend, where=negative)
    else:
        dividend //= divisor
    return dividend


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
        np.maximum(share, 0.0, out=share)  # `clip` calls Python
        np.minimum(share, 100.0, out=share)
        points = share.astype(np.int16)
        total += points if weight == 1 else points * np.int16(weight)
    total //= np.int16(sum(weights))
    return total.astype(np.int64)


def most_allocated(requested: I64, allocatable: I64, weights: I64) -> I64:
    """Score nodes by the share of capacity that would be in use.

    Shapes    requested and allocatable int64[R, M], weights int64[R]; returns int64[M] in 0..100.
    Units     milli-CPU, bytes, whole devices; only the ratio matters, so rows may differ.
    Rounding  floor for each resource, then floor of the mean.
    Edges     a resource a node does not offer leaves the mean; an overdrawn one counts as full.
    Source    kubernetes/kubernetes v1.36 plugins/noderesources/most_allocated.go
    """
    return mean_share(np.minimum(requested, allocatable), allocatable, weights)


def most_allocated_one(requested: Ints, allocatable: Ints, weights: Ints) -> int:
    """The same for one node, in plain integers: each sequence has one entry per resource."""
    total = weight_sum = 0
    for held, offered, weight in zip(requested, allocatable, weights, strict=True):
        if offered > 0:
            total += weight * (min(held, offered) * 100 // offered)
            weight_sum += weight
    return total // weight_sum if weight_sum else 0


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
    """The same for one node, in plain integers."""
    total = weight_sum = 0
    for held, offered, weight in zip(requested, allocatable, weights, strict=True):
        if offered > 0:
            if offered > held:
                total += weight * ((offered - held) * 100 // offered)
            weight_sum += weight
    return total // weight_sum if weight_sum else 0


FULL: Final = 100
#: Scores of the configuration reach 10, those of nodes 100.
SCORE_SCALE: Final = 10


def curve(shape: Sequence[UtilizationShapePoint]) -> I64:
    """int64[101]: the points for each per cent of utilization.

    Rounding  between two corners toward zero, also where the curve falls.
    Edges     constant before the first corner and after the last.
    Source    kubernetes/kubernetes v1.36 plugins/helper/shape_score.go
    """
    return np.array([_points_at(shape, percent) for percent in range(FULL + 1)], dtype=np.int64)


def requested_to_capacity_ratio(
    requested: I64, allocatable: I64, weights: I64, points_by_percent: I64
) -> I64:
    """Score nodes by the curve at the utilization each resource would have.

    Shapes    requested and allocatable int64[R, M], weights int64[R], points_by_percent int64[101];
              returns int64[M] in 0..100.
    Rounding  utilization floors to whole per cents; the mean is rounded half up, unlike the other
              strategies'.
    Edges     an overdrawn resource is fully used; one without points leaves the mean, as does one
              that a node does not offer; none left gives 0.
    Source    kubernetes/kubernetes v1.36 plugins/noderesources/requested_to_capacity_ratio.go
    """
    offered = allocatable > 0
    percent = quotient(np.minimum(requested, allocatable) * FULL, np.maximum(allocatable, 1))
    points = points_by_percent.take(percent, mode="clip")
    points *= offered
    divisor = np.maximum(weights @ (points > 0), 1)
    total: I64 = weights @ points
    total *= 2
    total += divisor
    divisor *= 2
    total //= divisor
    return total


def _points_at(shape: Sequence[UtilizationShapePoint], percent: int) -> int:
    for index, corner in enumerate(shape):
        if percent <= corner.utilization:
            if index == 0:
                return corner.score * SCORE_SCALE
            before = shape[index - 1]
            rise = (corner.score - before.score) * SCORE_SCALE * (percent - before.utilization)
            run = corner.utilization - before.utilization
            step = rise // run if rise >= 0 else -(-rise // run)
            return before.score * SCORE_SCALE + step
    return shape[-1].score * SCORE_SCALE


class Scored(NamedTuple):
    """The resources that count for a pod, with its amounts and the weights in plain numbers."""

    names: tuple[str, ...]
    plain: tuple[int, ...]
    plain_weights: tuple[int, ...]
    is_default: bool  # exactly cpu and memory: the first two rows of every table of amounts

    @property
    def amounts(self) -> I64:
        """int64[R, 1]"""
        return np.array(self.plain, dtype=np.int64).reshape(-1, 1)

    @property
    def weights(self) -> I64:
        """int64[R]"""
        return np.array(self.plain_weights, dtype=np.int64)


def scored(resources: Sequence[ResourceSpec], requests: Mapping[str, int]) -> Scored:
    """Choose the configured resources that count for a pod with these requests."""
    names: tuple[str, ...] = ()
    amounts: tuple[int, ...] = ()
    weights: tuple[int, ...] = ()
    for spec in resources:
        name, amount = spec.name, requests.get(spec.name, 0)
        if name in FIXED_RESOURCES or (amount > 0 and is_scalar(name)):
            names, amounts, weights = (*names, name), (*amounts, amount), (*weights, spec.weight)
    return Scored(names, amounts, weights, names == FIXED_RESOURCES[:2])


def node_amounts(
    nodes: NodeView, names: Sequence[str], devices: DeviceAmounts, *, nonzero: bool
) -> tuple[I64, I64]:
    """(requested, allocatable), int64[R, M] each.

    `nonzero`: cpu and memory with the defaults for containers without requests. A resource that a
    node does not offer itself may be served by devices.
    """
    requested = np.zeros((len(names), nodes.size), dtype=np.int64)
    allocatable = np.zeros((len(names), nodes.size), dtype=np.int64)
    for position, name in enumerate(names):
        row = nodes.table.find_resource(name)
        if row is not None:
            is_default = nonzero and row < 2
            requested[position] = nodes.nonzero(row) if is_default else nodes.requested(row)
            allocatable[position] = nodes.allocatable(row)
        if name not in FIXED_RESOURCES and not allocatable[position].all():
            missing = allocatable[position] == 0
            offered, taken = devices(name, nodes)
            allocatable[position] = np.where(missing, offered, allocatable[position])
            requested[position] = np.where(missing, taken, requested[position])
    return requested, allocatable


def default_amounts(nodes: NodeView, *, nonzero: bool) -> tuple[I64, I64]:
    """`node_amounts` for cpu and memory, without a copy if all rows are read."""
    both = slice(0, 2)
    return (nodes.nonzero(both) if nonzero else nodes.requested(both)), nodes.allocatable(both)


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
    held: int, other: int, more: Sequence[int], offered: float, other_offered: float
) -> int:
    """The same for one node that offers both of two resources, in plain numbers."""
    before = _balance_of(float(held) / offered, float(other) / other_offered)
    after = _balance_of(float(held + more[0]) / offered, float(other + more[1]) / other_offered)
    return 50 + ((50 + after - before) >> 1)


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
    if first > 1.0 or second > 1.0:  # seldom, and `min` takes half of the time
        first, second = min(first, 1.0), min(second, 1.0)
    return int((1.0 - abs(first - second) / 2) * 100.0)


def _deviation(fractions: F64, offered: Mask) -> F64:
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


ASPECTS: Final = int(Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE)
#: Twice a hundred times this is an exact float.
AMOUNT_MAX: Final = EXACT_MAX // 200


class AsFloats(ByRow[None]):
    """`parts` float64[2, N] is the result of `part_of` for (requested, allocatable), both as
    floats.
    """

    def __init__(
        self, cluster: Cluster, part_of: Callable[[Any, Any], Any], *, nonzero: bool
    ) -> None:
        """`nonzero`: requested with the defaults for containers without requests."""
        super().__init__(cluster.nodes, ASPECTS)
        self._part_of = part_of
        self._nonzero = nonzero
        self.parts: F64 = np.zeros((2, 0))
        #: float64[2, N]; 1 for a row without a node
        self.offered: F64 = np.zeros((2, 0))
        #: whether every node offers both, in amounts up to AMOUNT_MAX; else the rest is not
        #: computed
        self.is_plain = False

    def serves(self, amounts: Sequence[int]) -> bool:
        """Bring this up to date; whether a pod of such amounts can be scored by it."""
        self.update(None)
        return self.is_plain and max(amounts) <= AMOUNT_MAX

    def of(self, nodes: NodeView) -> tuple[F64, F64]:
        """(parts, offered) for the rows of a view."""
        rows = slice(None) if nodes.rows is None else nodes.rows
        return self.parts[:, rows], self.offered[:, rows]

    def _make_all(self, _: None) -> None:
        view = NodeView(self._nodes)
        requested, allocatable = default_amounts(view, nonzero=self._nonzero)
        lacking = allocatable <= 0
        most = max(requested.max(initial=0), allocatable.max(initial=0))
        self.is_plain = bool(most <= AMOUNT_MAX and not (lacking & view.live).any())
        if self.is_plain:
            self.offered = np.where(lacking, 1.0, allocatable)
            self.parts = self._part_of(requested.astype(np.float64), self.offered)

    def _make_rows(self, _: None, rows: Rows) -> bool:
        columns = self._nodes.columns
        requested = columns.read("nonzero" if self._nonzero else "requested")
        allocatable, live = columns.read("allocatable"), columns.read("live")
        for row in rows:
            for at in (0, 1):
                held, offered = float(requested.item(at, row)), float(allocatable.item(at, row))
                if offered <= 0.0 and not live.item(row):
                    offered = 1.0
                if not (self.is_plain and 0.0 < offered <= AMOUNT_MAX and held <= AMOUNT_MAX):
                    return False
                self.offered[at, row] = offered
                self.parts[at, row] = self._part_of(held, offered)
        return True


class Evenness(AsFloats):
    """The half of the balanced-allocation score that does not depend on the pod: the balance of the
    node without it. `parts` are the requested amounts.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, lambda held, _: held, nonzero=False)
        #: int64[N] in 0..100, where `is_plain`
        self.values: I64 = np.zeros(0, dtype=np.int64)

    def _make_all(self, _: None) -> None:
        super()._make_all(None)
        if self.is_plain:
            requested, allocatable = default_amounts(NodeView(self._nodes), nonzero=False)
            self.values = by_blocks(balance, requested, np.maximum(allocatable, 1))

    def _make_rows(self, _: None, rows: Rows) -> bool:
        if not super()._make_rows(None, rows):
            return False
        parts, offered = self.parts, self.offered
        for row in rows:
            held = (parts.item(0, row), parts.item(1, row))
            self.values[row] = balance_one(held, (offered.item(0, row), offered.item(1, row)))
        return True
