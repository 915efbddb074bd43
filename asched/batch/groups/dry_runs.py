"""Dry runs of waiting gangs: which certainly have no places now.

    totals    the needs of the gang's cheapest pods, and the free amounts of all nodes together
    bounds    the counts of `batch/placement/bounds.py`, of nodes that accept the pods

Both check less than all rules, so an attempt at a refuted gang would fail; a gang that is not
refuted is tried, and so is a gang whose pods might evict other pods.

Bounds  PODS_MAX pods of recently checked gangs are cached, with GANG_PODS more for each gang;
        results are cached for equal gangs while nothing changes that a filter reads.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from itertools import accumulate
from math import inf
from typing import Final, NamedTuple

from asched.batch.groups.attempt import GroupAttempt
from asched.batch.groups.board import GroupBoard
from asched.batch.groups.description import described
from asched.batch.placement.bounds import refuted
from asched.core.cluster.gang import count_missing
from asched.core.cluster.nodes import FIXED_RESOURCES
from asched.core.cluster.pod_groups import is_coscheduled
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.order_free import POD_PLACE, OrderFree, left_of, takes_of
from asched.core.framework.runner import Runner
from asched.core.model.kinds import COMPOSITE_POD_GROUP, POD_GROUP
from asched.core.model.lru import Lru
from asched.core.model.pod import Pod
from asched.core.model.workload import PodGroup
from asched.core.queue.queued import QueuedPod

#: Some 50 MB. With more pods in a cycle none is in the cache, and each dry run costs six times as
#: much.
PODS_MAX: Final = 200_000
#: The memory of a gang in addition to its pods, counted in pods.
GANG_PODS: Final = 4
#: With more PodGroups one of them may be less important than any gang.
WHOLE_MAX: Final = 1_000
#: Resources of every node, each at a fixed index on axis R.
PLACES: Final = (POD_PLACE, *range(len(FIXED_RESOURCES)))


class Waiting(NamedTuple):
    """The unplaced pods of a gang. `counts`: the number of pods by class and priority; `sums`: by
    resource, the needs of the cheapest 1, 2, 3 ... pods; `most_important`: the highest priority of
    pods that may evict others, None if none may; `is_beyond`: counting does not suffice for them.
    """

    pods: tuple[Pod, ...]
    read_at: Hashable
    infos: tuple[PodInfo, ...]
    counts: frozenset[tuple[Hashable, int]]
    sums: Mapping[int, list[int]]
    most_important: int | None
    is_beyond: bool


class GangDryRuns:
    def __init__(self) -> None:
        self._version: Hashable = None
        self._known: Lru[str, Waiting] = Lru(PODS_MAX)
        self._results: dict[Hashable, bool] = {}
        self._free: dict[int, int] = {}
        #: the lowest priority of a group that is evicted as a whole; None until it is needed
        self._lowest_whole: float | None = None

    def has_no_places(
        self, context: SchedulerContext, runner: Runner, queued: QueuedPod, version: Hashable
    ) -> bool:
        """Whether an attempt at all pods of the gang is certain to fail. `version` changes with all
        that filters read. Raises PointError, OutOfTurn.
        """
        self._renew(version)
        cluster, key = context.cluster, queued.gang
        if cluster.pod_groups.tree_of(key) is not None:
            return False
        members, needed = cluster.pod_groups.get(key), max(count_missing(cluster, key), 1)
        if needed > len(members.unplaced) - len(members.foreign) or not context.gang_search_steps:
            return False
        most = max(pod.priority for pod in members.unplaced.values())
        if context.extensions.yields_to(most):
            return False  # held places may give way to it
        waiting = self._waiting(context, runner, key)
        above = waiting.most_important
        if not self._is_countable(context, waiting):
            return False
        if above is not None and self._may_evict(context, key, above):
            return False
        return self._is_too_large(context, runner, queued, waiting, needed)

    def may_start(
        self, context: SchedulerContext, runner: Runner, queued: QueuedPod, version: Hashable
    ) -> bool:
        """Whether the gang has places by counting, without evictions and held places; False if
        counting does not suffice. Raises as `has_no_places`.
        """
        self._renew(version)
        key, groups = queued.gang, context.cluster.pod_groups
        if groups.tree_of(key) is not None:
            return False
        needed = max(count_missing(context.cluster, key), 1)
        waiting = self._waiting(context, runner, key)
        if needed > len(waiting.pods) or not self._is_countable(context, waiting):
            return False
        return not self._is_too_large(context, runner, queued, waiting, needed)

    def _is_countable(self, context: SchedulerContext, waiting: Waiting) -> bool:
        """Whether counting says something about these pods: none is nominated, and no extender or
        plugin of nodes of its own choice takes part.
        """
        node_of = context.nominator.node_of
        is_nominated = context.nominator and any(node_of(pod.uid) for pod in waiting.pods)
        return not (waiting.is_beyond or is_nominated)

    def _is_too_large(
        self,
        context: SchedulerContext,
        runner: Runner,
        queued: QueuedPod,
        waiting: Waiting,
        needed: int,
    ) -> bool:
        return self._is_short(context, waiting, needed) or self._is_refuted(
            context, runner, queued, waiting, needed
        )

    def _renew(self, version: Hashable) -> None:
        """Drop what was found at another version."""
        if version != self._version:
            self._version = version
            self._results.clear()
            self._free.clear()
            self._lowest_whole = None

    def _may_evict(self, context: SchedulerContext, key: str, above: int) -> bool:
        """Whether less important pods or groups might make room for the gang. `above`: the highest
        priority of its pods.
        """
        cluster = context.cluster
        if is_coscheduled(key) or not context.gangs.makes_room:
            return cluster.priorities.are_below(above)
        group: PodGroup | None = cluster.get(POD_GROUP, key)
        if group is None or cluster.priorities.are_below(group.priority):
            return True
        if self._lowest_whole is None:
            groups = [*cluster.all(POD_GROUP).values(), *cluster.all(COMPOSITE_POD_GROUP).values()]
            whole = [group.priority for group in groups[:WHOLE_MAX] if group.goes_whole]
            self._lowest_whole = -inf if len(groups) > WHOLE_MAX else min(whole, default=inf)
        return self._lowest_whole < group.priority

    def _waiting(self, context: SchedulerContext, runner: Runner, key: str) -> Waiting:
        cluster, members = context.cluster, context.cluster.pod_groups.get(key)
        pods = tuple([pod for uid, pod in members.unplaced.items() if uid not in members.foreign])
        read_at = runner, cluster.epoch, cluster.topology.terms_generation
        waiting = self._known.get(key)
        if waiting is None or waiting.read_at != read_at or waiting.pods != pods:
            waiting = _read(context, runner, pods, read_at)
            self._known.put(key, waiting, len(pods) + GANG_PODS)
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
        key = needed, waiting.counts
        if key not in self._results:
            attempts = [Attempt(0, queued, info, runner, 0.0) for info in waiting.infos]
            group = GroupAttempt(attempts[0], attempts, queued.gang)
            description = described(GroupBoard(context, group, needed, None, 0))
            self._results[key] = description is not None and bool(
                refuted(description.problem, description.names, description.resources)
            )
        return self._results[key]


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
    counts = Counter((s.number, i.pod.priority) for s, i in zip(states, infos, strict=True))
    return Waiting(
        pods,
        read_at,
        infos,
        frozenset(counts.items()),
        {place: list(accumulate(sorted(of_all))) for place, of_all in amounts.items()},
        max(evictors, default=None),
        any(
            context.profile_of(info.pod) != runner.profile.scheduler_name
            or info.pod.status.nominated_node_name
            or runner.consults(info)
            or not state.active_plugins.keeps_all
            or not runner.treats_equals_alike(state.active_plugins)
            for info, state in zip(infos, states, strict=True)
        ),
    )


def _free(context: SchedulerContext, place: int) -> int:
    """The free amount of all nodes together, as an exact integer."""
    free = left_of(NodeView(context.cluster.nodes), (place,))[0]
    return sum(amount for amount in free.tolist() if amount > 0)
