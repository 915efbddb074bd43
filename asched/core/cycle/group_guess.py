"""Placements that take a whole group for sure, or do not, by counting slots: no pod is tried.

Pods of one class of which only amounts and single nodes matter fill a placement in any order: all
of them fit if and only if its rows have as many slots between them. That replaces trials of
placements of which only one is chosen; it is then tried as ever, and if that comes out otherwise,
every placement is tried. Where any other rule has a say, or somebody might have to leave, all are
tried.

Bounds  linear in the nodes.
"""

from collections.abc import Sequence

import numpy as np

from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.group import GroupAttempt
from asched.core.cycle.group_board import ROWS_A_STEP, STATE_STEPS, GroupBoard
from asched.core.framework.order_free import OrderFree
from asched.core.framework.placements import Divisions, Placement
from asched.core.framework.results.nominated_filter import ignores_pods
from asched.core.framework.status import PointError
from asched.core.gang.problem import I64
from asched.core.state.budget import OutOfTurn
from asched.core.state.gang import gang_of


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
    slots = _slots(context, group) if is_wanted and len(placements) > 1 else None
    if slots is None:
        return unknown
    size, least = len(group.attempts), _least(context, group)
    parts = context.cluster.singleton(Divisions).of(placements)
    if parts is not None:
        counts = parts.sums(slots).tolist()
    else:
        counts = [0 if one.rows is None else int(slots[one.rows].sum()) for one in placements]
    is_certain = max(counts) >= size and not _makes_room(context, group)
    return [
        True if count >= size else False if is_certain and count < least else None
        for count in counts
    ]


def _least(context: SchedulerContext, group: GroupAttempt) -> int:
    """So many of the attempts must have places."""
    gang = gang_of(context.cluster, group.key)
    placed = len(context.cluster.pod_groups.get(group.key).placed)
    return max(gang.min_count - placed, 1) if gang is not None else 1


def _makes_room(context: SchedulerContext, group: GroupAttempt) -> bool:
    """Whether anybody could be asked to leave for one of the pods."""
    plugins = group.runner.profile.post_filters
    if not all(plugin.spares_equals for plugin in plugins):
        return True
    return bool(plugins) and min(context.cluster.priorities, default=0) < group.pod.priority


def _slots(context: SchedulerContext, group: GroupAttempt) -> I64 | None:
    """int64[N]: how many pods of the group each row takes; None if that cannot be counted."""
    if group.consults or group.nominated or len(context.nominator):
        return None
    scorers = group.runner.profile.placement_scorers
    if not all(scorer.plugin.ignores_nodes for scorer in scorers):
        return None
    if len(group.attempts) < _least(context, group):
        return None
    board = GroupBoard(context, group, 0, None, 0)
    context.cluster.budget.note(STATE_STEPS + context.cluster.nodes.height // ROWS_A_STEP)
    if len(board.members) > 1:
        return None
    try:
        feasible = board.feasible(0)
    except (OutOfTurn, PointError):
        return None  # a trial says it better
    pod, plugins = board.example(0), board.state(0).active_plugins
    are_countable = all(
        ignores_pods(one.plugin) or (isinstance(one.plugin, OrderFree) and one.plugin.takes(pod))
        for one in plugins.filters
    )
    if plugins.reserves or not are_countable:
        return None
    return np.where(feasible, board.slots(0), 0)
