"""Storage capacity scoring: points of nodes by how full their storage would be.

Where existing volumes are bound, their requested share of their size counts; where volumes are
made, the requested share of the storage that is left. Claims of one class are added up, each
class's utilization goes through the curve of the arguments, and classes weigh alike.
"""

from collections import defaultdict
from typing import Final

import numpy as np

from asched.core.cluster.view import with_more
from asched.core.framework.points import I64, Mask
from asched.core.model.quantity import whole
from asched.core.model.storage import STORAGE, claim_class
from asched.core.plugins.volumes.candidates import NONE
from asched.core.plugins.volumes.choice import VolumeChoice
from asched.core.plugins.volumes.static_binding import Match
from asched.core.plugins.volumes.topology import storage_request

FULL: Final = 100


class _Class:
    """Requested and available bytes of one storage class on each row."""

    def __init__(self, size: int) -> None:
        self.requested_bytes: I64 = np.zeros(size, dtype=np.int64)
        self.capacity_bytes: I64 = np.zeros(size, dtype=np.int64)
        self.used: Mask = np.zeros(size, dtype=np.bool_)


def storage_scores(choice: VolumeChoice, points_by_percent: I64) -> I64:
    """int64[M] in 0..100.

    Rounding  utilization floors to whole per cents; the mean over classes rounds half up.
    Edges     nothing to bind or make gives 0; more asked for than there is counts as full.
    """
    size = len(choice.codes)
    is_static: Mask = np.zeros(size, dtype=np.bool_)
    classes: dict[str, _Class] = defaultdict(lambda: _Class(size))
    for match in choice.matches:
        is_static |= match.found
        _add_match(classes, match)
    for making in choice.makings:
        capacity = making.provision.capacity_bytes
        if capacity is None:
            continue
        rows = making.needed & making.provision.roomy & ~is_static
        entry = classes[claim_class(making.claim)]
        entry.used |= rows
        _add(entry.requested_bytes, rows, np.int64(whole(storage_request(making.claim) or 0)))
        entry.capacity_bytes[rows] = capacity[rows]
    points = np.zeros(size, dtype=np.int64)
    count = np.zeros(size, dtype=np.int64)
    for entry in classes.values():
        points += np.where(entry.used, points_by_percent[_percent(entry)], 0)
        count += entry.used
    divisor = np.maximum(count, 1)
    scores: I64 = (2 * points + divisor) // (2 * divisor)
    return scores


def _add_match(classes: dict[str, _Class], match: Match) -> None:
    requested_bytes = whole(storage_request(match.claim) or 0)
    sizes = np.array(
        [whole((v.spec.capacity or {}).get(STORAGE, 0)) for v in match.volumes], dtype=np.int64
    )
    names = [volume.spec.storage_class_name for volume in match.volumes]
    for name in dict.fromkeys(names):
        of_class = np.array([other == name for other in names])
        rows = of_class[match.ranks] & (match.ranks != NONE)
        entry = classes[name]
        entry.used |= rows
        _add(entry.requested_bytes, rows, np.int64(requested_bytes))
        _add(entry.capacity_bytes, rows, sizes[match.ranks[rows]])


def _add(amounts: I64, rows: Mask, more: I64 | np.int64) -> None:
    """Add, saturating at the largest 64-bit amount."""
    amounts[rows] = with_more(amounts[rows], more)


def _percent(entry: _Class) -> I64:
    """int64[M]: utilization in percent, capped at 100; 100 without capacity."""
    capacity = np.maximum(entry.capacity_bytes, 1)
    fits = (entry.requested_bytes <= entry.capacity_bytes) & (entry.capacity_bytes > 0)
    requested = np.where(fits, entry.requested_bytes, 0)
    percent = requested * FULL // capacity
    return np.where(fits, percent, FULL)
