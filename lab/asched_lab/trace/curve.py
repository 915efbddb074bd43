"""Allocation over arrived demand: the share of all devices in use by the share requested.

Source  experiments/analysis/merge_alloc_discrete.py of the simulator published with Weng et al.,
        USENIX ATC 2023
"""

from collections.abc import Sequence
from typing import Final

from asched.hardware.gpu.ledger import WHOLE

#: Percent of all devices requested, at which figures are published.
LAST_PERCENT: Final = 130
POINTS: Final = (60, 90, 100, 130)


def curve(arrived: Sequence[int], used: Sequence[int], devices: int) -> list[float | None]:
    """For 0 to 130 percent arrived: the mean percentage in use, over all arrivals that round to it
    (or to a neighbour, if none does); None where no value exists.

    `arrived` and `used` are running sums after every arrival, in thousandths of a device.
    """
    capacity = devices * WHOLE
    by_percent: dict[int, list[float]] = {}
    for requested, in_use in zip(arrived, used, strict=True):
        share = round(100 * in_use / capacity, 2)
        by_percent.setdefault(round(100 * requested / capacity), []).append(share)
    found: list[float | None] = []
    for percent in range(LAST_PERCENT + 1):
        shares = by_percent.get(percent)
        if shares is None:
            shares = [
                share for near in (percent - 1, percent + 1) for share in by_percent.get(near, ())
            ]
        found.append(round(sum(shares) / len(shares), 2) if shares else None)
    return found
