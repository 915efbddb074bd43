"""Pods and nodes as a per-node plugin sees them: friendly words over the columns, never copies."""

from typing import Any

import numpy as np
import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone
from asched.core.framework.per_node.views import LateNode, PluginNode, PluginPod, Rejected
from asched.core.framework.points import FilterPlugin
from asched.core.framework.rejection import Rejection
from asched.core.framework.status import Status, unschedulable
from asched.core.model.kinds import NODE
from tests.builders import NodeBuilder, PodBuilder, a_cluster, a_node, a_pod, pending

GPU = "nvidia.com/gpu"


def pod_of(pod: PodBuilder) -> PluginPod:
    return PluginPod(pod.build())


def test_a_pod_tells_what_it_is() -> None:
    built = a_pod("web", "team").labels(app="x").metadata(annotations={"a": "b"})
    pod = pod_of(
        built.requests(cpu="1500m", memory="2Ki").selects(zone="z").tolerates("k").priority(7)
    )
    assert (pod.name, pod.namespace, pod.key, pod.uid) == ("web", "team", "team/web", "uid-web")
    assert (pod.labels, pod.annotations, pod.node_selector) == (
        {"app": "x"},
        {"a": "b"},
        {"zone": "z"},
    )
    assert (pod.priority, pod.cpu, pod.memory) == (7, 1.5, 2048)
    assert pod.requests == {"cpu": 1500, "memory": 2048}
    assert [toleration.key for toleration in pod.tolerations] == ["k"]
    assert [container.name for container in pod.containers] == ["c0"]
    assert repr(pod) == "<Pod team/web>"
    assert not pod.is_terminating


def test_what_a_pod_does_not_say_is_empty() -> None:
    pod = pod_of(a_pod().spec(containers=None))
    assert (pod.labels, pod.annotations, pod.node_selector) == ({}, {}, {})
    assert (pod.tolerations, pod.containers, pod.requests) == ((), (), {})
    assert (pod.cpu, pod.memory, pod.node_name) == (0, 0, "")


def test_what_it_asks_for_cannot_be_written() -> None:
    pod: Any = pod_of(a_pod().requests(cpu="1"))
    with pytest.raises(TypeError):
        pod.requests["cpu"] = 5


def test_where_it_runs_or_is_on_its_way_to() -> None:
    cluster = a_cluster(a_node("n1"))
    info = pending(cluster, a_pod())
    assert PluginPod(info.pod, info).node_name == ""
    cluster.assume(info, "n1")
    assert PluginPod(info.pod, info).node_name == "n1"
    assert pod_of(a_pod().on("n2")).node_name == "n2"
    bound = a_pod("bound").on("n2")
    assert PluginPod(bound.build(), pending(cluster, bound)).node_name == "n2", "as it says itself"


def test_state_is_that_of_the_attempt() -> None:
    info = pending(a_cluster(), a_pod())
    PluginPod(info.pod, info).state["seen"] = 1
    assert PluginPod(info.pod, info).state == {"seen": 1}
    assert info.state == {"seen": 1}
    alone = pod_of(a_pod())
    alone.state["seen"] = 2
    assert alone.state == {"seen": 2}


def a_view(node: NodeBuilder, *pods: PodBuilder, late: bool = False) -> tuple[Cluster, PluginNode]:
    cluster = a_cluster(a_node("other"), node, pods=pods)
    raw = cluster.nodes.node_at[1]
    assert raw is not None
    return cluster, LateNode(cluster, raw) if late else PluginNode(cluster, 1, raw)


LARGE = a_node("n1").offering_only(cpu="4", memory="1Mi", pods="9").allocatable({GPU: "2"})


def test_a_node_tells_what_it_offers_and_what_is_taken() -> None:
    cluster, node = a_view(LARGE, a_pod("a").requests(cpu="1", memory="1Ki").on("n1"))
    assert node.allocatable == {"cpu": 4000, "memory": 1 << 20, GPU: 2}
    assert node.requested == {"cpu": 1000, "memory": 1024}
    assert (node.cpu, node.cpu_requested, node.cpu_free) == (4.0, 1.0, 3.0)
    assert (node.memory, node.memory_requested, node.memory_free) == (1 << 20, 1024, 1047552)
    assert (node.pod_count, node.allowed_pods) == (1, 9)
    assert [(pod.name, pod.node_name) for pod in node.pods] == [("a", "n1")]
    cluster.assume(pending(cluster, a_pod("b").requests(cpu="4")), "n1")
    assert node.cpu_free == -1.0, "it is a window"
    assert node.pod_count == 2


def test_a_node_tells_what_it_says_of_itself() -> None:
    ready = {"type": "Ready", "status": "True"}
    built = a_node("n1").taints("a=b:NoSchedule").cordoned().status(conditions=[ready])
    _, node = a_view(built.labels(zone="z"))
    assert [taint.key for taint in node.taints] == ["a"]
    assert (node.unschedulable, node.conditions) == (True, {"Ready": "True"})
    assert (node.name, node.labels, repr(node)) == ("n1", {"zone": "z"}, "<Node n1>")
    _, bare = a_view(a_node("n1"))
    assert (bare.taints, bare.unschedulable, bare.conditions) == ((), False, {})


def test_a_late_node_is_found_by_its_name_and_may_be_gone() -> None:
    cluster, node = a_view(LARGE, late=True)
    assert node.cpu == 4.0
    cluster.apply(Gone(NODE, LARGE.build()))
    with pytest.raises(LookupError, match="node n1 is gone"):
        _ = node.cpu


class Fit(FilterPlugin):
    name = "Fit"

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any: ...

    def explain(self, pod: Any, code: int) -> Status:
        return unschedulable("full")


def test_who_was_rejected_is_looked_up_by_name() -> None:
    cluster = a_cluster(a_node("a"), a_node("b"), a_node("c"))
    rejection = Rejection(
        pending(cluster, a_pod()),
        plugins=(Fit(),),
        first_rejector=np.array([1, 0, 1], dtype=np.int32),
        codes=np.array([1, 0, 1], dtype=np.int32),
        live=np.ones(3, dtype=np.bool_),
    )
    rejected = Rejected(rejection, cluster)
    assert list(rejected) == ["a", "c"]
    assert len(rejected) == 2
    assert rejected["a"].message == "full"
    assert "b" not in rejected
    with pytest.raises(KeyError):
        rejected["unknown"]
