"""Free parts of nodes' devices, in thousandths of one device, and the effect of a placement.

A pod requests a number of devices and `milli` of each: a fraction of one, or whole ones. A
fraction never spans devices.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched.hardware.rows import Mask
from asched.plugin import I64

I32 = npt.NDArray[np.int32]

#: One whole device.
WHOLE: Final = 1000


class GpuDemand(NamedTuple):
    """Demand of a pod. `models`: the allowed models, sorted; () for any."""

    cpu: int  # milli-CPU
    milli: int = 0
    number: int = 0  # of devices
    models: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Thousandths of a device."""
        return self.milli * self.number

    @property
    def kind(self) -> int:
        """Pods of the same kind use a node in the same way: fractions, or the same number of whole
        devices.
        """
        return 0 if self.milli < WHOLE else self.number


class GpuShares(NamedTuple):
    """M nodes. Absent devices have nothing left; `models` are the names of the ids in `model`."""

    cpu: I64  # [M] milli-CPU left
    free: I64  # [M, D]
    devices: I64  # [M] number of devices
    model: I32  # [M]
    models: tuple[str, ...]

    def take(self, rows: I64) -> "GpuShares":
        return GpuShares(
            self.cpu[rows], self.free[rows], self.devices[rows], self.model[rows], self.models
        )


class Placements(NamedTuple):
    """X ways to place a pod, grouped by node, by device.

    `position` int64[X] is the position among the M nodes; `device` int64[X] is the device of a
    fraction, -1 for whole devices, which are taken from the free ones in order, or for no device.
    """

    position: I64
    device: I64
    after: GpuShares


def has_devices(shares: GpuShares, demand: GpuDemand) -> Mask:
    """bool[M]: enough devices have enough left."""
    enough: Mask = (shares.free >= demand.milli).sum(axis=1) >= demand.number
    return enough


def fits(shares: GpuShares, demand: GpuDemand) -> Mask:
    """bool[M]: CPU, devices and model suffice."""
    enough = shares.cpu >= demand.cpu
    if demand.number:
        enough &= has_devices(shares, demand)
        enough &= accepts(demand, shares.models)[shares.model]
    return enough


def accepts(demand: GpuDemand, models: tuple[str, ...]) -> Mask:
    """Whether each model id is allowed."""
    return np.array([not demand.models or name in demand.models for name in models], dtype=np.bool_)


def placements(shares: GpuShares, demand: GpuDemand) -> Placements:
    """Every distinct way to place a pod on nodes where it fits: of devices with equally much left,
    the first.
    """
    if 0 < demand.milli < WHOLE:
        free = shares.free
        offered = free >= demand.milli
        for device in range(1, free.shape[1]):
            same = free[:, :device] == free[:, device : device + 1]
            offered[:, device] &= ~same.any(axis=1)
        position, device_of = offered.nonzero()
        after = shares.take(position)
        after.free[np.arange(len(position)), device_of] -= demand.milli
    else:
        position = np.arange(len(shares.cpu))
        device_of = np.full(len(position), -1)
        after = shares.take(position)
        if demand.number:
            is_whole = after.free == WHOLE
            after.free[is_whole & (is_whole.cumsum(axis=1) <= demand.number)] = 0
    return Placements(position, device_of, after._replace(cpu=after.cpu - demand.cpu))


def best_of(ways: Placements, points: npt.NDArray[np.generic], size: int) -> tuple[I64, I64]:
    """(index into the ways, device) of the best way on each of `size` nodes, int64[size] each;
    index -1 where there is none, and the first of equals.
    """
    index = np.full(size, -1)
    device = np.full(size, -1)
    if len(points):
        starts = np.flatnonzero(np.diff(ways.position, prepend=-1))
        peaks = np.maximum.reduceat(points, starts)
        is_best = points == np.repeat(peaks, np.diff(starts, append=len(points)))
        best = np.flatnonzero(is_best)[::-1]  # written last wins: the first of equals
        index[ways.position[best]] = best
        device[ways.position[best]] = ways.device[best]
    return index, device
