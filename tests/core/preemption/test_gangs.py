"""Gangs as budgets: whoever's they are, a pod of one is spared like one under a budget."""

import pytest

from asched.core.preemption.gangs import GangBudgets, is_of_gang
from tests.builders import PodBuilder, a_cluster, a_pod, pending


@pytest.mark.parametrize(
    ("pod", "is_of_one"),
    [
        (a_pod(), False),
        (a_pod().labels(app="x").metadata(annotations={"a": "b"}), False),
        (a_pod().spec(schedulingGroup={"podGroupName": "crew"}), True),
        (a_pod().labels({"scheduling.x-k8s.io/pod-group": "crew"}), True),
        (a_pod().metadata(annotations={"scheduling.k8s.io/group-name": "v"}), True),
        (a_pod().metadata(annotations={"pod-group-name": "k"}), True),
        (a_pod().metadata(annotations={"yunikorn.apache.org/task-group-name": "y"}), True),
        (a_pod().metadata(annotations={"gang.scheduling.koordinator.sh/name": "k"}), True),
        (a_pod().labels({"pod-group.scheduling.sigs.k8s.io": "k"}), True),
        (a_pod().labels({"pod-group.scheduling.sigs.k8s.io/name": "k"}), True),
        (a_pod().labels({"scheduling.k8s.io/group-name": "v"}), False),
    ],
)
def test_who_says_that_it_belongs_to_a_gang(pod: PodBuilder, is_of_one: bool) -> None:
    assert is_of_gang(pod.build()) == is_of_one


def test_each_gang_allows_nobody_to_go() -> None:
    cluster = a_cluster()
    budgets = GangBudgets(cluster)
    alone = pending(cluster, a_pod("alone"))
    member = pending(cluster, a_pod("member").spec(schedulingGroup={"podGroupName": "crew"}))
    assert len(budgets) == 1
    assert budgets.violations([alone, member]) == [False, True]
    assert budgets.violated_by([[alone], [alone, member], []]) == [False, True, False]
