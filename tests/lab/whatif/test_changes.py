"""What becomes of nodes that are added, drained and lost, and of what is on them."""

import pytest

from asched_lab.apiserver.resources import NODES, PODS
from asched_lab.whatif.changes import Scenario, ScenarioError, apply
from tests.lab.whatif.clusters import a_node, a_pod, a_store, supposed

OF_A_SET = "ReplicaSet/web"


def on(store, node: str) -> list[str]:
    found = [p for p in store.listed(PODS) if p["spec"].get("nodeName") == node]
    return [pod["metadata"]["name"] for pod in found]


def test_another_node_is_like_it_healthy_and_has_what_its_daemon_sets_put_there() -> None:
    troubled = a_node("n1", unschedulable=True)
    troubled["spec"]["taints"] = [
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
        {"key": "team", "value": "a", "effect": "NoSchedule"},
    ]
    troubled["status"]["images"] = [{"names": ["i"], "sizeBytes": 1}]
    csi = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n1"},
        "spec": {"drivers": [{"name": "d", "allocatable": {"count": 2}}]},
    }
    agent = a_pod("agent", "100m", on="n1", owner="DaemonSet/agent")
    store = a_store(troubled, csi, agent, a_pod("web", on="n1", owner=OF_A_SET))

    applied = apply(Scenario(like={"n1": 2}), store)

    assert applied.made.nodes == ["n1-like-1", "n1-like-2"]
    fresh = store.get(NODES, "", "n1-like-1")
    assert fresh["metadata"]["labels"]["kubernetes.io/hostname"] == "n1-like-1"
    assert fresh["metadata"]["labels"]["topology.kubernetes.io/zone"] == "a"
    assert fresh["spec"] == {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}
    assert "images" not in fresh["status"]
    assert fresh["status"]["allocatable"]["cpu"] == "4"
    assert on(store, "n1-like-2") == ["agent-n1-like-2"]


def test_a_drained_node_keeps_what_belongs_to_it_and_the_rest_goes_elsewhere() -> None:
    static = a_pod("static", "1", on="n1")
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 1},
    }
    result = supposed(
        a_node("n1"),
        a_node("n2"),
        budget,
        static,
        a_pod("agent", on="n1", owner="DaemonSet/agent"),
        a_pod("kept", on="n1", owner=OF_A_SET),
        a_pod("set-0", on="n1", owner="StatefulSet/set"),
        a_pod("bare", on="n1"),
        drain=("n1",),
    )

    assert result.lost == ["default/bare"]
    made = {place.instead_of: place for place in result.places}
    assert made["default/kept"].node == made["default/set-0"].node == "n2"
    assert made["default/set-0"].pod == "default/set-0"
    assert len(result.places) == 2
    assert result.budgets == {"default/web": (1, 3)}
    (drained,) = [node for node in result.nodes if node.node == "n1"]
    assert (drained.pods, drained.is_open) == (2, False)


def test_a_lost_node_takes_everything_with_it() -> None:
    result = supposed(
        a_node("n1"),
        a_node("n2", "1"),
        a_pod("agent", on="n1", owner="DaemonSet/agent"),
        a_pod("one", on="n1", owner=OF_A_SET),
        a_pod("two", on="n1", owner=OF_A_SET),
        lose=("n1",),
    )

    assert [node.node for node in result.nodes] == ["n2"]
    assert sorted(place.node for place in result.places) == ["", "n2"]
    (waits,) = result.pending
    assert waits.why.startswith("0/1 nodes are available: 1 Insufficient cpu.")


@pytest.mark.parametrize("what", ["like", "drain", "lose"])
def test_a_node_that_is_not_there_is_refused(what: str) -> None:
    named = {"nope": 1} if what == "like" else ("nope",)
    with pytest.raises(ScenarioError, match="there is no node 'nope'"):
        apply(Scenario(**{what: named}), a_store(a_node("n1")))
