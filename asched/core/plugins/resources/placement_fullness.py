"""How full placements would be.

For parts that share no nodes, requested and allocatable amounts are
updated row by row, and the points of a part are valid until one of its rows changes: after a gang
fills a rack, only that rack is recomputed for the next gang.

Bounds  POINTS_MAX kinds of gangs, the least recently used is dropped; sums as in `part_sums.py`.
Source  kubernetes/kubernetes v1.36 plugins/noderesources/resource_allocation.go (scorePlacement)
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
from msgspec import Struct

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import Aspect, NodeTable
from asched.core.cluster.pods import PodClass, PodInfo
from asched.core.cluster.view import NodeView
from asched.core.config.args import ResourceSpec
from asched.core.framework.placements import Assignments, Divisions, RepeatedPlacements
from asched.core.framework.points import I64
from asched.core.framework.results.part_sums import KeptSums, OfRow, PartSums
from asched.core.model.lru import Lru
from asched.core.model.quantity import INT64_MAX
from asched.core.plugins.resources.scores import (
    Scored,
    most_allocated,
    most_allocated_one,
    node_amounts,
    scored,
)

#: A hundred times twice as much are 64 bits.
AMOUNT_MAX: Final = INT64_MAX // 200
#: A guess: jobs that wait at the same time have fewer sizes.
POINTS_MAX: Final = 16
READS: Final = int(Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE)


class _Points(Struct):
    """`points` of each part, as `sums` were at a version and an end of its log."""

    sums: PartSums
    full_version: int
    seen: int
    points: list[int]


class PlacementPoints:
    """`amounts_of`: requests of a pod of a class as far as scores consider them."""

    def __init__(
        self,
        cluster: Cluster,
        resources: Sequence[ResourceSpec],
        amounts_of: Callable[[PodClass], Mapping[str, int]],
    ) -> None:
        self._nodes = cluster.nodes
        self._resources = resources
        self._amounts_of = amounts_of
        self._divisions = cluster.singleton(Divisions)
        self._sums = KeptSums()
        self._points: Lru[Scored, _Points] = Lru(POINTS_MAX)

    def of(self, assignments: Assignments) -> int:
        """The share of all nodes of a placement that would be in use, by the configured resources.
        Devices do not count.
        """
        wanted = self._wanted(assignments.pods)
        rows = np.flatnonzero(assignments.placement.mask(self._nodes)).astype(np.int32)
        view = NodeView(self._nodes, rows)
        requested, allocatable = node_amounts(view, wanted.names, _no_devices, nonzero=True)
        held = _sums(np.where(allocatable > 0, requested, 0))
        return _share(held, _sums(allocatable), wanted)

    def of_parts(self, candidates: Sequence[Assignments]) -> Sequence[int] | None:
        """The same for parts that share no nodes, for the same pods; None if the parts overlap, or
        if their sums exceed 64 bits.
        """
        if not isinstance(candidates, RepeatedPlacements):
            pods = candidates[0].pods
            if any(candidate.pods is not pods for candidate in candidates):
                return None
            candidates = RepeatedPlacements([candidate.placement for candidate in candidates], pods)
        parts = self._divisions.of(candidates.placements)
        if parts is None:
            return None
        wanted = self._wanted(candidates.pods)
        names, nodes = wanted.names, self._nodes
        kept = self._sums.get(names, parts, lambda: PartSums(nodes, parts, READS))
        sums = kept.of(
            partial(_held_and_offered, names),
            nodes.resources.end,
            of_row=_of_rows(nodes, [nodes.find_resource(name) for name in names]),
        )
        if sums is None:
            return None
        known = self._points.get(wanted)
        moved = None
        if known is not None and known.sums is kept and known.full_version == kept.full_version:
            moved = kept.changed_parts.rows(known.seen, 1)
        if known is None or moved is None:
            known = _Points(kept, kept.full_version, 0, _of_all(sums, wanted))
            self._points.put(wanted, known)
        for part in moved or ():
            both = sums[:, part].tolist()
            known.points[part] = _share(both[: len(names)], both[len(names) :], wanted)
        known.seen = kept.changed_parts.end
        return known.points

    def _wanted(self, pods: Sequence[tuple[PodInfo, str]]) -> Scored:
        """Total requests of all pods of a trial."""
        requested: dict[str, int] = {}
        of_class: dict[PodClass, int] = {}
        for pod, _ in pods:
            of_class[pod.cls] = of_class[pod.cls] + 1 if pod.cls in of_class else 1
        for cls, count in of_class.items():
            for name, amount in self._amounts_of(cls).items():
                requested[name] = requested.get(name, 0) + amount * count
        return scored(self._resources, requested)


def _of_all(sums: I64, wanted: Scored) -> list[int]:
    held, offered = sums[: len(wanted.names)], sums[len(wanted.names) :]
    if max(int(sums.max(initial=0)), *wanted.plain) <= AMOUNT_MAX:
        points = most_allocated(held + wanted.amounts, offered, wanted.weights)
        found: list[int] = points.tolist()
        return found
    both = zip(held.T.tolist(), offered.T.tolist(), strict=True)
    return [_share(held, offered, wanted) for held, offered in both]


def _share(held: Sequence[int], offered: Sequence[int], wanted: Scored) -> int:
    with_pods = [have + amount for have, amount in zip(held, wanted.plain, strict=True)]
    return most_allocated_one(with_pods, offered, wanted.plain_weights)


def _held_and_offered(names: Sequence[str], nodes: NodeView) -> I64:
    """int64[2R, M]: what is used of each resource where it is offered, then what is offered."""
    requested, allocatable = node_amounts(nodes, names, _no_devices, nonzero=True)
    return np.concatenate((np.where(allocatable > 0, requested, 0), allocatable))


def _of_rows(nodes: NodeTable, places: Sequence[int | None]) -> OfRow:
    """The same for one row at a time; `places` of the resources."""
    read = nodes.columns.read
    allocatable = read("allocatable").item
    requested, nonzero = read("requested").item, read("nonzero").item

    def amounts(row: int) -> list[int]:
        offered = [0 if at is None else allocatable(at, row) for at in places]
        held = [
            0 if at is None or most <= 0 else (nonzero(at, row) if at < 2 else requested(at, row))
            for at, most in zip(places, offered, strict=True)
        ]
        return held + offered

    return amounts


def _sums(amounts: I64) -> list[int]:
    """The sum of each row of int64[R, M], however large."""
    limit = INT64_MAX // max(amounts.shape[1], 1)
    is_small = int(amounts.max(initial=0)) <= limit
    found: list[int] = (amounts if is_small else amounts.astype(np.object_)).sum(axis=1).tolist()
    return found


def _no_devices(_resource: str, nodes: NodeView) -> tuple[I64, I64]:
    nothing = np.zeros(nodes.size, dtype=np.int64)
    return nothing, nothing
