"""LoadAwareScheduling against its twin, on random nodes, reports and pods."""

import json
import random
import sys
from typing import Any

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Seen
from asched.core.cluster.pods import PodInfo
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.timestamp import rfc3339
from asched.hardware.koordinator.load_aware import LoadAwareScheduling, LoadAwareSchedulingArgs
from asched.hardware.koordinator.node_metric import NODE_METRIC, NodeMetric
from asched.host.user_plugins.arguments import decoded
from tests.builders import all_rows
from tests.conformance.twins import node_metric as twin

Json = dict[str, Any]
NOW_S = 1_800_000_000.0
NODES, PODS, SEEDS = 25, 4, range(5)


def random_args(rng: random.Random) -> Json:
    args: Json = {
        "filterExpiredNodeMetrics": rng.random() < 0.9,
        "enableScheduleWhenNodeMetricsExpired": rng.random() < 0.5,
        "nodeMetricExpirationSeconds": 180,
        "resourceWeights": {"cpu": rng.randrange(1, 4), "memory": rng.randrange(1, 4)},
        "dominantResourceWeight": rng.choice((0, 0, 2)),
        "usageThresholds": {"cpu": rng.choice((50, 65)), "memory": rng.choice((60, 95))},
        "prodUsageThresholds": rng.choice(({}, {"cpu": 40, "memory": 50})),
        "prodUsageIncludeSys": rng.random() < 0.5,
        "scoreAccordingProdUsage": rng.random() < 0.5,
        "estimatedScalingFactors": {"cpu": 85, "memory": rng.choice((70, 33))},
        "estimatedSecondsAfterPodScheduled": rng.choice((None, 120)),
        "aggregated": None,
    }
    if rng.random() < 0.5:
        args["aggregated"] = {
            "usageThresholds": rng.choice(({}, {"cpu": 55})),
            "usageAggregationType": rng.choice(("p95", "avg")),
            "usageAggregatedDuration": rng.choice(("", "5m0s", "30m0s")),
            "scoreAggregationType": rng.choice(("", "p95")),
            "scoreAggregatedDuration": rng.choice(("", "5m0s")),
        }
    return args


def amounts(rng: random.Random, cpu: int, memory: int) -> Json:
    return {"cpu": f"{rng.randrange(cpu)}m", "memory": str(rng.randrange(memory))}


def random_node(rng: random.Random, name: str) -> Json:
    offered = {
        "cpu": f"{rng.choice((4000, 16000))}m",
        "memory": f"{rng.choice((8, 32))}Gi",
        "pods": "110",
    }
    node: Json = {
        "metadata": {"name": name, "uid": f"node-{name}", "annotations": {}},
        "status": {"allocatable": offered},
    }
    if rng.random() < 0.2:
        aggregated = {"usageThresholds": {"cpu": 30}, "usageAggregationType": "p95"}
        custom = rng.choice(
            (
                {"usageThresholds": {"cpu": 20}},
                {"prodUsageThresholds": {"memory": 10}},
                {"aggregatedUsage": {**aggregated, "usageAggregatedDuration": "5m0s"}},
            )
        )
        node["metadata"]["annotations"]["scheduling.koordinator.sh/usage-thresholds"] = json.dumps(
            custom
        )
        node["metadata"]["custom"] = custom  # for the twin
    return node


def random_pod(rng: random.Random, name: str, on: str = "", bound_s: float = 0.0) -> Json:
    def container() -> Json:
        kinds = rng.choice(
            (("cpu", "memory"), ("cpu",), (), twin.BATCH.values(), twin.MID.values())
        )
        resources: Json = {}
        for field in ("requests", "limits"):
            resources[field] = {
                one: f"{rng.randrange(1, 3000)}"
                + ("m" if one == "cpu" else "Mi" if "memory" in one else "")
                for one in kinds
                if rng.random() < 0.7
            }
        return {"name": "c", "image": "x", "resources": resources}

    labels = {}
    if rng.random() < 0.4:
        labels["koordinator.sh/priority-class"] = "koord-" + rng.choice(
            ("prod", "batch", "mid", "free")
        )
    if rng.random() < 0.3:
        labels["koordinator.sh/qosClass"] = rng.choice(("BE", "LS", "LSR", "nonsense"))
    told = {"type": "PodScheduled", "status": "True", "lastTransitionTime": rfc3339(bound_s)}
    owners = [{"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}]
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"pod-{name}",
            "labels": labels,
            **({"ownerReferences": owners} if rng.random() < 0.05 else {}),
        },
        "spec": {
            "priority": rng.choice((0, 0, 3500, 5500, 7500, 9500)),
            "containers": [container() for _ in range(rng.randrange(1, 3))],
            "initContainers": [container()] if rng.random() < 0.2 else [],
            **({"nodeName": on} if on else {}),
        },
        "status": {"conditions": [told]} if on else {},
    }


