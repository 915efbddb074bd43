"""Whether pods of a group have room, by amounts alone, while units are removed and put back.

Whatever else keeps a pod from a node, it has to fit into what is free there. That is much cheaper
than a trial of the group. Checked are

    for a group   a gang that needs M of its pods: each kind of pod must have room for as many as
                  the other kinds cannot make up for; and all M of them together, if every pod
                  took of each resource no more than the smallest one. Where this fails, any trial
                  would
    for places    the pods of the group that a trial placed on a row must still have room there

Bounds  KINDS_MAX kinds of pods of a group are followed, those with the largest requests.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import NodeTable
from asched.core.cluster.pods import PodClass, PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.group_post_filter import EqualMembers
from asched.core.framework.order_free import POD_PLACE, left_of, slots_of
from asched.core.framework.placements import Mask
from asched.core.model.arrays import I64
from asched.core.preemption.pods_by_priority import PodsByPriority
from asched.core.preemption.victim_units import VictimUnit

KINDS_MAX: Final = 8
#: Keeps the arrays of a pass within the cache.
ROWS_AT_ONCE: Final = 1_024


class Want(NamedTuple):
    """`required` pods with these amounts each (place on axis R, or POD_PLACE, to amount) must have
    room on these rows, at most `most` of them on one row.
    """

    takes: Mapping[int, int]
    rows: Iterable[int]
    required: int
    most: int


def of_group(likes: Sequence[EqualMembers], needed: int) -> list[Want]:
    """What a group needs in any case if `needed` of its pods must be placed."""
    count = sum(len(like.uids) for like in likes)
    spare = count - needed
    largest = sorted(likes, key=lambda like: -len(like.uids))[:KINDS_MAX]
    wants = [
        Want(like.takes, _rows(like.rows), len(like.uids) - spare, len(like.uids))
        for like in largest
        if len(like.uids) > spare
    ]
    if len(likes) > 1:
        axes = set(likes[0].takes).intersection(*(like.takes for like in likes))
        modest = {at: min(like.takes[at] for like in likes) for at in axes}
        anywhere: Mask = np.logical_or.reduce([like.rows for like in likes])
        wants.append(Want(modest, _rows(anywhere), needed, count))
    return wants


def of_places(
    likes: Sequence[EqualMembers], places: Mapping[str, str], nodes: NodeTable
) -> list[Want]:
    """What the placed pods of the group need where a trial put them; `places` by uid."""
    held: dict[int, dict[int, int]] = {}
    for like in likes:
        for uid in like.uids:
            row = nodes.row_of.get(places.get(uid, ""))
            if row is not None:
                amounts_of_row = held.setdefault(row, {})
                for at, amount in like.takes.items():
                    amounts_of_row[at] = amounts_of_row.get(at, 0) + amount
    return [Want(takes, (row,), 1, 1) for row, takes in held.items()]


def _rows(mask: Mask) -> list[int]:
    found: list[int] = np.flatnonzero(mask).tolist()
    return found


class _Kind:
    """A want, how many of its pods have room on each of its rows, and on all together: now, and on
    empty rows (`empty`).
    """

    def __init__(self, want: Want, axes: Sequence[int]) -> None:
        self.most = want.most
        self.required = want.required
        self.needs = [(k, want.takes[at]) for k, at in enumerate(axes) if want.takes.get(at)]
        self.slots: dict[int, int] = dict.fromkeys(want.rows, want.most)
        self.total = self.empty = 0

    def slots_in(self, free: Sequence[int]) -> int:
        """How many have room in a row with so much free."""
        most = self.most
        for k, need in self.needs:
            if free[k] < need * most:
                most = free[k] // need
        return max(most, 0)


class EvictionTrial:
    """Follows the rows while units are removed and put back. First, `without` gives the units that
    are removed; `count` ends that.
    """

    def __init__(self, cluster: Cluster, wants: Sequence[Want]) -> None:
        self._cluster = cluster
        self._axes = _axes(wants)
        self._kinds = [_Kind(want, self._axes) for want in wants]
        self._on: dict[int, list[_Kind]] = {}  # only rows of some want
        for kind in self._kinds:
            for row in kind.slots:
                self._on.setdefault(row, []).append(kind)
        for row in cluster.nodes.pod_amounts.rows_beyond:  # the free amounts exceed 64 bits
            self._on.pop(row, None)
        self._amounts: dict[PodClass, tuple[int, ...]] = {}
        self._free: list[list[int]] = left_of(NodeView(cluster.nodes), self._axes).T.tolist()

    def without(self, unit: VictimUnit) -> None:
        for row, amounts in self._takes(unit):
            free = self._free[row]
            for k, amount in enumerate(amounts):
                free[k] += amount

    def count(self) -> None:
        for row, kinds in self._on.items():
            for kind in kinds:
                kind.slots[row] = kind.slots_in(self._free[row])
        for kind in self._kinds:
            kind.total = kind.empty = sum(kind.slots.values())

    @property
    def is_enough(self) -> bool:
        return all(kind.total >= kind.required for kind in self._kinds)

    def widen(self) -> bool:
        """Double the demand, as far as the rows allow; whether it increased."""
        before = [kind.required for kind in self._kinds]
        for kind in self._kinds:
            kind.required = max(min(2 * kind.required, kind.empty), kind.required)
        return before != [kind.required for kind in self._kinds]

    def put_back(self, unit: VictimUnit) -> None:
        self._move(unit, -1)

    def take_away(self, unit: VictimUnit) -> None:
        self._move(unit, 1)

    def _move(self, unit: VictimUnit, sign: int) -> None:
        for row, amounts in self._takes(unit):
            free = self._free[row]
            for k, amount in enumerate(amounts):
                free[k] += sign * amount
            for kind in self._on[row]:
                slots = kind.slots_in(free)
                kind.total += slots - kind.slots[row]
                kind.slots[row] = slots

    def _takes(self, unit: VictimUnit) -> Iterable[tuple[int, tuple[int, ...]]]:
        """(row, amounts) of the pods of a unit that are on followed rows."""
        for info in unit.pods:
            if info.row in self._on:
                amounts = self._amounts.get(info.cls)
                if amounts is None:
                    amounts = self._amounts[info.cls] = self._of_class(info.cls)
                yield info.row, amounts

    def _of_class(self, cls: PodClass) -> tuple[int, ...]:
        nodes = self._cluster.nodes
        return tuple(1 if at == POD_PLACE else _held(cls, at, nodes) for at in self._axes)


def is_hopeless(
    cluster: Cluster, wants: Sequence[Want], priority: int, leaving: Iterable[PodInfo]
) -> bool:
    """Whether there is not enough even without all pods of lower priority, and without `leaving`.
    Vectorized, because it is called whenever a waiting group is tried.
    """
    by_priority, nodes = cluster.singleton(PodsByPriority), cluster.nodes
    by_priority.catch_up(in_one_go=True)
    axes = _axes(wants)
    free = left_of(NodeView(cluster.nodes), axes)
    amounts = np.array(
        [
            np.where(by_priority.priorities < priority, 1, 0)
            if at == POD_PLACE
            else np.where(by_priority.priorities < priority, by_priority.amounts[at], 0)
            for at in axes
        ],
        dtype=np.int64,
    ).reshape(len(axes), len(by_priority.priorities))
    amounts[:, 0] = 0  # empty slots
    for start in range(0, nodes.height, ROWS_AT_ONCE):
        rows = np.arange(start, min(start + ROWS_AT_ONCE, nodes.height))
        free[:, rows] += amounts[:, by_priority.bulks[by_priority.places(rows)]].sum(axis=1)
    for info in leaving:
        if info.pod.priority >= priority:
            for k, at in enumerate(axes):
                free[k, info.row] += 1 if at == POD_PLACE else _held(info.cls, at, nodes)
    beyond = [row for row in nodes.pod_amounts.rows_beyond if row < nodes.height]
    free[:, beyond] = np.iinfo(np.int64).max
    return any(_slots(want, axes, free) < want.required for want in wants)


def _slots(want: Want, axes: Sequence[int], free: I64) -> int:
    rows = np.fromiter(want.rows, dtype=np.int64)
    most = np.full(len(rows), want.most, dtype=np.int64)
    found = slots_of(most, [want.takes.get(at, 0) for at in axes], free[:, rows])
    return int(np.maximum(found, 0).sum())


def _axes(wants: Sequence[Want]) -> list[int]:
    return sorted({at for want in wants for at, need in want.takes.items() if need})


def _held(cls: PodClass, at: int, nodes: NodeTable) -> int:
    return cls.accounted.get(nodes.resources.values[at + 1], 0)
