"""Score the zones of a node for a guaranteed pod: five strategies.

Rules   LeastAllocated, MostAllocated, BalancedAllocation: each zone gets a score; the smallest
        that is not 0 is the node's, for the whole pod or as the mean over its containers.
        LeastNUMANodes: the fewest zones that together have room, those at the smallest distance
        first; none whose mean distance exceeds the maximum.
Source  kubernetes-sigs/scheduler-plugins pkg/noderesourcetopology/score.go, least_allocated.go,
        most_allocated.go, balanced_allocation.go, least_numa.go
Bounds  COMBINATIONS_MAX sets of zones are tried for each number of zones; a node
        of more than 14 zones counts as one on which nothing fits.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations
from typing import Final, TypeVar

import numpy as np

from asched.hardware.numa.demand import NumaDemand, Request
from asched.hardware.numa.topology import CPU
from asched.hardware.numa.zones import FARTHEST, NOT_LISTED, Zones
from asched.hardware.rows import Mask
from asched.plugin import I64

Weights = Mapping[str, int]

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
BALANCED_ALLOCATION: Final = "BalancedAllocation"
LEAST_NUMA_NODES: Final = "LeastNUMANodes"
COMBINATIONS_MAX: Final = 1 << 14
_NONE: Final = 1 << 60

A = TypeVar("A", int, I64)
ZoneScore = Callable[[Zones, Request, Weights], I64]


def zone_scores(score: ZoneScore, zones: Zones, demand: NumaDemand, weights: Weights) -> I64:
    """int64[M]; 0 for a pod that `is_beyond` where containers count one by one."""
    whole = _smallest(score(zones, demand.whole, weights), zones)
    if demand.is_beyond:
        return np.where(zones.is_pod_scope, whole, 0)
    each = [
        _smallest(score(zones, request, weights), zones)
        for request in (*demand.inits, *demand.containers)
    ]
    mean = (np.sum(each, axis=0) / len(each)).astype(np.int64)
    return np.where(zones.is_pod_scope, whole, mean)


def _smallest(scores: I64, zones: Zones) -> I64:
    """The smallest score of the existing zones except 0; 0 if there is no other."""
    exists = np.arange(zones.width)[:, np.newaxis] < zones.count
    counted = np.where(exists & (scores != 0), scores, _NONE).min(axis=0)
    return np.where(counted == _NONE, 0, counted)


def _weighted(
    points: Callable[[int, I64], I64], zones: Zones, request: Request, weights: Weights
) -> I64:
    """int64[Z, M]: the weighted mean of the points of each resource."""
    total = np.zeros((zones.width, zones.size), dtype=np.int64)
    divisor = 0
    for name, amount in request.items():
        held = zones.of(name)
        can = (held > 0) & (held >= amount)
        found = points(_whole(name, amount), np.where(can, _whole(name, held), 1))
        weight = weights.get(name, 1)
        total += np.where(can, found, 0) * weight
        divisor += weight
    return total // divisor if divisor else total


def balanced_allocation(zones: Zones, request: Request, weights: Weights) -> I64:  # noqa: ARG001
    """int64[Z, M]: the more evenly its resources are used the better; weights are ignored."""
    if len(request) < 2:
        # a single resource has no variance
        return np.zeros((zones.width, zones.size), dtype=np.int64)
    shares = []
    for name, amount in request.items():
        held = np.maximum(_whole(name, zones.of(name)), 0)
        shares.append(np.where(held > 0, _whole(name, amount) / np.maximum(held, 1), 1.0))
    variance = np.var(shares, axis=0, ddof=1)
    found: I64 = ((1 - variance) * 100).astype(np.int64)
    return np.where((np.array(shares) > 1).any(axis=0), 0, found)


ZONE_SCORES: Final[Mapping[str, ZoneScore]] = {
    LEAST_ALLOCATED: partial(_weighted, lambda requested, held: (held - requested) * 100 // held),
    MOST_ALLOCATED: partial(_weighted, lambda requested, held: requested * 100 // held),
    BALANCED_ALLOCATION: balanced_allocation,
}


def _whole(name: str, amount: A) -> A:
    """Whole cores, rounded up; the rest as it is."""
    return -(-amount // 1000) if name == CPU else amount


def least_numa_nodes(zones: Zones, demand: NumaDemand) -> I64:
    """int64[M]; 0 for a pod that `is_beyond` where containers count one by one."""
    found = np.zeros(zones.size, dtype=np.int64)
    for number in np.unique(zones.count).tolist():
        rows = np.flatnonzero(zones.count == number)
        for scope in (True,) if demand.is_beyond else (True, False):
            matching = rows[zones.is_pod_scope[rows] == scope]
            if len(matching):
                found[matching] = _fewest(zones.take(matching), demand, number, whole=scope)
    return found


def _fewest(zones: Zones, demand: NumaDemand, number: int, *, whole: bool) -> I64:
    """Rows with this number of zones each. `zones` is modified."""
    requests = (demand.whole,) if whole else (*demand.inits, *demand.containers)
    most = np.zeros(zones.size, dtype=np.int64)
    fine = np.ones(zones.size, dtype=np.bool_)
    all_near = np.ones(zones.size, dtype=np.bool_)
    for request in requests:
        concerned = fine & _is_listed(zones, request)
        sets, is_near = _needed(zones, request, number, concerned)
        found = sets.any(axis=0)
        fine &= found | ~concerned
        all_near &= is_near | ~concerned
        most = np.maximum(most, np.where(concerned, sets.sum(axis=0), 0))
        if not whole:
            _take(zones, request, sets & fine)
    width = 100 // zones.zones_max
    points = 100 - most * width + np.where(all_near, width // 2, 0)
    return np.where(fine, np.where(most == 0, 100, points), 0)


def _is_listed(zones: Zones, request: Request) -> Mask:
    """bool[M]: some zone lists something of the request."""
    found = np.zeros(zones.size, dtype=np.bool_)
    for name in request:
        found |= (zones.of(name) != NOT_LISTED).any(axis=0)
    return found


def _needed(zones: Zones, request: Request, number: int, where: Mask) -> tuple[Mask, Mask]:
    """bool[Z, M]: the required zones, none if nothing fits; bool[M]: whether their distance is the
    smallest possible for so many zones.
    """
    chosen = np.zeros((zones.width, zones.size), dtype=np.bool_)
    is_near = np.zeros(zones.size, dtype=np.bool_)
    waiting = where.copy()
    if 2**number > COMBINATIONS_MAX:
        return chosen, is_near
    for size in range(1, number + 1):
        if not waiting.any():
            break
        sets = list(combinations(range(number), size))
        # the distances of all pairs, each with itself included
        sums = np.array([zones.costs[np.ix_(zs, zs)].sum(axis=(0, 1)) for zs in sets])
        nearest = np.minimum(sums.min(axis=0), FARTHEST * size * size)
        fits = np.array([_has_room(zones, request, places) for places in sets]) & waiting
        fits &= sums < (FARTHEST + 1) * size * size
        # The first of the nearest that fit; `sums` are over pairs, so that equal sums mean equal
        # distance.
        at = np.where(fits, sums, _NONE).argmin(axis=0)
        hit = np.flatnonzero(fits.any(axis=0))
        for rank, places in enumerate(sets):
            chosen[np.ix_(places, hit[at[hit] == rank])] = True
        is_near[hit] = sums[at[hit], hit] == nearest[hit]
        waiting[hit] = False
    return chosen, is_near


def _has_room(zones: Zones, request: Request, places: tuple[int, ...]) -> Mask:
    """bool[M]: each of these zones lists all resources, and together they have enough."""
    found = np.ones(zones.size, dtype=np.bool_)
    for name, amount in request.items():
        held = zones.of(name)[list(places)]
        found &= (held != NOT_LISTED).all(axis=0)
        if amount:
            found &= held.sum(axis=0) >= amount
    return found


def _take(zones: Zones, request: Request, sets: Mask) -> None:
    """Subtract from the zones of each row, the lowest first, until the request is met."""
    for name, amount in request.items():
        held = zones.available.get(name)
        if held is None:
            continue
        remaining = np.full(zones.size, amount, dtype=np.int64)
        for at in range(zones.width):
            is_used = sets[at] & (held[at] != NOT_LISTED)
            taken = np.where(is_used, np.minimum(held[at], remaining), 0)
            held[at] = np.where(is_used, held[at] - taken, held[at])
            remaining -= taken
