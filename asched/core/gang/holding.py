"""Room for amounts that are promised to a gang whose pods do not exist yet: on which nodes.

Nobody knows yet how large those pods will be. They are taken to be like the whole, with so much
memory for each CPU, and as large as can be: the fewest nodes that have room in that proportion.
What proportion cannot place (a cluster that has its CPU here and its memory there) is placed amount
by amount; so room is found whenever the free amounts of all nodes together suffice, which is all
that scheduler-plugins asks for.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from asched.core.gang.problem import I64, Mask
from asched.core.model.quantity import INT64_MAX, Quantity, QuantityError
from asched.core.model.requests import PODS, nano, to_units, written
from asched.core.state.cluster import Cluster

#: Groups whose shortage is remembered; the one noted first goes.
SHORT_MAX: Final = 4_096


def amounts_of(resources: Mapping[str, Quantity]) -> dict[str, int]:
    """`minResources` in the units of the columns; pods are counted otherwise. What cannot be read
    is nothing.
    """
    exact = {}
    for name, quantity in resources.items():
        with suppress(QuantityError):
            exact[name] = nano(quantity)
    return {n: a for n, a in to_units(exact).items() if a > 0 and n != PODS}


def spread(free: I64, wanted: I64, tier: I64) -> tuple[I64, I64]:
    """Where to hold amounts: (int64[R, N] held, int64[R] that found no room).

    Shapes    free int64[R, N], nowhere negative; wanted int64[R], all positive; tier int64[N],
              rows of the lowest are taken first.
    Rounding  parts in proportion are rounded down, the rest follows amount by amount.
    """
    share = np.minimum((free / wanted[:, None]).min(axis=0), 1.0)
    order = np.lexsort((-share, tier))
    before = np.cumsum(share[order]) - share[order]
    part = np.zeros_like(share)
    part[order] = np.clip(1.0 - before, 0.0, share[order])
    grown = np.minimum(np.floor(wanted[:, None] * part), float(INT64_MAX // 2))
    held: I64 = np.minimum(grown.astype(np.int64), free)
    missing = wanted.copy()
    for at in range(len(wanted)):
        missing[at] = _fill(held[at], free[at], int(wanted[at]), part, tier)
    return held, missing


def _fill(held: I64, free: I64, wanted: int, part: npt.NDArray[np.float64], tier: I64) -> int:
    """Bring one resource to its amount, first where something is held anyway; what is missing."""
    left: int = wanted - sum(held.tolist())
    if left < 0:  # rounding gave a little too much
        for row in np.flatnonzero(held).tolist():
            back = min(int(held[row]), -left)
            held[row] -= back
            left += back
    room = free - held
    for row in np.lexsort((-room, part <= 0, tier)).tolist() if left else ():
        more = min(int(room[row]), left)
        held[row] += more
        left -= more
        if not left:
            break
    return left


class Room(msgspec.Struct):
    """What of a cluster can be held for somebody: `names` of resources by axis, `free` of them on
    each row, and the names that no node has.
    """

    names: list[str]
    wanted: I64
    free: I64
    unknown: dict[str, int] = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, cluster: Cluster, wanted: Mapping[str, int]) -> "Room":
        nodes = cluster.nodes
        places = {n: at for n in wanted if (at := nodes.find_resource(n)) is not None}
        return cls(
            list(places),
            np.array([wanted[name] for name in places], dtype=np.int64),
            free_amounts(cluster, list(places.values())),
            {name: amount for name, amount in wanted.items() if name not in places},
        )


def free_amounts(cluster: Cluster, places: list[int]) -> I64:
    """int64[len(places), N]: what is left of these on rows that take pods, 0 on all others."""
    nodes = cluster.nodes
    read, height = nodes.columns.read, nodes.height
    takes: Mask = read("live")[:height] & ~read("unschedulable")[:height]
    takes = takes & (read("pod_count")[:height] < read("allowed_pods")[:height])
    left = read("allocatable")[places, :height] - read("requested")[places, :height]
    found: I64 = np.where(takes, np.maximum(left, 0), 0)
    return found


class Shortages:
    """Groups that could start but for their `minResources`: for `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._wanted: dict[str, dict[str, int]] = {}
        self._totals: dict[str, float] = {}
        self._totals_at = -1

    def note(self, key: str, wanted: Mapping[str, int]) -> None:
        """All that the group's pods and its minResources need together, by resource."""
        self._wanted.pop(key, None)
        self._wanted[key] = dict(wanted)
        if len(self._wanted) > SHORT_MAX:
            del self._wanted[next(iter(self._wanted))]

    def drop(self, key: str) -> None:
        self._wanted.pop(key, None)

    def may_fit(self, key: str) -> bool:
        """Whether the free amounts of all nodes together suffice now, or nobody knows."""
        wanted = self._wanted.get(key)
        if wanted is None:
            return True
        if self._totals_at != self._cluster.nodes.log.end:
            self._totals_at = self._cluster.nodes.log.end
            self._totals.clear()
        return all(self._total(name) >= amount for name, amount in wanted.items())

    def that_may_fit(self) -> list[str]:
        return [key for key in self._wanted if self.may_fit(key)]

    def __contains__(self, key: str) -> bool:
        return key in self._wanted

    def _total(self, name: str) -> float:
        found = self._totals.get(name)
        if found is None:
            place = self._cluster.nodes.find_resource(name)
            free = free_amounts(self._cluster, [] if place is None else [place])
            found = self._totals[name] = float(free.sum(dtype=np.float64))
        return found


def told(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {written(name, amount)}" for name, amount in amounts.items())
