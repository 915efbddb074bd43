"""Gangs as budgets: whoever's they are, a pod of one is spared like one under a budget."""

import pytest

from asched.core.cluster.facts import Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import POD_DISRUPTION_BUDGET
from asched.core.model.workload import PodDisruptionBudget
from asched.core.preemption.gang_budgets import GangBudgets, is_of_gang
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
    assert list(budgets.violated_by([[alone], [alone, member], []])) == [False, True, False]


def test_budgets_speak_for_pods_of_gangs_and_others_as_ever() -> None:
    """Once a gang's pod is over, the others are judged by their own budgets still."""
    selector = {"selector": {"matchLabels": {"app": "a"}}}
    metadata = {"name": "b", "namespace": "default", "uid": "b"}
    budget = {"metadata": metadata, "spec": selector, "status": {"disruptionsAllowed": 1}}
    cluster = a_cluster()
    cluster.apply(Seen(POD_DISRUPTION_BUDGET, decode(PodDisruptionBudget, budget)))
    budgets = GangBudgets(cluster)
    budgets.catch_up()
    assert len(budgets) == 2
    first, second = (pending(cluster, a_pod(name).labels(app="a")) for name in ("a", "b"))
    member = pending(
        cluster, a_pod("m").labels(app="c").spec(schedulingGroup={"podGroupName": "crew"})
    )
    assert budgets.violations([member, first, second]) == [True, False, True]
    assert list(budgets.violated_by([[first], [member], [second]])) == [False, True, True]
