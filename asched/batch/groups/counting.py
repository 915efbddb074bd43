"""What counting shows: gangs that certainly have no places now, and placements that certainly take
a whole group, or do not.

Dry runs of waiting gangs:

    totals    the needs of the gang's cheapest pods, and the free amounts of all nodes together
    bounds    the counts of `batch/placement/bounds.py`, of nodes that accept the pods

Both check less than all rules, so an attempt at a refuted gang would fail; a gang that is not
refuted is tried, and so is a gang whose pods might evict other pods.

Bounds  PODS_MAX pods of recently checked gangs are cached, with GANG_PODS more for each gang;
        results are cached for equal gangs while nothing changes that a filter reads.
"""

from collections import Counter, OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from asched.batch.groups.attempt import GroupAttempt
from asched.batch.groups.board import ROWS_A_STEP, STATE_STEPS, GroupBoard, described
from asched.batch.placement.bounds import I64, refuted
from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.gang import count_missing
from asched.core.cluster.nodes import FIXED_RESOURCES, Aspect, NodeTable
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.framework.order_free import POD_PLACE, OrderFree, left_of, slots_of, takes_of
from asched.core.framework.placements import Divisions, Placement
from asched.core.framework.results.classes import ClassState
from asched.core.framework.results.nominated import ignores_pods
from asched.core.framework.results.part_sums import KeptSums, OfRow, PartSums
from asched.core.framework.runner import Runner
from asched.core.framework.status import PointError
from asched.core.model.pod import Pod
from asched.core.queue.queued import QueuedPod

#: Some 50 MB. With more pods in a cycle none is in the cache, and each dry run costs six times as
#: much.
PODS_MAX: Final = 200_000
#: The memory of a gang beside its pods, counted in pods.
GANG_PODS: Final = 4
#: Resources of every node, each at a fixed index on axis R.
PLACES: Final = (POD_PLACE, *range(len(FIXED_RESOURCES)))


class Waiting(NamedTuple):
    """The unplaced pods of a gang. `looks`: the number of pods by class and priority; `sums`: by
    resource, the needs of the cheapest 1, 2, 3 ... pods; `most_important`: the highest priority of
    pods that may evict others, None if none may; `is_beyond`: counting does not suffice for them.
    """

    pods: tuple[Pod, ...]
    read_at: Hashable
    infos: tuple[PodInfo, ...]
    looks: frozenset[tuple[Hashable, int]]
    sums: Mapping[int, list[int]]
    most_important: int | None
    is_beyond: bool


class GangDryRuns:
    def __init__(self) -> None:
        self._known: OrderedDict[str, Waiting] = OrderedDict()
        self._pods = 0  # size of the cache, in pods
        self._found: dict[Hashable, bool] = {}
        self._free: dict[int, int] = {}

    def forget(self) -> None:
        """Drop results, after a change that filters read."""
        self._found.clear()
        self._free.clear()

    def has_no_places(self, context: SchedulerContext, runner: Runner, queued: QueuedPod) -> bool:
        """Whether an attempt at all pods of the gang is certain to fail. Raises PointError,
        OutOfTurn.
        """
        cluster, key = context.cluster, queued.gang
        if cluster.pod_groups.tree_of(key) is not None:
            return False
        members, needed = cluster.pod_groups.get(key), max(count_missing(cluster, key), 1)
        if needed > len(members.unplaced) or not context.gang_search_steps:
            return False
        most = max(pod.priority for pod in members.unplaced.values())
        if context.extensions.yields_to(most):
            return False  # held places may give way to it
        waiting = self._waiting(context, runner, key)
        nominator, above = context.nominator, waiting.most_important
        if waiting.is_beyond or (nominator and any(map(nominator.node_of, members.unplaced))):
            return False
        if above is not None and context.gangs.makes_room and cluster.priorities:
            return False  # then the priority of groups matters
        if above is not None and any(priority < above for priority in cluster.priorities):
            return False
        return self._is_short(context, waiting, needed) or self._is_refuted(
            context, runner, queued, waiting, needed
        )

    def _waiting(self, context: SchedulerContext, runner: Runner, key: str) -> Waiting:
        cluster = context.cluster
        pods = tuple(cluster.pod_groups.get(key).unplaced.values())
        read_at = runner, cluster.epoch, cluster.topology.terms_generation
        waiting = self._known.get(key)
        if waiting is None or waiting.read_at != read_at or waiting.pods != pods:
            if waiting is not None:
                self._pods -= len(waiting.pods) + GANG_PODS
            waiting = self._known[key] = _read(context, runner, pods, read_at)
            self._pods += len(pods) + GANG_PODS
            while self._pods > PODS_MAX and len(self._known) > 1:
                self._pods -= len(self._known.popitem(last=False)[1].pods) + GANG_PODS
        self._known.move_to_end(key)
        return waiting

    def _is_short(self, context: SchedulerContext, waiting: Waiting, needed: int) -> bool:
        """Whether all nodes together have too little of a resource."""
        for place, sums in waiting.sums.items():
            if place not in self._free:
                self._free[place] = _free(context, place)
            if sums[needed - 1] > self._free[place]:
                return True
        return False

    def _is_refuted(
        self,
        context: SchedulerContext,
        runner: Runner,
        queued: QueuedPod,
        waiting: Waiting,
        needed: int,
    ) -> bool:
        key = needed, waiting.looks
        if key not in self._found:
            attempts = [Attempt(0, queued, info, runner, 0.0) for info in waiting.infos]
            group = GroupAttempt(queued.gang, attempts, 0, queued.pod, 0.0)
            description = described(GroupBoard(context, group, needed, None, 0))
            self._found[key] = description is not None and bool(
                refuted(description.problem, description.names, description.resources)
            )
        return self._found[key]


