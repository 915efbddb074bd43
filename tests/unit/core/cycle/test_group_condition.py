"""What a PodGroup's status is told, and when nothing is written.

The bodies follow apimachinery's SetStatusCondition and the two-way merge patch that kube-scheduler
sends: a new condition whole, an old one in the fields that differ.
"""

from typing import Any

import pytest

from asched.batch.groups.attempt import GroupOutcome, Result
from asched.batch.groups.reports import condition_patch
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Seen
from asched.core.framework.effects import Patch
from asched.core.model.decode import decode
from asched.core.model.kinds import POD_GROUP
from asched.core.model.workload import PodGroup

NOON_S = 1_767_268_800.0  # 2026-01-01T12:00:00Z
EARLIER = "2026-01-01T11:00:00Z"


def a_cluster_with(conditions: list[dict[str, Any]], generation: int = 4) -> Cluster:
    cluster = Cluster()
    group = {
        "metadata": {"namespace": "default", "name": "crew", "generation": generation},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
        "status": {"conditions": conditions},
    }
    cluster.apply(Seen(POD_GROUP, decode(PodGroup, group)))
    return cluster


def patch_for(result: Result, message: str, *conditions: dict[str, Any]) -> Patch | None:
    return condition_patch(
        a_cluster_with(list(conditions)), "default/crew", GroupOutcome(result, message), NOON_S
    )


def said(status: str, reason: str, message: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "PodGroupScheduled",
        "status": status,
        "observedGeneration": 4,
        "lastTransitionTime": EARLIER,
        "reason": reason,
        "message": message,
        **more,
    }


@pytest.mark.parametrize(
    ("result", "message", "status", "reason"),
    [
        (Result.SCHEDULED, "", "True", "Scheduled"),
        (Result.UNSCHEDULABLE, "pod group is unschedulable", "False", "Unschedulable"),
        (Result.WAITING_ON_PREEMPTION, "waiting", "False", "Unschedulable"),
        (Result.ERROR, "failed", "False", "SchedulerError"),
    ],
)
def test_a_first_condition_is_written_whole(
    result: Result, message: str, status: str, reason: str
) -> None:
    patch = patch_for(result, message)

    assert patch is not None
    assert (patch.kind, patch.namespace, patch.name) == (POD_GROUP, "default", "crew")
    assert patch.subresource == "status"
    assert patch.content_type == "application/strategic-merge-patch+json"
    assert not patch.wants_answer
    expected = said(status, reason, message, lastTransitionTime="2026-01-01T12:00:00Z")
    assert patch.body == {"status": {"conditions": [expected]}}


def test_what_the_object_says_already_is_not_written() -> None:
    old = said("False", "Unschedulable", "pod group is unschedulable")

    assert patch_for(Result.UNSCHEDULABLE, "pod group is unschedulable", old) is None


def test_a_group_that_was_scheduled_stays_so() -> None:
    old = said("True", "Scheduled", "")

    assert patch_for(Result.UNSCHEDULABLE, "pod group is unschedulable", old) is None
    assert patch_for(Result.ERROR, "failed", old) is None


def test_a_turned_status_carries_the_time() -> None:
    patch = patch_for(Result.SCHEDULED, "", said("False", "Unschedulable", "old"))

    assert patch is not None
    assert patch.body["status"]["conditions"] == [
        {
            "type": "PodGroupScheduled",
            "status": "True",
            "reason": "Scheduled",
            "message": "",
            "lastTransitionTime": "2026-01-01T12:00:00Z",
        }
    ]


def test_nothing_is_written_to_a_group_that_is_gone() -> None:
    assert (
        condition_patch(Cluster(), "default/crew", GroupOutcome(Result.SCHEDULED, ""), 0.0) is None
    )


def test_it_is_written_for_this_very_group() -> None:
    """One made anew under the name has not been tried."""
    cluster = Cluster()
    metadata = {"namespace": "default", "name": "crew", "uid": "u1"}
    spec = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    group = decode(PodGroup, {"metadata": metadata, "spec": spec})
    cluster.apply(Seen(POD_GROUP, group))

    patch = condition_patch(cluster, "default/crew", GroupOutcome(Result.ERROR, "failed"), NOON_S)

    assert patch is not None
    assert patch.body["metadata"] == {"uid": "u1"}


def test_a_group_of_the_same_name_starts_anew() -> None:
    cluster = a_cluster_with([])
    condition_patch(cluster, "default/crew", GroupOutcome(Result.SCHEDULED, ""), NOON_S)
    again = {"metadata": {"namespace": "default", "name": "crew", "uid": "another"}}
    cluster.apply(Seen(POD_GROUP, decode(PodGroup, again)))

    assert condition_patch(
        cluster, "default/crew", GroupOutcome(Result.UNSCHEDULABLE, "no"), NOON_S
    )