def random_metric(rng: random.Random, name: str, there: list[Json]) -> Json:
    age_s = rng.choice((5, 30, 100, 179, 180, 400))
    status: Json = {"updateTime": rfc3339(NOW_S - age_s)}
    if rng.random() < 0.03:
        del status["updateTime"]
        status["updateTime"] = rfc3339(0)
    if rng.random() < 0.95:
        status["nodeMetric"] = {
            "nodeUsage": {**amounts(rng, 4000, 8 << 30), "devices": [{"type": "gpu"}]},
            "systemUsage": amounts(rng, 500, 1 << 28),
        }
        if rng.random() < 0.7:
            status["nodeMetric"]["aggregatedNodeUsages"] = [
                {"duration": d, "usage": {p: amounts(rng, 6000, 8 << 30) for p in ("avg", "p95")}}
                for d in rng.sample(("5m0s", "10m0s", "15m0s"), rng.randrange(1, 3))
            ]
    status["podsMetric"] = [
        {
            "namespace": "default",
            "name": pod["metadata"]["name"],
            "podUsage": amounts(rng, 2000, 1 << 30),
            "priority": rng.choice(("koord-prod", twin.priority_class(pod))),
        }
        for pod in there
        if rng.random() < 0.7
    ]
    spec = {"metricCollectPolicy": {"reportIntervalSeconds": 20}} if rng.random() < 0.3 else {}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def compare(seed: int) -> tuple[int, int]:
    """How many states of a node were compared, and how many rejected the pod."""
    rng = random.Random(seed)
    args = random_args(rng)
    cluster = Cluster()
    cluster.begin_turn(NOW_S, is_quiet=True)
    made: LoadAwareSchedulingArgs = decoded(args, LoadAwareSchedulingArgs)
    plugin = LoadAwareScheduling(made, cluster)
    nodes, there, metrics = {}, {}, {}
    for at in range(NODES):
        name = f"n{at}"
        nodes[name] = random_node(rng, name)
        cluster.apply(Seen(NODE, decode(Node, nodes[name])))
        bound = [NOW_S - rng.choice((1, 40, 70, 200, 5000)) for _ in range(rng.randrange(4))]
        there[name] = [(random_pod(rng, f"{name}-{n}", name, s), s) for n, s in enumerate(bound)]
        for pod, _ in there[name]:
            cluster.apply(Seen(POD, decode(Pod, pod)))
        if rng.random() < 0.9:
            metrics[name] = random_metric(rng, name, [pod for pod, _ in there[name]])
            cluster.apply(Seen(NODE_METRIC, decode(NodeMetric, metrics[name])))
    compared = rejected = 0
    for at in range(PODS):
        pod = random_pod(rng, f"new{at}")
        record = decode(Pod, pod)
        info = PodInfo(record, cluster.classes.class_of(record))
        plugin.stamp(info, None)
        view = all_rows(cluster)
        codes, points = plugin.filter(info, view, None), plugin.score(info, view, None)
        for name, node in nodes.items():
            row, metric = cluster.nodes.row_of[name], metrics.get(name)
            code = int(codes[row])
            said = plugin.explain(info, code).message if code else ""
            state = node, metric, there[name], pod, args, NOW_S
            assert said == twin.verdict(*state), (name, pod)
            assert points[row] == twin.points(*state), (name, pod)
            compared, rejected = compared + 1, rejected + bool(said)
    return compared, rejected


@pytest.mark.parametrize("seed", SEEDS)
def test_filter_and_score_say_what_their_twins_say(seed: int) -> None:
    compared, rejected = compare(seed)
    assert compared == NODES * PODS
    assert 0 < rejected < compared


if __name__ == "__main__":  # how many seeds
    told = [compare(seed) for seed in range(int(sys.argv[1]))]
    print(*(sum(column) for column in zip(*told, strict=True)))  # noqa: T201
