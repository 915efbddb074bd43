"""LoadAwareScheduling by its plain rules: what args come to, points, thresholds, wakers."""

import random
import re
from typing import Any

import numpy as np
import pytest

from asched.core.model.decode import decode
from asched.core.model.kinds import NODE
from asched.core.state.facts import Seen
from asched.hardware.koordinator.load_aware import (
    LoadAwareScheduling,
    LoadAwareSchedulingArgs,
    percent,
)
from asched.hardware.koordinator.node_load import Aggregated
from asched.hardware.koordinator.node_metric import NODE_METRIC, NodeMetric
from asched.host.user_plugins.arguments import decoded
from asched.plugin import I64, Action
from tests.builders import PodBuilder, a_cluster, a_node, a_pod, all_rows, pending
from tests.hardware.koordinator.worlds import NOW_S, Node

Json = dict[str, Any]
FACTORS = "scheduling.koordinator.sh/load-estimated-scaling-factors"
GPU = "example.com/gpu"


def args_of(**args: Any) -> LoadAwareSchedulingArgs:
    found: LoadAwareSchedulingArgs = decoded(args, LoadAwareSchedulingArgs)
    return found


def test_what_is_not_given_is_koordinators_default() -> None:
    args = args_of()
    assert args.factors == {"cpu": 85, "memory": 70}
    assert args.weights == {"cpu": 1, "memory": 1}
    assert args.thresholds == {"cpu": 65, "memory": 95}
    assert args.resources == ("cpu", "memory")
    args = args_of(estimatedScalingFactors={"memory": 50, GPU: 10}, usageThresholds={"cpu": 0})
    assert args.factors == {"cpu": 85, "memory": 50, GPU: 10}
    assert args.thresholds == {"cpu": 0}
    assert args_of(dominantResourceWeight=1).weights == {}
    assert args_of(resourceWeights={"cpu": 3}).weights == {"cpu": 3}


@pytest.mark.parametrize(
    "args",
    [
        {"usageThresholds": {GPU: 1}},
        {"prodUsageThresholds": {GPU: 1}},
        {"estimatedScalingFactors": {GPU: 1}},
        {"supportedResources": [GPU]},
        {"aggregated": {"usageThresholds": {GPU: 1}}},
    ],
)
def test_every_resource_that_is_named_is_read(args: Json) -> None:
    assert args_of(**args).resources == ("cpu", GPU, "memory")


@pytest.mark.parametrize(
    ("field", "least"),
    [
        ("usageThresholds", 0),
        ("prodUsageThresholds", 0),
        ("estimatedScalingFactors", 1),
        ("resourceWeights", 1),
        ("aggregated.usageThresholds", 0),
        ("dominantResourceWeight", 0),
    ],
)
def test_percents_and_weights_have_a_range(field: str, least: int) -> None:
    def given(amount: int) -> Json:
        outer, _, inner = field.partition(".")
        if inner:
            return {outer: {inner: {"cpu": amount}}}
        return {field: amount if field == "dominantResourceWeight" else {"cpu": amount}}

    for amount in (least, 100):
        args_of(**given(amount))
    path = field if field == "dominantResourceWeight" else f"{field}.cpu"
    for amount in (least - 1, 101):
        message = re.escape(f"{path} {amount} is not in {least}..100")
        with pytest.raises(ValueError, match=message):
            args_of(**given(amount))


def test_percentiles_count_where_they_are_named_with_thresholds() -> None:
    def told(**fields: Any) -> tuple[Aggregated | None, Aggregated | None]:
        aggregated = args_of(aggregated=fields).aggregated
        assert aggregated is not None
        return aggregated.usage, aggregated.score

    some = {"usageThresholds": {"cpu": 1}}
    assert told() == (None, None)
    assert told(**some) == (None, None)
    assert told(usageAggregationType="p95") == (None, None)
    assert told(**some, usageAggregationType="p95") == (Aggregated("p95", 0), None)
    assert told(**some, usageAggregationType="p50", usageAggregatedDuration="5m") == (
        Aggregated("p50", 300),
        None,
    )
    assert told(scoreAggregationType="avg", scoreAggregatedDuration="1h") == (
        None,
        Aggregated("avg", 3600),
    )
    assert told(scoreAggregatedDuration="1h") == (None, None)


