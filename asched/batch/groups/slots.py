"""Find placements that certainly take a whole group, or certainly do not, by counting slots.

Equal pods for which only amounts and single nodes matter may fill a placement in any order: all
of them fit if and only if its rows have as many slots together. That replaces the trials of
placements of which only one is chosen. The chosen placement is tried as usual, and if the trial
fails, all placements are tried. If any other rule matters, or pods might be evicted, all are
tried, too.

Bounds  linear in the nodes.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from asched.batch.groups.attempt import GroupAttempt
from asched.batch.groups.board import ROWS_A_STEP, STATE_STEPS, GroupBoard
from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.gang import count_missing
from asched.core.cluster.nodes import Aspect, NodeTable
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.order_free import POD_PLACE, left_of, slots_of, takes_of
from asched.core.framework.placements import Divisions, Placement
from asched.core.framework.results.class_state import ClassState
from asched.core.framework.results.part_sums import KeptSums, OfRow, PartSums
from asched.core.framework.results.pods_read import ignores_pods
from asched.core.framework.status import PointError
from asched.core.model.arrays import I64

#: The aspects of rows that slots depend on.
READS: Final = int(Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE)


def guess(
    context: SchedulerContext,
    group: GroupAttempt,
    placements: Sequence[Placement],
    *,
    is_wanted: bool = True,
) -> list[bool | None]:
    """For each placement: True if all pods of the group fit there now; False if they do not, no
    room can be made, and another placement fits; None if only a trial can find out.
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
    """The number of attempts that must have places."""
    return max(count_missing(context.cluster, group.key), 1)


def _makes_room(context: SchedulerContext, group: GroupAttempt) -> bool:
    """Whether pods could be evicted for one of the pods."""
    plugins = group.runner.profile.post_filters
    if not all(plugin.evicts_only_lower for plugin in plugins):
        return True
    return bool(plugins) and context.cluster.priorities.are_below(group.pod.priority)


def _counts(
    context: SchedulerContext, group: GroupAttempt, placements: Sequence[Placement]
) -> list[int] | None:
    """The number of pods of the group that each placement takes; None if it cannot be counted."""
    if group.consults or group.nominated or context.nominator:
        return None
    for scorer in group.runner.profile.placement_scorers:
        if not scorer.plugin.ignores_nodes:
            return None
    pod = group.attempts[0].info
    cls, priority = pod.cls, pod.pod.priority
    for attempt in group.attempts:
        if attempt.info.cls is not cls or attempt.info.pod.priority != priority:
            return None
    context.cluster.budget.note(STATE_STEPS)
    try:
        dry_run = group.runner.dry_run(pod)
        is_refused = len(dry_run.refused.rows) > 0
    except (OutOfTurn, PointError):
        return None  # the trial reports it
    state, most = dry_run.state, len(group.attempts)
    needs = None if state.active_plugins.reserves else _needs(state, pod)
    if needs is None:
        return None
    cluster = context.cluster
    parts = cluster.singleton(Divisions).of(placements)
    if parts is not None and not is_refused and dry_run.rejection is None:
        part_sums = cluster.singleton(_GuessSums).get(
            (state.number, most),
            parts,
            lambda: PartSums(cluster.nodes, parts, READS, state.mask.changed_rows),
        )
        sums = part_sums.of(
            partial(_slots, state, needs, most),
            tuple(needs.items()),
            of_row=_slots_of_rows(cluster.nodes, state, needs, most),
        )
        assert sums is not None  # the number of pods is too small for an overflow
        counts: list[int] = sums[0].tolist()
        return counts
    cluster.budget.note(cluster.nodes.height // ROWS_A_STEP)
    board = GroupBoard(context, group, 0, None, 0)
    slots = np.where(board.feasible(0), board.slots(0), 0)
    return [0 if part.rows is None else int(slots[part.rows].sum()) for part in placements]


def _needs(state: ClassState, pod: PodInfo) -> Mapping[int, int] | None:
    """As `takes_of`; None if a filter reads more of the pods on a row than their amounts."""
    taking = 0
    for filterer in state.active_plugins.filters:
        if takes_of((filterer.plugin,), pod):
            taking += 1
        elif not ignores_pods(filterer.plugin):
            return None
    return takes_of([f.plugin for f in state.active_plugins.filters], pod) if taking else {}


def _slots(state: ClassState, needs: Mapping[int, int], most: int, nodes: NodeView) -> I64:
    """int64[1, M]: the number of pods of the class that each row takes, at most `most`."""
    feasible = state.feasible if nodes.rows is None else state.feasible[nodes.rows]
    free = np.maximum(left_of(nodes, list(needs)), 0)
    return slots_of(np.where(feasible, most, 0), needs.values(), free).reshape(1, -1)


def _slots_of_rows(
    nodes: NodeTable, state: ClassState, needs: Mapping[int, int], most: int
) -> OfRow:
    """As `_slots`, for one row at a time."""
    read, mask, items = nodes.columns.read, state.mask, tuple(needs.items())
    allowed, count = read("allowed_pods").item, read("pod_count").item
    allocatable, requested = read("allocatable").item, read("requested").item

    def slots(row: int) -> tuple[int]:
        if not mask.has(row):
            return (0,)
        fitting = most
        for at, need in items:
            if at == POD_PLACE:
                free = allowed(row) - count(row)
            else:
                free = allocatable(at, row) - requested(at, row)
            if free < fitting * need:
                fitting = free // need if free > 0 else 0
        return (fitting,)

    return slots


class _GuessSums(KeptSums):
    """Cached sums of slots. Made by `Cluster.singleton`."""

    def __init__(self, _cluster: Cluster) -> None:
        super().__init__()
