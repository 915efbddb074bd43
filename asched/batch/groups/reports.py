"""The condition PodGroupScheduled (since 1.37 PodGroupInitiallyScheduled) of a PodGroup, and
CompositePodGroupInitiallyScheduled of a CompositePodGroup.

Once it is True it stays so: later pods that do not fit do not change it, also before the watch
shows what was written. An equal condition makes no request, a changed condition sends the
differences.

Bounds  one entry per group that was scheduled; those of deleted groups are removed at SWEEP_MIN.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go
        (updatePodGroupCondition) and apimachinery's SetStatusCondition
"""

from collections.abc import Generator
from typing import Any, Final

from msgspec.structs import replace

from asched import names
from asched.batch.groups.attempt import UNSCHEDULABLE, GroupAttempt, GroupOutcome, Result
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.gang import kind_of, object_of
from asched.core.cluster.group_trees import COMPOSITE
from asched.core.cluster.pod_groups import is_coscheduled
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.effects import STRATEGIC_MERGE, Effect, PatchGroupStatus
from asched.core.model.kinds import POD_GROUP
from asched.core.model.timestamp import rfc3339
from asched.core.model.workload import PodGroup

#: Groups remembered before the first sweep.
SWEEP_MIN: Final = 1024
#: Budget steps to compare a condition.
PATCH_STEPS: Final = 1


class Scheduled:
    """Groups whose condition became True, by key. Made by `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._uids: dict[str, str] = {}
        self._sweep_at = SWEEP_MIN

    def add(self, key: str, uid: str) -> None:
        self._uids[key] = uid
        if len(self._uids) >= self._sweep_at:
            uids = self._uids.items()
            self._uids = {k: uid for k, uid in uids if object_of(self._cluster, k) is not None}
            self._sweep_at = max(SWEEP_MIN, 2 * len(self._uids))

    def has(self, key: str, uid: str) -> bool:
        return self._uids.get(key) == uid


def condition_patches(
    context: SchedulerContext, group: GroupAttempt, outcome: GroupOutcome
) -> Generator[Effect, Answer, None]:
    """The patches of the group's condition, or those of all groups of its tree."""
    cluster, message = context.cluster, outcome.condition_message
    keys = list(group.tree.nodes) if group.tree is not None else [group.key]
    for key in keys:
        own = outcome
        if group.tree is not None:
            yield from context.pause_if_due(PATCH_STEPS, is_alone=True)
        if key in outcome.infeasible and outcome.result in (Result.SCHEDULED, Result.UNSCHEDULABLE):
            why, text = outcome.minimum or UNSCHEDULABLE, outcome.infeasible[key]
            is_scheduled = outcome.result is Result.SCHEDULED
            text = text if is_scheduled else message.replace(why, text, 1)
            own = GroupOutcome(Result.UNSCHEDULABLE, text)
        patch = condition_patch(cluster, key, own, cluster.wall_clock_s)
        if patch is not None:
            yield patch


def condition_patch(
    cluster: Cluster, key: str, outcome: GroupOutcome, now_s: float, *, is_invalid: bool = False
) -> PatchGroupStatus | None:
    """The patch of the condition; None if it is equal already, or the object does not exist."""
    if is_coscheduled(key):
        return None
    group: PodGroup | None = object_of(cluster, key)
    if group is None:
        return None
    status, reason = _status_of(outcome.result)
    reason = names.REASON_INVALID if is_invalid else reason
    kind = cluster.served_kind(kind_of(key))
    is_old = kind.group_version == POD_GROUP.group_version
    type_ = names.POD_GROUP_SCHEDULED if is_old else names.POD_GROUP_INITIALLY_SCHEDULED
    if key.startswith(COMPOSITE):
        type_ = names.COMPOSITE_POD_GROUP_INITIALLY_SCHEDULED
    conditions = group.status.conditions or ()
    old = next((condition for condition in conditions if condition.type == type_), None)
    scheduled = cluster.singleton(Scheduled)
    if status == "True":
        scheduled.add(key, group.metadata.uid)
    elif scheduled.has(key, group.metadata.uid) or (old is not None and old.status == "True"):
        return None
    wanted = {
        "status": status,
        "observedGeneration": group.metadata.generation,
        "reason": reason,
        "message": outcome.condition_message,
    }
    before: dict[str, Any] = {}
    if old is not None:
        before = {
            "status": old.status,
            "observedGeneration": old.observed_generation,
            "reason": old.reason,
            "message": old.message,
        }
    changed = {k: v for k, v in wanted.items() if k not in before or v != before[k]}
    if not changed:
        return None
    changed["type"] = type_
    if "status" in changed:
        changed["lastTransitionTime"] = rfc3339(now_s)
    body: dict[str, Any] = {"conditions": [changed]}
    if conditions:  # a first condition needs no order
        types = [condition.type for condition in conditions]
        types += [] if old is not None else [type_]
        body = {"$setElementOrder/conditions": [{"type": each} for each in types], **body}
    uid = group.metadata.uid  # a group created anew has another uid
    patch = PatchGroupStatus(
        kind=POD_GROUP,
        namespace=group.metadata.namespace,
        name=group.metadata.name,
        body={"metadata": {"uid": uid}, "status": body} if uid else {"status": body},
        subresource="status",
        content_type=STRATEGIC_MERGE,
        wants_answer=False,
    )
    return patch if is_old else replace(patch, kind=kind)


def _status_of(result: Result) -> tuple[str, str]:
    """(status, reason)."""
    if result is Result.SCHEDULED:
        return "True", names.REASON_SCHEDULED
    if result is Result.ERROR:
        return "False", names.REASON_SCHEDULER_ERROR
    return "False", names.REASON_UNSCHEDULABLE