# --- nodes ---------------------------------------------------------------------------------------


def a_plugin(node: Node, **args: Any) -> LoadAwareScheduling:
    return LoadAwareScheduling(args_of(**args), node.cluster)


def points(plugin: LoadAwareScheduling, node: Node, pod: PodBuilder) -> list[int]:
    return plugin.score(pending(node.cluster, pod), all_rows(node.cluster), None).tolist()


@pytest.mark.parametrize("seed", range(40))
def test_points_are_the_weighted_mean_of_what_is_left_and_of_the_scarcest(seed: int) -> None:
    rng = random.Random(seed)
    weights = {name: rng.randrange(1, 4) for name in ("cpu", "memory") if rng.random() < 0.7}
    dominant = rng.choice((0, 0, 1, 3))
    node = Node()
    offers, uses = {}, {}
    for at in range(2, 12):
        name = f"n{at}"
        offers[name] = {"cpu": rng.choice((0, 1, 10)), "memory": rng.choice((0, 10, 16))}
        uses[name] = {key: rng.randrange(most + 2) for key, most in offers[name].items()}
        offered = {key: str(amount) for key, amount in offers[name].items()}
        node.cluster.apply(Seen(NODE, a_node(name).offering_only(**offered).build()))
        used = {key: str(amount) for key, amount in uses[name].items()}
        node.report(name=name, nodeMetric={"nodeUsage": used})
    plugin = a_plugin(
        node,
        resourceWeights=weights,
        dominantResourceWeight=dominant,
        estimatedScalingFactors={"cpu": 100, "memory": 100},
    )
    pod = a_pod().requests(cpu="1", memory="3")
    found = points(plugin, node, pod)
    if not weights and not dominant:
        weights = {"cpu": 1, "memory": 1}
    for name, offered in offers.items():
        left = {}
        for key, asked in (("cpu", 1), ("memory", 3)):
            load = uses[name][key] + asked
            fits = offered[key] and load <= offered[key]
            left[key] = (offered[key] - load) * 100 // offered[key] if fits else 0
        total = sum(left[key] * weight for key, weight in weights.items())
        total += min(left.values()) * dominant
        mean = total // (sum(weights.values()) + dominant)
        assert found[node.cluster.nodes.row_of[name]] == mean, (name, offered, uses[name])


@pytest.mark.parametrize(
    ("load", "offered", "expected"),
    [
        (0, 0, 0),
        (5, 0, 0),
        (1, 1, 100),
        (0, 1, 0),
        (-5, 10, 0),
        (649, 1000, 65),
        (645, 1000, 65),
        (644, 1000, 64),
        (1, 200, 1),
        (3000, 1000, 300),
    ],
)
def test_a_percentage_is_rounded_with_halves_away_from_zero(
    load: int, offered: int, expected: int
) -> None:
    both: I64 = np.array([[load], [offered]], dtype=np.int64)
    assert percent(*both).tolist() == [expected]


@pytest.mark.parametrize(
    ("owner", "is_let_in"),
    [
        (None, False),
        ({"kind": "DaemonSet", "controller": True}, True),
        ({"kind": "DaemonSet", "controller": False}, False),
        ({"kind": "ReplicaSet", "controller": True}, False),
    ],
)
def test_pods_of_daemon_sets_are_let_in(owner: Json | None, *, is_let_in: bool) -> None:
    node = Node().report(nodeMetric={"nodeUsage": {"cpu": "9"}}, at_s=NOW_S)
    plugin = a_plugin(node)
    pod = a_pod().requests(cpu="9")
    if owner:
        pod.metadata(ownerReferences=[{"name": "o", "uid": "o", **owner}])
    codes = plugin.filter(pending(node.cluster, pod), all_rows(node.cluster), None).tolist()
    assert codes == ([0] if is_let_in else [2])
    node.report(nodeMetric=None)  # nothing is told of its load
    assert plugin.filter(pending(node.cluster, pod), all_rows(node.cluster), None).tolist() == [0]
    assert points(plugin, node, pod) == [0]


