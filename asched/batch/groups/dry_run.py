"""A look at a gang that waits: whether counting tells that it has no places by now.

    totals    what the cheapest pods of the gang need, and what all nodes together have left
    bounds    what `batch/placement/bounds.py` counts, of nodes that take the pods

Both say less than all rules do, so whatever they refute would be tried in vain; a gang that is not
refuted is tried. So is one whose pods might evict others.

Bounds  PODS_MAX pods of gangs are remembered, those of gangs looked at last, and some GANG_PODS for
        each gang besides; what was found is kept for gangs that look the same, while nothing
        changes that a filter reads.
"""

from collections import Counter, OrderedDict
from collections.abc import Hashable, Mapping
from itertools import accumulate
from typing import Final, NamedTuple

from asched.batch.groups import board as group_board
from asched.batch.groups import problem as group_problem
from asched.batch.groups.attempt import GroupAttempt
from asched.batch.placement import bounds
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.framework.order_free import POD_PLACE, OrderFree, takes_of
from asched.core.framework.runner import Runner
from asched.core.model.pod import Pod
from asched.core.queue.queued import QueuedPod
from asched.core.state.gang import count_missing
from asched.core.state.nodes import FIXED_RESOURCES
from asched.core.state.pods import PodInfo
from asched.core.state.view import NodeView

#: Some 50 MB. Whoever comes round to more of them in turn finds none remembered: each look then
#: costs six times as much.
PODS_MAX: Final = 200_000
#: What a gang takes beside its pods, counted in pods.
GANG_PODS: Final = 4
#: What every node has, each at a place of its own on axis R that no other resource takes.
PLACES: Final = (POD_PLACE, *range(len(FIXED_RESOURCES)))


class Waiting(NamedTuple):
    """The pods of a gang that have no place. `looks`: how many look alike to all plugins; `sums`:
    by place, what the cheapest of them need, for 1, 2, 3 ... of them; `most_important`: the
    priority of the first that may evict others, None if none may; `is_beyond`: more than counting
    decides about them.
    """

    pods: tuple[Pod, ...]
    read_at: Hashable
    infos: tuple[PodInfo, ...]
    looks: frozenset[tuple[Hashable, int]]
    sums: Mapping[int, list[int]]
    most_important: int | None
    is_beyond: bool


class GangLooks:
    def __init__(self) -> None:
        self._known: OrderedDict[str, Waiting] = OrderedDict()
        self._pods = 0  # of those, as they count
        self._found: dict[Hashable, bool] = {}
        self._free: dict[int, int] = {}

    def forget(self) -> None:
        """Something has changed that filters read."""
        self._found.clear()
        self._free.clear()

    def has_no_places(self, context: SchedulerContext, runner: Runner, queued: QueuedPod) -> bool:
        """Whether an attempt at all pods of its gang would surely be in vain. Raises PointError,
        OutOfTurn.
        """
        cluster, key = context.cluster, queued.gang
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
            return False  # what counts then is the priority of groups
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
        """Whether all nodes together have too little left of something."""
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
    """What all nodes together have left of it; exact, however large."""
    view = NodeView(context.cluster.nodes)
    if place == POD_PLACE:
        left = view.allowed_pods - view.pod_count
    else:
        left = view.allocatable(place) - view.requested(place)
    return sum(amount for amount in left.tolist() if amount > 0)
