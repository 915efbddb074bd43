"""How many pods of a group would have room at most, by amounts alone.

Whatever else keeps a pod from a node, it has to fit into what is left there. So much less than a
trial of the group costs, and so a row's room can be followed while thousands of pods are put back
one after the other: where this says no, every trial would.

Of a gang that needs M of its pods, each kind of pod must have room for those that the others cannot
make up for; and all M of them together, if every pod took of everything no more than the most
modest one.

Bounds  KINDS_MAX kinds of pods are followed, the more demanding ones.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.framework.group_post_filter import Alike
from asched.core.framework.order_free import POD_PLACE
from asched.core.framework.placements import Mask
from asched.core.preemption.units import Unit
from asched.core.state.cluster import Cluster
from asched.core.state.pods import PodClass
from asched.core.state.view import NodeView

I64 = npt.NDArray[np.int64]

KINDS_MAX: Final = 8


class _Kind:
    """Pods with equal needs: so many of them must have room. `slots` by row."""

    __slots__ = ("count", "needs", "required", "rows", "slots", "total")

    def __init__(self, like: Alike, required: int, places: Sequence[int]) -> None:
        self.count = like.size
        self.required = required
        self.needs = [(k, like.takes[at]) for k, at in enumerate(places) if like.takes.get(at)]
        self.rows: list[bool] = like.rows.tolist()
        self.slots: list[int] = []
        self.total = 0

    def slots_in(self, free: Sequence[int]) -> int:
        """How many have room in a row with so much left."""
        most = self.count
        for k, need in self.needs:
            if free[k] < need * most:
                most = free[k] // need
        return max(most, 0)


class Room:
    """Follows the rows while units come and go; at first, those of `gone` are not there."""

    def __init__(
        self, cluster: Cluster, likes: Sequence[Alike], needed: int, gone: Iterable[Unit]
    ) -> None:
        self._cluster = cluster
        self._places = sorted({at for like in likes for at, need in like.takes.items() if need})
        self._kinds = [_Kind(like, count, self._places) for like, count in _kinds(likes, needed)]
        any_rows: Mask = np.logical_or.reduce([like.rows for like in likes])
        for row in cluster.nodes.pod_amounts.rows_beyond:  # no 64 bits say what is left there
            if row < len(any_rows):
                any_rows[row] = False
        self._is_followed: list[bool] = any_rows.tolist()
        self._amounts: dict[PodClass, tuple[int, ...]] = {}
        self._free: list[list[int]] = self._left().T.tolist()
        for unit in gone:
            for row, amounts in self._takes(unit):
                free = self._free[row]
                for k, amount in enumerate(amounts):
                    free[k] += amount
        for kind in self._kinds:
            kind.slots = [
                kind.slots_in(free) if may else 0
                for free, may in zip(self._free, kind.rows, strict=True)
            ]
            for row in cluster.nodes.pod_amounts.rows_beyond:
                if row < len(kind.slots) and kind.rows[row]:
                    kind.slots[row] = kind.count
            kind.total = sum(kind.slots)

    @property
    def is_enough(self) -> bool:
        return all(kind.total >= kind.required for kind in self._kinds)

    def put_back(self, unit: Unit) -> None:
        self._move(unit, -1)

    def take_away(self, unit: Unit) -> None:
        self._move(unit, 1)

    def _move(self, unit: Unit, sign: int) -> None:
        for row, amounts in self._takes(unit):
            free = self._free[row]
            for k, amount in enumerate(amounts):
                free[k] += sign * amount
            for kind in self._kinds:
                if kind.rows[row]:
                    slots = kind.slots_in(free)
                    kind.total += slots - kind.slots[row]
                    kind.slots[row] = slots

    def _takes(self, unit: Unit) -> Iterable[tuple[int, tuple[int, ...]]]:
        """(row, amounts) of the pods of a unit, of those on rows that matter."""
        followed = self._is_followed
        for info in unit.pods:
            if 0 <= info.row < len(followed) and followed[info.row]:
                amounts = self._amounts.get(info.cls)
                if amounts is None:
                    amounts = self._amounts[info.cls] = self._of_class(info.cls)
                yield info.row, amounts

    def _of_class(self, cls: PodClass) -> tuple[int, ...]:
        names = self._cluster.nodes.resources.values
        held = cls.accounted
        return tuple(1 if at == POD_PLACE else held.get(names[at + 1], 0) for at in self._places)

    def _left(self) -> I64:
        """int64[K, N]: what is left of each place now; less than nothing where it is overdrawn."""
        view = NodeView(self._cluster.nodes)
        rows = [
            view.allowed_pods - view.pod_count
            if at == POD_PLACE
            else view.allocatable(at) - view.requested(at)
            for at in self._places
        ]
        return np.array(rows, dtype=np.int64).reshape(len(rows), self._cluster.nodes.height)


def _kinds(likes: Sequence[Alike], needed: int) -> list[tuple[Alike, int]]:
    """(pods, how many of them must have room)."""
    count = sum(like.size for like in likes)
    found = [(like, needed - (count - like.size)) for like in likes]
    found = sorted((one for one in found if one[1] > 0), key=lambda one: -one[1])[:KINDS_MAX]
    if len(likes) > 1:
        places = set(likes[0].takes).intersection(*(like.takes for like in likes))
        modest = {at: min(like.takes[at] for like in likes) for at in places}
        rows: Mask = np.logical_or.reduce([like.rows for like in likes])
        found.append((Alike(count, modest, rows), needed))
    return found
