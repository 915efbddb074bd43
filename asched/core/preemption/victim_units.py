"""Units of pods that are evicted together, and the order of their importance.

A unit of one pod has the pod's priority; a group whose disruptionMode is PodGroup has its own,
whatever its pods have. Less important than the preemptor are units of lower priority, except pods
of the preemptor's own group. The order of importance:

    1  the higher priority
    2  units of a group before single pods
    3  the group with more pods
    4  the earlier start of the first pod; a pod that has not started counts as starting now
    5  the smaller uid, so that runs can be replayed

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/preemption/podgrouppreemption.go
        (moreImportantVictim)
"""

from collections.abc import Generator
from heapq import merge
from itertools import count
from typing import Final, NamedTuple

from asched.core.cluster.facts import Answer
from asched.core.cluster.gang import object_of
from asched.core.cluster.pod_groups import group_key
from asched.core.cluster.pods import PodInfo
from asched.core.framework.effects import Effect
from asched.core.framework.group_post_filter import GroupTrial
from asched.core.model.kinds import POD_GROUP
from asched.core.model.workload import PodGroup
from asched.core.preemption.pods_by_priority import PodsByPriority, start_of

Whole = tuple[PodGroup, list[PodInfo]]

#: Steps of the budget for a row, and for each pod there.
ROW_STEPS: Final = 0.1
POD_STEPS: Final = 0.3
#: So many are sorted at once.
PART: Final = 2_000


class VictimUnit(NamedTuple):
    """`pods` in the order in which budgets are checked for them. `start` in microseconds."""

    pods: tuple[PodInfo, ...]
    priority: int
    is_of_group: bool
    start: int

    @property
    def is_leaving(self) -> bool:
        """Whether all of its pods are terminating anyway."""
        return all(info.pod.is_terminating for info in self.pods)


class Below:
    """The units that are less important than a trial's group."""

    def __init__(self, trial: GroupTrial) -> None:
        self._trial = trial
        self._cluster = trial.cluster
        self._limit = trial.group.priority
        self._own = trial.group.metadata.key
        self._groups: dict[str, PodGroup | None] = {}

    def whole(self) -> Generator[Effect, Answer, list[Whole]]:
        """Groups that are evicted as a whole, with their placed pods."""
        wholes: list[Whole] = []
        groups = self._cluster.pod_groups
        for key in dict.fromkeys(map(groups.evicted_with, self._cluster.all(POD_GROUP))):
            pods = sum(len(groups.get(leaf).placed) for leaf in groups.leaves_below(key))
            yield from self._trial.charge(ROW_STEPS + POD_STEPS * pods)
            group: PodGroup | None = object_of(self._cluster, key)  # it may be deleted meanwhile
            infos = [] if group is None else self._pods_of(key, group)
            if group is not None and infos:
                wholes.append((group, infos))
        return wholes

    def _pods_of(self, key: str, group: PodGroup) -> list[PodInfo]:
        """The placed pods of a group that is evicted as a whole; none for other groups."""
        if not group.goes_whole or group.priority >= self._limit:
            return []
        groups = self._cluster.pod_groups
        uids = [uid for leaf in groups.leaves_below(key) for uid in groups.get(leaf).placed]
        placed = map(self._cluster.placed.__getitem__, uids)
        return sorted((i for i in placed if i.row >= 0), key=lambda i: (i.row, i.pod.uid))

    def single(self) -> Generator[Effect, Answer, list[VictimUnit]]:
        """Units of one pod."""
        units: list[VictimUnit] = []
        for row in count():
            if row >= self._cluster.nodes.height:
                return units
            pods = len(self._cluster.pods_on(row))
            yield from self._trial.charge(ROW_STEPS + POD_STEPS * pods)
            if row < self._cluster.nodes.height:
                infos = filter(self._is_single, self._cluster.pods_on(row).values())
                units += map(_single, infos)
        return units

    def has_any(self) -> bool:
        """Whether there is any such unit."""
        keys = set(map(self._cluster.pod_groups.evicted_with, self._cluster.all(POD_GROUP)))
        if any(self._pods_of(key, object_of(self._cluster, key)) for key in keys):
            return True
        by_priority = self._cluster.singleton(PodsByPriority)
        by_priority.catch_up(in_one_go=True)
        if not (by_priority.priorities[by_priority.bulks] < self._limit).any():
            return False
        rows = range(self._cluster.nodes.height)
        return any(any(map(self._is_single, self._cluster.pods_on(row).values())) for row in rows)

    def _is_single(self, info: PodInfo) -> bool:
        if info.pod.priority >= self._limit:
            return False
        if info.pod.spec.scheduling_group is None:
            return True
        key = group_key(info.pod)
        if key not in self._groups:
            whole = self._cluster.pod_groups.evicted_with(key)
            self._groups[key] = object_of(self._cluster, whole)
        group = self._groups[key]
        return key != self._own and (group is None or not group.goes_whole)


def units_of(
    below: Below, trial: GroupTrial
) -> Generator[Effect, Answer, tuple[list[VictimUnit], list[VictimUnit]]]:
    """All units less important than the trial's group, the most important first: those that would
    stay, and those that are terminating anyway.
    """
    found = yield from below.single()
    whole = yield from below.whole()
    for group, infos in whole:
        found.append(VictimUnit(tuple(infos), group.priority, True, min(map(start_of, infos))))
    return (yield from _sorted(trial, found))


def _single(info: PodInfo) -> VictimUnit:
    is_of_group = info.pod.spec.scheduling_group is not None
    return VictimUnit((info,), info.pod.priority, is_of_group, start_of(info))


def _sorted(
    trial: GroupTrial, units: list[VictimUnit]
) -> Generator[Effect, Answer, tuple[list[VictimUnit], list[VictimUnit]]]:
    """Sort by importance, in slices, so that other tasks can run."""
    parts = []
    for start in range(0, len(units), PART):
        yield from trial.charge(POD_STEPS * PART)
        parts.append(sorted(units[start : start + PART], key=_importance))
    by_leaving: tuple[list[VictimUnit], list[VictimUnit]] = ([], [])
    for at, unit in enumerate(merge(*parts, key=_importance)):
        if not at % PART:
            yield from trial.charge(POD_STEPS * PART)
        by_leaving[unit.is_leaving].append(unit)
    return by_leaving


def _importance(unit: VictimUnit) -> tuple[int, bool, int, int, str]:
    size = len(unit.pods) if unit.is_of_group else 0
    return -unit.priority, not unit.is_of_group, -size, unit.start, unit.pods[0].pod.uid
