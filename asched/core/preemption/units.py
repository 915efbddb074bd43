"""What is evicted together: one pod, or all placed pods of a group that goes whole.

A unit of one pod has the pod's priority; a group whose disruptionMode is PodGroup has its own,
whatever its pods have. Less important than the preemptor are units of lower priority; pods of the
preemptor's own group are none of them. More important than another is

    1  who has the higher priority
    2  whoever belongs to a group, before those that do not
    3  the group with more pods
    4  whose first pod started earlier; one that has not started counts as starting now
    5  the smaller uid, so that runs can be replayed

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/preemption
        (newDomainForWorkloadPreemption, moreImportantVictim)
"""

from collections.abc import Generator
from typing import Final, NamedTuple

from asched.core.framework.effects import Effect
from asched.core.framework.group_post_filter import GroupTrial
from asched.core.model.kinds import POD_GROUP
from asched.core.model.workload import PodGroup
from asched.core.preemption.pods_by_priority import start_of
from asched.core.state.facts import Answer
from asched.core.state.pod_groups import group_key
from asched.core.state.pods import PodInfo

#: Steps of the budget for looking at a row, and at each pod there.
ROW_STEPS: Final = 0.1
POD_STEPS: Final = 0.1


class Unit(NamedTuple):
    """`pods` in the order in which budgets are asked about them. `start` in microseconds."""

    pods: tuple[PodInfo, ...]
    priority: int
    is_of_group: bool
    start: int

    @property
    def is_leaving(self) -> bool:
        """Whether all of it is on its way out anyway."""
        return all(info.pod.is_terminating for info in self.pods)


def units_below(trial: GroupTrial) -> Generator[Effect, Answer, list[Unit]]:
    """All units less important than the trial's group, the most important one first."""
    cluster, limit, own = trial.cluster, trial.group.priority, trial.group.metadata.key
    found: list[Unit] = []
    whole: dict[str, list[PodInfo]] = {}  # by key of the group
    groups: dict[str, PodGroup | None] = {}
    row = 0
    while row < cluster.nodes.height:
        pods = cluster.pods_on(row)
        yield from trial.charge(ROW_STEPS + POD_STEPS * len(pods))
        for info in list(cluster.pods_on(row).values()) if row < cluster.nodes.height else ():
            key = group_key(info.pod) if info.pod.spec.scheduling_group is not None else ""
            if key and key not in groups:
                groups[key] = cluster.get(POD_GROUP, key)
            group = groups.get(key)
            if group is not None and group.goes_whole:
                whole.setdefault(key, []).append(info)
            elif info.pod.priority < limit and (not key or key != own):
                found.append(Unit((info,), info.pod.priority, bool(key), start_of(info)))
        row += 1
    for key, infos in whole.items():
        group = groups[key]
        if group is not None and group.priority < limit and key != own:
            start = min(map(start_of, infos))
            found.append(Unit(tuple(infos), group.priority, True, start))
    yield from trial.charge(POD_STEPS * len(found))
    return sorted(found, key=_importance)


def _importance(unit: Unit) -> tuple[int, bool, int, int, str]:
    size = len(unit.pods) if unit.is_of_group else 0
    return -unit.priority, not unit.is_of_group, -size, unit.start, unit.pods[0].pod.uid
