"""Pools: a pod goes to nodes of its own pool only; the machine, and what is said about it."""

from typing import Any

import msgspec
import numpy as np
import pytest

from asched.core.cluster.facts import Done, Gone, Refused, Seen
from asched.core.framework.effects import Bind, DeletePod, Evict, MarkVictim, Patch, PatchPodStatus
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    DEVICE_CLASS,
    ELASTIC_QUOTA,
    NAMESPACE,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
)
from asched.core.model.quotas import ElasticQuota
from asched.core.model.workload import Namespace
from asched.plugin import FilterPlugin, Scope
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.device_builders import (
    a_claim_object,
    a_claiming_pod,
    a_class,
    a_device,
    a_slice,
    asks,
)
from tests.playbook import Play, explained, placed

ZONE, HOST, POOL = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "asched.dev/pool"
#: What is in neither is in the pool `default`.
POOLS: list[dict[str, Any]] = [
    {"name": "batch", "namespaces": ["jobs"]},
    {
        "name": "gpu",
        "nodeSelector": {"accelerator": "yes"},
        "namespaceSelector": {"matchLabels": {"team": "ml"}},
    },
]


def a_namespace(name: str, **labels: str) -> Namespace:
    return decode(Namespace, {"metadata": {"name": name, "uid": name, "labels": labels}})


def node(name: str, **labels: str) -> NodeBuilder:
    return a_node(name).labels({HOST: name, **labels}).allocatable(cpu="4", pods="10")


def play(*nodes: NodeBuilder, **config: Any) -> Play:
    made = Play(*nodes, pools=POOLS, **config)
    made.turn(Seen(NAMESPACE, a_namespace("training", team="ml")))
    return made


IN_BATCH = {POOL: "batch"}


def three(**config: Any) -> Play:
    return play(
        node("in-batch").labels(IN_BATCH),
        node("in-gpu", accelerator="yes"),
        node("in-default"),
        **config,
    )


@pytest.mark.parametrize(
    ("namespace", "where"),
    [("jobs", "in-batch"), ("training", "in-gpu"), ("web", "in-default")],
)
def test_a_pod_goes_to_the_nodes_of_its_namespaces_pool(namespace: str, where: str) -> None:
    made = three()
    for number in range(3):
        assert placed(made, a_pod(f"p{number}", namespace).requests(cpu="1")) == where


def test_a_full_pool_is_full_though_others_have_room() -> None:
    made = three()
    assert not placed(made, a_pod("large", "jobs").requests(cpu="5"))
    assert "2 node(s) belonged to another pool" in made.condition()["message"]


def test_no_pod_is_evicted_in_another_pool() -> None:
    made = three()
    for name, namespace in (("a", "jobs"), ("b", "web")):
        assert placed(made, a_pod(name, namespace).requests(cpu="4").priority(1))
    made.see(a_pod("urgent", "jobs").requests(cpu="2").priority(9))
    assert [effect.pod.name for effect in made.effects if hasattr(effect, "pod")].count("b") == 0


def test_a_node_that_two_pools_select_is_used_by_none() -> None:
    made = play(node("both", accelerator="yes").labels(IN_BATCH))
    for namespace in ("jobs", "training", "web"):
        assert not placed(made, a_pod("p", namespace))
        assert "node(s) belonged to several pools" in made.condition()["message"]


def test_a_node_that_comes_to_the_pool_takes_its_waiting_pods() -> None:
    made = play(node("moves"))
    assert not placed(made, a_pod("p", "jobs"))
    made.turn(Seen(NODE, node("moves").labels(IN_BATCH).build()), after_s=20)
    assert made.the(Bind).node == "moves"
    assert not placed(made, a_pod("q", "web"))


def test_a_namespace_that_gets_the_label_has_its_pods_in_that_pool() -> None:
    made = play(node("in-gpu", accelerator="yes"))
    made.turn(Seen(NAMESPACE, a_namespace("research")))
    assert not placed(made, a_pod("p", "research"))
    made.turn(Seen(NAMESPACE, a_namespace("research", team="ml")), after_s=20)
    assert made.the(Bind).node == "in-gpu"


def test_pods_of_a_namespace_in_two_pools_wait_and_say_why() -> None:
    made = three()
    made.turn(Seen(NAMESPACE, a_namespace("jobs", team="ml")))
    assert not placed(made, a_pod("p", "jobs"))
    assert "namespace belongs to several pools: batch, gpu" in made.condition()["message"]
    made.turn(Seen(NAMESPACE, a_namespace("jobs")), after_s=20)
    assert made.the(Bind).node == "in-batch"


def pinned(name: str, to: str, namespace: str = "kube-system") -> PodBuilder:
    """As the controller of a DaemonSet makes it."""
    field = {"key": "metadata.name", "operator": "In", "values": [to]}
    return a_pod(name, namespace).requires_nodes({"matchFields": [field]})


def test_a_pod_of_a_daemon_set_goes_to_its_node_in_any_pool() -> None:
    made = three()
    for where in ("in-batch", "in-gpu", "in-default"):
        assert placed(made, pinned(f"agent-{where}", where)) == where


