"""What is in a plan, what is none, and when one holds no more."""

import pytest

from asched_lab.whatif.engine import scheduler_of
from asched_lab.whatif.makers import NoPlanError
from asched_lab.whatif.plan import Plan, holds, pinned, planned
from asched_lab.whatif.snapshot import Snapshot
from tests.lab.whatif.clusters import a_deployment, a_node, a_pod, a_snapshot

SYSTEM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "c"}}
NODES = (a_node("n1"), a_node("n2"), SYSTEM)


def plan_for(snapshot: Snapshot, *manifests: dict, **options) -> Plan:
    return planned(snapshot, manifests, scheduler_of(snapshot, manifests), **options)[0]


def judged(plan: Plan, *objects: dict) -> None:
    snapshot = a_snapshot(*objects)
    holds(plan, snapshot, scheduler_of(snapshot, [pod for pod, _ in plan.pods]))


def test_a_deployment_comes_to_pods_that_its_replica_set_will_adopt() -> None:
    plan = plan_for(a_snapshot(*NODES), a_deployment("web", 3))
    replica_set, deployment = plan.owners
    assert (replica_set["kind"], deployment["kind"]) == ("ReplicaSet", "Deployment")
    assert replica_set["spec"]["replicas"] == deployment["spec"]["replicas"] == 3
    assert "ownerReferences" not in replica_set["metadata"]
    for pod, node in plan.pods:
        assert node in ("n1", "n2")
        labels = replica_set["spec"]["selector"]["matchLabels"]
        assert labels.items() <= pod["metadata"]["labels"].items()
        assert "ownerReferences" not in pod["metadata"]
        assert pod["spec"] == replica_set["spec"]["template"]["spec"]
    assert len({pod["metadata"]["name"] for pod, _ in plan.pods}) == 3
    assert plan.cluster == "c"


EMPTY = {"apiVersion": "asched.dev/v1", "kind": "Plan"}


@pytest.mark.parametrize("document", [{}, [], None, EMPTY])
def test_what_is_no_plan_is_told(document: object) -> None:
    with pytest.raises(NoPlanError, match=r"this is no Plan of asched\.dev/v1"):
        Plan.of(document)


@pytest.mark.parametrize(
    ("manifests", "why"),
    [
        ((a_deployment("web", 9),), "default/web-"),
        ((a_pod("there"),), "pod default/there exists already"),
        ((a_deployment("old", 1),), "Deployment default/old exists already"),
        (({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}},), "has no spec."),
        (({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},), "no pod to plan"),
        ((a_node("n3"),), "a plan makes pods only; create it first"),
        ((a_pod("vip", "3500m", priorityClassName="vip"),), "default/there would be evicted"),
        ((a_pod("odd", containers=[]),), "spec.containers: Required value"),
    ],
)
def test_there_is_no_plan_without_a_place_for_every_pod(manifests: tuple, why: str) -> None:
    vip = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "vip"},
        "value": 9,
    }
    old = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "old", "uid": "u"}
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "old-1", "namespace": "default", "ownerReferences": [old]},
        "spec": {"selector": {"matchLabels": {"app": "old"}}},
    }
    there = [a_pod("there", "1", on="n1"), a_pod("too", "2", on="n2", priority=10), vip]
    there.append(replica_set)
    with pytest.raises(NoPlanError) as raised:
        plan_for(a_snapshot(*NODES, *there), *manifests)
    assert why in str(raised.value)


def test_it_holds_until_something_that_matters_changes() -> None:
    plan = plan_for(a_snapshot(*NODES), a_pod("web", "3"))
    ((_, node),) = plan.pods
    other = "n2" if node == "n1" else "n1"
    judged(plan, *NODES, a_node("n3", "64"), a_pod("elsewhere", "4", on=other))

    with pytest.raises(NoPlanError, match=r"default/web waits: .*1 Insufficient cpu"):
        judged(plan, *NODES, a_pod("thief", "2", on=node))
    with pytest.raises(NoPlanError, match="default/web waits: "):
        judged(plan, *(one for one in NODES if one["metadata"]["name"] != node))
    with pytest.raises(NoPlanError, match="it was made for another cluster"):
        judged(plan, *NODES[:2])
    with pytest.raises(NoPlanError, match="was it applied before"):
        judged(plan, *NODES, a_pod("web", on=node))


def test_a_pod_that_waited_before_comes_first() -> None:
    plan = plan_for(a_snapshot(*NODES), a_pod("web", "3"))
    ((_, node),) = plan.pods
    waits = a_pod("first", "3", nodeSelector={"kubernetes.io/hostname": node})
    waits["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    with pytest.raises(NoPlanError, match="default/web waits"):
        judged(plan, *NODES, waits)


def test_a_pinned_pod_keeps_what_it_asked_for() -> None:
    """Terms are alternatives: each is narrowed to the node."""
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    required = {"nodeSelectorTerms": [term, {"matchFields": [{"key": "metadata.name"}]}]}
    affinity = {
        "podAntiAffinity": {"kept": True},
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required},
    }
    here = {"key": "metadata.name", "operator": "In", "values": ["n1"]}

    made = pinned(a_pod("web", affinity=affinity), "n1")["spec"]["affinity"]

    terms = made["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"] == [
        {**term, "matchFields": [here]},
        {"matchFields": [{"key": "metadata.name"}, here]},
    ]
    assert made["podAntiAffinity"] == {"kept": True}
    bare = pinned(a_pod("web"), "n1")["spec"]["affinity"]["nodeAffinity"]
    (only,) = bare["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert only == {"matchFields": [here]}
