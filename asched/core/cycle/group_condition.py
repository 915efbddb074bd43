"""The condition PodGroupScheduled (since 1.37 PodGroupInitiallyScheduled): what the object is told
of its pods' attempt.

Once it is True it stays so: pods that come later and do not fit take nothing back, also before the
watch shows what was written. An equal condition makes no request, a changed one carries what
differs.

Bounds  one entry per group that was scheduled; those that have gone are swept out by SWEEP_MIN.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go
        (updatePodGroupCondition) and apimachinery's SetStatusCondition
"""

from typing import Any, Final

from msgspec.structs import replace

from asched import names
from asched.core.cycle.group import Outcome, Result
from asched.core.framework.effects import STRATEGIC_MERGE, PatchGroupStatus
from asched.core.model.kinds import POD_GROUP
from asched.core.model.timestamp import rfc3339
from asched.core.model.workload import Condition, PodGroup
from asched.core.state.cluster import Cluster

#: Groups remembered before the first sweep.
SWEEP_MIN: Final = 1024


class Scheduled:
    """Groups that were told they are scheduled, by key: for `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._uids: dict[str, str] = {}
        self._sweep_at = SWEEP_MIN

    def add(self, group: PodGroup) -> None:
        self._uids[group.metadata.key] = group.metadata.uid
        if len(self._uids) >= self._sweep_at:
            known = self._cluster.all(POD_GROUP)
            self._uids = {key: uid for key, uid in self._uids.items() if key in known}
            self._sweep_at = max(SWEEP_MIN, 2 * len(self._uids))

    def __contains__(self, group: PodGroup) -> bool:
        return self._uids.get(group.metadata.key) == group.metadata.uid


def condition_patch(
    cluster: Cluster, key: str, outcome: Outcome, now_s: float
) -> PatchGroupStatus | None:
    """What has to be written, or None: it says so already, or there is no such object."""
    group: PodGroup | None = cluster.get(POD_GROUP, key)
    if group is None:
        return None
    status, reason = _said(outcome.result)
    kind = cluster.spoken(POD_GROUP)
    is_old = kind.group_version == POD_GROUP.group_version
    wanted = Condition(
        type=names.POD_GROUP_SCHEDULED if is_old else names.POD_GROUP_INITIALLY_SCHEDULED,
        status=status,
        observed_generation=group.metadata.generation,
        reason=reason,
        message=outcome.told,
    )
    conditions, old = group.status.conditions or (), None
    for condition in conditions:
        if condition.type == wanted.type:
            old = condition
            break
    scheduled = cluster.singleton(Scheduled)
    if status == "True":
        scheduled.add(group)
    elif group in scheduled or (old is not None and old.status == "True"):
        return None
    changed = _difference(old, wanted, now_s)
    if changed is None:
        return None
    body: dict[str, Any] = {"conditions": [changed]}
    if conditions:  # a first condition needs no order
        types = [condition.type for condition in conditions]
        types += [] if old is not None else [wanted.type]
        body = {"$setElementOrder/conditions": [{"type": type_} for type_ in types], **body}
    uid = group.metadata.uid  # one made anew under the name is another
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


def _said(result: Result) -> tuple[str, str]:
    """(status, reason)."""
    if result is Result.SCHEDULED:
        return "True", names.REASON_SCHEDULED
    if result is Result.ERROR:
        return "False", names.REASON_SCHEDULER_ERROR
    return "False", names.REASON_UNSCHEDULABLE


def _difference(old: Condition | None, new: Condition, now_s: float) -> dict[str, Any] | None:
    """The fields that differ, with the type; all of a condition that is new. None if equal."""
    fields = {
        "status": new.status,
        "observedGeneration": new.observed_generation,
        "reason": new.reason,
        "message": new.message,
    }
    if old is None:
        return {"type": new.type, "lastTransitionTime": rfc3339(now_s), **fields}
    before = {
        "status": old.status,
        "observedGeneration": old.observed_generation,
        "reason": old.reason,
        "message": old.message,
    }
    changed: dict[str, Any] = {k: v for k, v in fields.items() if v != before[k]}
    if not changed:
        return None
    if old.status != new.status:
        changed["lastTransitionTime"] = rfc3339(now_s)
    return {"type": new.type, **changed}