def test_a_pinned_pod_with_a_quota_stays_in_its_pool() -> None:
    """A quota is about all pods of its namespace, which one pool decides."""
    plugins = {"multiPoint": {"enabled": [{"name": "CapacityScheduling"}]}}
    own = {"schedulerName": "default-scheduler", "plugins": plugins}
    made = three(profiles=[own])
    metadata, limit = {"name": "q", "namespace": "jobs", "uid": "q"}, {"cpu": "4", "memory": "4Gi"}
    quota = {"metadata": metadata, "spec": {"min": limit, "max": limit}}
    made.turn(Seen(ELASTIC_QUOTA, decode(ElasticQuota, quota)))
    assert placed(made, pinned("agent-1", "in-batch", "jobs")) == "in-batch"
    assert not placed(made, pinned("agent-2", "in-gpu", "jobs"))
    said = "node in-gpu and its namespace have to share a pool: jobs"
    assert said in made.condition()["message"]
    assert said in explained(made, "agent-2", "jobs")


def test_a_pinned_pod_with_a_rule_about_further_nodes_stays_in_its_pool() -> None:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "x"}}}
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    made = three()
    pod = pinned("agent", "in-batch")
    pod.json["spec"]["affinity"]["podAntiAffinity"] = apart
    assert not placed(made, pod)


def spread(name: str, namespace: str) -> PodBuilder:
    rule = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    return a_pod(name, namespace).labels(app="x").spec(topologySpreadConstraints=[rule])


def test_domains_of_a_spread_are_those_of_the_pools_nodes() -> None:
    """A zone of other pools would stay empty, and the skew would stop the second pod."""
    made = play(node("n", **{ZONE: "a", **IN_BATCH}), node("other", **{ZONE: "b"}))
    assert placed(made, spread("one", "jobs")) == "n"
    assert placed(made, spread("two", "jobs")) == "n"


def test_a_node_that_leaves_the_pool_takes_its_zone_out_of_the_spread() -> None:
    large, small = node("large", **{ZONE: "a", **IN_BATCH}), node("small", **{ZONE: "b"})
    full = small.labels(IN_BATCH).allocatable(cpu="0", pods="0")
    made = play(large, full)
    assert placed(made, spread("one", "jobs")) == "large"
    assert not placed(made, spread("two", "jobs"))
    made.turn(Seen(NODE, node("small", **{ZONE: "b", POOL: "x"}).build()), after_s=20)
    assert made.the(Bind).node == "large"


def test_a_victim_whose_namespace_has_another_pool_is_evicted_within_its_budgets() -> None:
    made = three()
    assert placed(made, pinned("agent", "in-batch").requests(cpu="4"))
    made.see(a_pod("urgent", "jobs").requests(cpu="2").priority(9))
    assert made.the(Evict).pod.name == "agent"
    assert not made.of(DeletePod)


def test_a_victim_that_comes_to_another_pool_meanwhile_is_evicted_within_its_budgets() -> None:
    made = three()
    assert placed(made, a_pod("old", "jobs").requests(cpu="4"))
    made.see(a_pod("urgent", "jobs").requests(cpu="2").priority(9))
    mark = made.the(MarkVictim)
    made.turn(Seen(NODE, node("in-batch").build()))  # it belongs to the pool `default` now
    made.turn(Done(mark.id))
    assert made.the(Evict).pod.name == "old"
    assert not made.of(DeletePod)


def test_no_pod_is_evicted_beside_one_that_a_budget_keeps() -> None:
    made = three()
    assert placed(made, pinned("agent", "in-batch").requests(cpu="2"))
    assert placed(made, a_pod("old", "jobs").requests(cpu="2"))
    made.see(a_pod("urgent", "jobs").requests(cpu="4").priority(9))
    made.turn(Refused(made.the(Evict).id, 429, "it would violate the pod's disruption budget"))
    assert not made.of(MarkVictim)
    assert not made.of(DeletePod)


def test_a_victim_of_the_nodes_own_pool_is_deleted() -> None:
    made = three()
    assert placed(made, a_pod("old", "jobs").requests(cpu="4"))
    made.see(a_pod("urgent", "jobs").requests(cpu="2").priority(9))
    made.turn(Done(made.the(MarkVictim).id))
    assert made.the(DeletePod).pod.name == "old"


@pytest.mark.parametrize(
    ("pod", "line"),
    [
        (a_pod("p", "jobs"), "pool batch: the pool names namespace jobs"),
        (a_pod("p", "training"), "pool gpu: the pool selects by its labels namespace training"),
        (a_pod("p", "web"), "pool default: no pool selects namespace web"),
        (pinned("p", "in-gpu"), "pool gpu: its node affinity allows only node in-gpu"),
    ],
)
def test_explain_says_the_pool_and_why(pod: PodBuilder, line: str) -> None:
    made = three()
    built = pod.build()
    made.see(built)
    assert line in explained(made, built.metadata.name, built.metadata.namespace)


