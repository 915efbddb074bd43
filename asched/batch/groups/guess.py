"""Placements that take a whole group for sure, or do not, by counting slots: no pod is tried.

Pods of one class of which only amounts and single nodes matter fill a placement in any order: all
of them fit if and only if its rows have as many slots between them. That replaces trials of
placements of which only one is chosen; it is then tried as ever, and if that comes out otherwise,
every placement is tried. Where any other rule has a say, or somebody might have to leave, all are
tried.

Bounds  linear in the nodes.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from asched.batch.groups.attempt import GroupAttempt
from asched.batch.groups.board import ROWS_A_STEP, STATE_STEPS, GroupBoard, free_of
from asched.batch.placement.problem import I64
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.order_free import POD_PLACE, OrderFree, takes_of
from asched.core.framework.placements import Divisions, Placement
from asched.core.framework.results.classes import ClassState
from asched.core.framework.results.nominated_filter import ignores_pods
from asched.core.framework.results.part_sums import KeptSums, OfRow, PartSums
from asched.core.framework.status import PointError
from asched.core.state.budget import OutOfTurn
from asched.core.state.cluster import Cluster
from asched.core.state.gang import count_missing
from asched.core.state.nodes import Aspect, NodeTable
from asched.core.state.pods import PodInfo
from asched.core.state.view import NodeView

#: What a row has left, and whether it is there.
READS: Final = int(Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE)


def guess(
    context: SchedulerContext,
    group: GroupAttempt,
    placements: Sequence[Placement],
    *,
    is_wanted: bool = True,
) -> list[bool | None]:
    """What can be told of each placement without a trial: all pods of the group have a place there
    as things are (True), or they have not, nobody could make room, and others fit (False).
    """
    unknown: list[bool | None] = [None] * len(placements)
    if not is_wanted or len(placements) <= 1:
        return unknown
    size, least = len(group.attempts), _least(context, group)
    counts = _counts(context, group, placements) if size >= least else None
    if counts is None:
        return unknown
    if min(counts) >= size:
        return [True] * len(counts)
    is_certain = max(counts) >= size and not _makes_room(context, group)
    return [
        True if count >= size else False if is_certain and count < least else None
        for count in counts
    ]


def _least(context: SchedulerContext, group: GroupAttempt) -> int:
    """So many of the attempts must have places."""
    return max(count_missing(context.cluster, group.key), 1)


def _makes_room(context: SchedulerContext, group: GroupAttempt) -> bool:
    """Whether anybody could be asked to leave for one of the pods."""
    plugins = group.runner.profile.post_filters
    if not all(plugin.spares_equals for plugin in plugins):
        return True
    return bool(plugins) and context.cluster.priorities.are_below(group.pod.priority)


def _counts(
    context: SchedulerContext, group: GroupAttempt, placements: Sequence[Placement]
) -> list[int] | None:
    """How many pods of the group each placement takes; None if that cannot be counted."""
    if group.consults or group.nominated or context.nominator:
        return None
    for scorer in group.runner.profile.placement_scorers:
        if not scorer.plugin.ignores_nodes:
            return None
    pod = group.attempts[0].info
    cls, priority = pod.cls, pod.pod.priority
    for one in group.attempts:
        if one.info.cls is not cls or one.info.pod.priority != priority:
            return None
    context.cluster.budget.note(STATE_STEPS)
    try:
        fitting = group.runner.fitting(pod)
        is_refused = len(fitting.refused.rows) > 0
    except (OutOfTurn, PointError):
        return None  # a trial says it better
    state, most = fitting.state, len(group.attempts)
    needs = None if state.active_plugins.reserves else _needs(state, pod)
    if needs is None:
        return None
    cluster = context.cluster
    parts = cluster.singleton(Divisions).of(placements)
    if parts is not None and not is_refused and fitting.rejection is None:
        kept = cluster.singleton(_GuessSums).get(
            (state.number, most),
            parts,
            lambda: PartSums(cluster.nodes, parts, READS, state.mask.turned),
        )
        sums = kept.of(
            partial(_slots, state, needs, most),
            tuple(needs.items()),
            of_row=_slots_of_rows(cluster.nodes, state, needs, most),
        )
        assert sums is not None  # there are not so many pods
        counts: list[int] = sums[0].tolist()
        return counts
    cluster.budget.note(cluster.nodes.height // ROWS_A_STEP)
    board = GroupBoard(context, group, 0, None, 0)
    slots = np.where(board.feasible(0), board.slots(0), 0)
    return [0 if one.rows is None else int(slots[one.rows].sum()) for one in placements]


def _needs(state: ClassState, pod: PodInfo) -> Mapping[int, int] | None:
    """As `takes_of`; None if any filter reads more of the pods on a row than that."""
    taking = 0
    for one in state.active_plugins.filters:
        if isinstance(one.plugin, OrderFree) and one.plugin.takes(pod):
            taking += 1
        elif not ignores_pods(one.plugin):
            return None
    return takes_of([f.plugin for f in state.active_plugins.filters], pod) if taking else {}


def _slots(state: ClassState, needs: Mapping[int, int], most: int, nodes: NodeView) -> I64:
    """int64[1, M]: of at most so many pods of the class, how many each row takes."""
    feasible = state.feasible if nodes.rows is None else state.feasible[nodes.rows]
    found = np.where(feasible, most, 0)
    for need, free in zip(needs.values(), free_of(nodes, list(needs)), strict=True):
        np.minimum(found, free // need, out=found)
    return found.reshape(1, -1)


def _slots_of_rows(
    nodes: NodeTable, state: ClassState, needs: Mapping[int, int], most: int
) -> OfRow:
    """The same of one row at a time."""
    read, mask, items = nodes.columns.read, state.mask, tuple(needs.items())
    allowed, count = read("allowed_pods").item, read("pod_count").item
    allocatable, requested = read("allocatable").item, read("requested").item

    def slots(row: int) -> tuple[int]:
        if not mask.has(row):
            return (0,)
        found = most
        for at, need in items:
            if at == POD_PLACE:
                free = allowed(row) - count(row)
            else:
                free = allocatable(at, row) - requested(at, row)
            if free < found * need:
                found = free // need if free > 0 else 0
        return (found,)

    return slots


class _GuessSums(KeptSums):
    """For `Cluster.singleton`."""

    def __init__(self, _cluster: Cluster) -> None:
        super().__init__()