def _read(
    context: SchedulerContext, runner: Runner, pods: tuple[Pod, ...], read_at: Hashable
) -> Waiting:
    infos = tuple([context.cluster.classes.info_of(pod) for pod in pods])
    states = [runner.cache.state_of(info) for info in infos]
    evictors = [pod.priority for pod in pods if pod.spec.preemption_policy != "Never"]
    takers = [
        f.plugin
        for f in runner.profile.filters
        if isinstance(f.plugin, OrderFree) and type(f.plugin).takes is not OrderFree.takes
    ]
    amounts: dict[int, list[int]] = {}
    for info in infos:
        needs = takes_of(takers, info)
        for place in PLACES:
            amounts.setdefault(place, []).append(needs.get(place, 0))
    looks = Counter((s.number, i.pod.priority) for s, i in zip(states, infos, strict=True))
    return Waiting(
        pods,
        read_at,
        infos,
        frozenset(looks.items()),
        {place: list(accumulate(sorted(of_all))) for place, of_all in amounts.items()},
        max(evictors, default=None),
        any(
            info.pod.spec.scheduler_name != runner.profile.scheduler_name
            or info.pod.status.nominated_node_name
            or runner.consults(info)
            or not state.active_plugins.keeps_all
            or not runner.treats_equals_alike(state.active_plugins)
            for info, state in zip(infos, states, strict=True)
        ),
    )


def _free(context: SchedulerContext, place: int) -> int:
    """The free amount of all nodes together, as an exact integer."""
    left = left_of(NodeView(context.cluster.nodes), (place,))[0]
    return sum(amount for amount in left.tolist() if amount > 0)


# Find placements that certainly take a whole group, or certainly do not, by counting slots.
#
# Equal pods for which only amounts and single nodes matter may fill a placement in any order: all
# of them fit if and only if its rows have as many slots together. That replaces the trials of
# placements of which only one is chosen. The chosen placement is tried as usual, and if the trial
# fails, all placements are tried. If any other rule matters, or pods might be evicted, all are
# tried, too.
#
# Bounds  linear in the nodes.

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
    if not all(plugin.spares_equals for plugin in plugins):
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
        fitting = group.runner.fitting(pod)
        is_refused = len(fitting.refused.rows) > 0
    except (OutOfTurn, PointError):
        return None  # the trial reports it
    state, most = fitting.state, len(group.attempts)
    needs = None if state.active_plugins.reserves else _needs(state, pod)
    if needs is None:
        return None
    cluster = context.cluster
    parts = cluster.singleton(Divisions).of(placements)
    if parts is not None and not is_refused and fitting.rejection is None:
        part_sums = cluster.singleton(_GuessSums).get(
            (state.number, most),
            parts,
            lambda: PartSums(cluster.nodes, parts, READS, state.mask.turned),
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
        if isinstance(filterer.plugin, OrderFree) and filterer.plugin.takes(pod):
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
    """Cached sums of slots. Made by `Cluster.singleton`."""

    def __init__(self, _cluster: Cluster) -> None:
        super().__init__()
