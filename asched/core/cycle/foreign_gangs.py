"""Report gangs that asched does not follow, once each, in one event.

A pod may name a group of Volcano, KAI, YuniKorn or Koordinator, or a group that asched supports but
whose plugin the pod's profile lacks. Such a pod is placed by itself, and its owner would notice
only when half of a job runs and the other half waits. So the first pod of each such group gets an
event that says what is wrong and what to do.

Bounds  REPORTED_MAX groups are remembered, by names of NAME_MAX letters; a forgotten group is
        reported again.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from asched.core.cluster.pod_groups import COSCHEDULED, group_key, is_coscheduled
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.effects import EmitEvent
from asched.core.model.lru import Lru
from asched.core.model.pod import Pod
from asched.core.preemption.gang_budgets import ANNOTATIONS, LABELS
from asched.core.queue.gangs import Gangs

REPORTED_MAX: Final = 4_096
#: No object has a longer name; the text of an annotation may be as long as the pod.
NAME_MAX: Final = 253
REASON: Final = "GangNotFollowed"


class UnfollowedGang(NamedTuple):
    """A gang that is not followed: the API group or project, its name, and the remedy."""

    whose: str
    name: str
    cure: str


CURE_OF_FOREIGN: Final = (
    "asched follows PodGroups of scheduling.k8s.io and scheduling.x-k8s.io: let the operator make"
    " one of those, or give the pod to its own scheduler"
)


def foreign_gang(pod: Pod, gangs: Gangs) -> UnfollowedGang | None:
    """The gang that the pod names and that is not followed; None if there is none."""
    key = group_key(pod)
    if key and not gangs.has(pod):
        name = key.removeprefix(COSCHEDULED)
        if is_coscheduled(key):
            cure = f'enable the plugin Coscheduling in profile "{gangs.profile_of(pod)}"'
            return UnfollowedGang("scheduling.x-k8s.io", name, cure)
        cure = "start asched with --feature-gates=GenericWorkload=true,GangScheduling=true"
        return UnfollowedGang("scheduling.k8s.io", name, cure)
    if key:
        return None
    for marks, values in ((ANNOTATIONS, pod.metadata.annotations), (LABELS, pod.metadata.labels)):
        if values:
            for mark, whose in marks.items():
                if mark in values:
                    name = f"{pod.metadata.namespace}/{values[mark][:NAME_MAX]}"
                    return UnfollowedGang(whose, name, CURE_OF_FOREIGN)
    return None


class GangReports:
    """Reports each gang that is not followed once, of the latest REPORTED_MAX."""

    def __init__(self, context: SchedulerContext) -> None:
        self._context = context
        self._reported: Lru[tuple[str, str], bool] = Lru(REPORTED_MAX)

    def of(self, attempt: Attempt) -> Iterator[EmitEvent]:
        """The event about the gang of a pod, unless it is followed or was reported."""
        gangs = self._context.gangs
        if attempt.info.pod.spec.scheduling_group is not None and gangs.tries_groups:
            return
        foreign = foreign_gang(attempt.pod, gangs)
        if foreign is None or self._reported.get(key := (foreign.whose, foreign.name)):
            return
        self._reported.put(key, value=True)
        note = (
            f"the gang {foreign.name} ({foreign.whose}) is not followed: its pods are placed one by"
            f" one and may start in part; {foreign.cure}"
        )
        yield attempt.emit("Warning", REASON, "Scheduling", note)