def test_without_pools_explain_says_nothing_of_them() -> None:
    made = Play(node("n"))
    made.see(a_pod("p", "jobs"))
    assert "pool" not in explained(made, "p", "jobs")


# --- rules about pods of several pools ------------------------------------------------------------


def apart(name: str, namespace: str, key: str = ZONE, **term: Any) -> PodBuilder:
    rule = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "x"}}, **term}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}
    return a_pod(name, namespace).labels(app="x").spec(affinity={"podAntiAffinity": required})


SHARE = "rule of InterPodAffinity concerns pods of other pools; these namespaces have to share"
ANY = "may concern pods of any namespace, so all would have to share a pool"


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        (apart("p", "jobs"), ""),
        (apart("p", "jobs", HOST, namespaces=["jobs", "web"]), ""),
        (apart("p", "jobs", namespaces=["jobs", "web"]), f"{SHARE} a pool: jobs, web"),
        (apart("p", "jobs", namespaceSelector={}), f"rule of InterPodAffinity {ANY}"),
        (
            apart("p", "jobs", namespaceSelector={"matchLabels": {"team": "ml"}}),
            f"{SHARE} a pool: jobs, training",
        ),
    ],
    ids=["own namespace", "of the node", "named", "every namespace", "selected"],
)
def test_a_pod_with_a_rule_about_pods_of_another_pool_waits(pod: PodBuilder, said: str) -> None:
    made = three()
    where = placed(made, pod)
    assert where == ("" if said else "in-batch")
    assert not said or said in made.condition()["message"]
    assert not said or said in explained(made, "p", "jobs")


def test_it_is_placed_once_the_namespaces_share_a_pool() -> None:
    made = three()
    selector = {"matchLabels": {"kind": "task"}}
    made.turn(Seen(NAMESPACE, a_namespace("research", team="ml", kind="task")))
    assert not placed(made, apart("p", "training", namespaces=["training", "web"]))
    made.turn(Seen(NAMESPACE, a_namespace("web", team="ml")), after_s=20)
    assert made.the(Bind).node == "in-gpu"
    assert not placed(made, apart("q", "jobs", namespaceSelector=selector))


class Anywhere(FilterPlugin):
    """A plugin that says nothing about its scope."""

    name = "Anywhere"

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        return np.zeros(nodes.size, dtype=np.int32)


class OfOneNode(Anywhere):
    name = "OfOneNode"
    scope = Scope.NODE


@pytest.mark.parametrize("plugin", [Anywhere, OfOneNode])
def test_pods_of_a_plugin_wait_unless_it_declares_its_scope(plugin: type[Any]) -> None:
    made = three(plugins=[plugin])
    waits = plugin is Anywhere
    assert placed(made, a_pod("p", "jobs")) == ("" if waits else "in-batch")
    assert not waits or f"rule of Anywhere {ANY}" in made.condition()["message"]


MODEL = 'device.attributes["gpu.example.com"].model == "{}"'


@pytest.mark.parametrize(("model", "is_stopped"), [("near", False), ("far", True), (".*", True)])
def test_a_device_of_several_nodes_stops_the_pods_that_could_be_given_it(
    model: str, is_stopped: bool
) -> None:
    """A claim of any model could be given either device."""
    made = play(node("n1"))
    near, far = (a_device(name, attributes={"model": name}) for name in ("near", "far"))
    selectors = [] if model == ".*" else [MODEL.format(model)]
    made.turn(
        Seen(DEVICE_CLASS, a_class()),
        Seen(RESOURCE_SLICE, a_slice(near)),
        Seen(RESOURCE_SLICE, a_slice(far, pool="far", allNodes=True)),
        Seen(RESOURCE_CLAIM, decode(ResourceClaim, a_claim_object("c", asks(*selectors)))),
    )
    pod = msgspec.structs.replace(a_claiming_pod("c").spec, scheduler_name="default-scheduler")
    made.see(msgspec.structs.replace(a_claiming_pod("c"), spec=pod))
    if is_stopped:
        assert f"rule of DynamicResources {ANY}" in made.condition()["message"]
    else:
        assert made.of(Patch)


def test_a_pod_whose_victim_is_kept_by_its_budget_waits_for_a_change() -> None:
    made = three()
    assert placed(made, pinned("agent", "in-batch").requests(cpu="4"))
    made.see(a_pod("urgent", "jobs").requests(cpu="2").priority(9))
    made.turn(Refused(made.the(Evict).id, 429, "it would violate the pod's disruption budget"))
    assert not made.of(MarkVictim)
    assert made.the(PatchPodStatus).nominated_node_name == "", "no room is made for it"
    larger = node("in-batch").labels(IN_BATCH)
    made.turn(Seen(NODE, larger.allocatable(cpu="4100m", pods="10").build()), after_s=30)
    assert not made.of(Evict), "it is not asked for again soon"
    made.turn(Gone(POD, made.parts.cluster.pods_seen["kube-system/agent"]), after_s=20)
    assert made.the(Bind).pod.name == "urgent"
