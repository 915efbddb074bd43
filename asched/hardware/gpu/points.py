"""Points of the simple GPU policies, 0..100 by node; CPU and devices count together.

Edges   nodes where the pod does not fit have undefined points.
Source  the simulator published with Weng et al., USENIX ATC 2023: dot product, GPU clustering,
        GPU packing and best fit as in its plugins
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from asched.hardware.gpu.shares import WHOLE, GpuDemand, GpuShares
from asched.plugin import I64

#: The largest node, the unit of amounts: milli-CPU, thousandths of a device.
LARGEST_CPU: Final = 128_000.0
LARGEST_DEVICES: Final = 8
MAX_SCORE: Final = 100.0


def dot_product(shares: GpuShares, demand: GpuDemand) -> I64:
    """Few points where much is left of what the pod mostly requests."""
    largest = float(LARGEST_DEVICES * WHOLE)
    product = (shares.cpu / LARGEST_CPU) * (demand.cpu / LARGEST_CPU)
    product = product + (shares.free.sum(axis=1) / largest) * (demand.total / largest)
    points: I64 = (MAX_SCORE * (1.0 - product / 2)).astype(np.int64)
    return points


def best_fit(shares: GpuShares, demand: GpuDemand) -> I64:
    """The less is left with the pod, the better. Not scaled to 0..100 yet."""
    largest = float(LARGEST_DEVICES * WHOLE)
    rest = (shares.cpu - demand.cpu) / LARGEST_CPU * 0.5
    rest = rest + (shares.free.sum(axis=1) - demand.total) / largest * 0.5
    points: I64 = ((1.0 - rest) * MAX_SCORE).astype(np.int64)
    return points


def packing(shares: GpuShares, demand: GpuDemand) -> I64:
    """Devices in use first, the fuller the better; then free ones of nodes in use; free nodes
    last.
    """
    if not demand.number:
        return np.zeros(len(shares.cpu), dtype=np.int64)
    is_whole = (shares.free == WHOLE).sum(axis=1)
    ascending = np.sort(np.where(shares.free >= demand.milli, shares.free, WHOLE + 1), axis=1)
    taken = ascending[:, : demand.number]
    untouched = (taken == WHOLE).sum(axis=1)
    shared = np.maximum(100 - (taken * 100 // WHOLE).sum(axis=1) // 10, 50)
    used = np.where(untouched > 0, np.maximum(50 - untouched, 33), shared)
    points: I64 = np.where(is_whole == shares.devices, np.maximum(33 - is_whole, is_whole), used)
    return points


def clustering(
    shares: GpuShares, demand: GpuDemand, holds_kind: npt.NDArray[np.bool_], kinds: I64
) -> I64:
    """Group pods of one kind (fractions, or the same number of whole devices).

    `holds_kind` bool[M]: a pod of this kind is there; `kinds` int64[M]: the number of kinds there.
    """
    if not demand.number:
        return np.zeros(len(shares.cpu), dtype=np.int64)
    largest = LARGEST_DEVICES * WHOLE
    base = np.where(holds_kind, np.where(kinds == 1, 75, 50), np.where(kinds == 0, 25, 0))
    points: I64 = base + 25 * (largest - shares.free.sum(axis=1)) // largest
    return points


def spread(points: I64) -> I64:
    """Scale points of the feasible nodes to 0..100, the least to 0."""
    low, high = int(points.min()), int(points.max())
    if high == low:
        return points - low
    return (points - low) * 100 // (high - low)


def ranked(points: I64) -> I64:
    """Rank: the best get 100, the next best 99 and so on: whole points that preserve the order."""
    _, place = np.unique(points, return_inverse=True)
    behind = place.max(initial=0) - place
    found: I64 = np.maximum(int(MAX_SCORE) - behind, 0)
    return found