@pytest.mark.parametrize(("threshold", "is_let_in"), [(59, False), (60, True), (0, True)])
def test_a_threshold_may_be_met_and_none_is_none(threshold: int, *, is_let_in: bool) -> None:
    """Of ten cores five are in use, and the pod will use one."""
    node = Node().report(nodeMetric={"nodeUsage": {"cpu": "5", "memory": "250Gi"}}, at_s=NOW_S)
    plugin = a_plugin(
        node, usageThresholds={"cpu": threshold}, estimatedScalingFactors={"cpu": 100}
    )
    pod = pending(node.cluster, a_pod().requests(cpu="1"))
    codes = plugin.filter(pod, all_rows(node.cluster), None).tolist()
    assert codes == ([0] if is_let_in else [2])


@pytest.mark.parametrize("is_allowed", [False, True])
def test_pods_say_something_of_themselves_only_where_that_is_allowed(*, is_allowed: bool) -> None:
    cluster = a_cluster()
    plugin = LoadAwareScheduling(args_of(allowCustomizeEstimation=is_allowed), cluster)
    plain, modest = (a_pod(name).requests(cpu="4") for name in "pq")
    modest.metadata(annotations={FACTORS: '{"cpu": 10}'})
    one, other = (pending(cluster, pod) for pod in (plain, modest))
    assert (one.cls is not other.cls) == is_allowed
    assert (plugin.share_key(one) != plugin.share_key(other)) == is_allowed


def test_what_is_expected_of_them_and_their_class_tell_pods_apart() -> None:
    node = Node()
    plugin = a_plugin(node)
    free, mid = ({"koordinator.sh/priority-class": f"koord-{one}"} for one in ("free", "mid"))
    daemon = {"name": "o", "uid": "o", "kind": "DaemonSet", "controller": True}
    pods = [
        a_pod("a").requests(cpu="1"),
        a_pod("b").requests(cpu="2"),
        a_pod("c").requests({"kubernetes.io/mid-cpu": "1000", "kubernetes.io/mid-memory": "200Mi"}),
        a_pod("d").requests(cpu="1").metadata(ownerReferences=[daemon]),
        a_pod("f").labels(free),
    ]
    pods[2].labels(mid)
    keys = [plugin.share_key(pending(node.cluster, pod)) for pod in pods]
    assert len(set(keys)) == len(keys)
    other = a_pod("e").requests(cpu="1").image("another")
    assert plugin.share_key(pending(node.cluster, other)) == keys[0]


def test_whoever_asks_first_takes_in_what_was_told() -> None:
    node = Node().report(nodeMetric={"nodeUsage": {"cpu": "9"}}, at_s=NOW_S)
    pod = a_pod().requests(cpu="1")
    info = pending(node.cluster, pod)
    filtering, scoring, stamping = (a_plugin(node) for _ in range(3))
    assert filtering.filter(info, all_rows(node.cluster), None).tolist() == [2]
    assert points(scoring, node, pod)[0] > 0
    stamp = stamping.stamp(info, None)
    node.wait(181)
    assert stamping.stamp(info, None) != stamp
    assert points(scoring, node, pod) == [0]


def test_who_waits_is_woken_by_pods_that_go_nodes_that_change_and_reports() -> None:
    told = {one.trigger.resource: one.trigger.action for one in a_plugin(Node()).registrations()}
    assert told == {
        "Pod": Action.DELETE,
        "Node": Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_ANNOTATION,
        NODE_METRIC.resource: Action.ADD | Action.UPDATE | Action.DELETE,
    }


def test_the_metric_of_a_node_is_that_of_its_name() -> None:
    node = Node()
    node.cluster.apply(Seen(NODE_METRIC, decode(NodeMetric, {"metadata": {"name": "other"}})))
    node.report(name="other")
    assert points(a_plugin(node), node, a_pod()) == [0]
