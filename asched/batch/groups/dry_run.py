"""Dry runs of waiting gangs: find out by counting whether a gang certainly has no places now.

    totals    the needs of the gang's cheapest pods, and the free amounts of all nodes together
    bounds    the counts of `batch/placement/bounds.py`, of nodes that accept the pods

Both check less than all rules, so an attempt at a refuted gang would fail; a gang that is not
refuted is tried, and so is a gang whose pods might evict other pods.

Bounds  PODS_MAX pods of recently checked gangs are cached, with GANG_PODS more for each gang;
        results are cached for equal gangs while nothing changes that a filter reads.
"""

from collections import Counter, OrderedDict
from collections.abc import Hashable, Mapping
from itertools import accumulate
from typing import Final, NamedTuple

from asched.batch.groups import board as group_board
from asched.batch.groups import problem as group_problem
from asched.batch.groups.attempt import GroupAttempt
from asched.batch.placement import bounds
from asched.core.cluster.gang import count_missing
from asched.core.cluster.nodes import FIXED_RESOURCES
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.framework.order_free import POD_PLACE, OrderFree, takes_of
from asched.core.framework.runner import Runner
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
            description = group_problem.described(
                group_board.GroupBoard(context, group, needed, None, 0)
            )
            self._found[key] = description is not None and bool(
                bounds.refuted(description.problem, description.names, description.resources)
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
    view = NodeView(context.cluster.nodes)
    if place == POD_PLACE:
        left = view.allowed_pods - view.pod_count
    else:
        left = view.allocatable(place) - view.requested(place)
    return sum(amount for amount in left.tolist() if amount > 0)
