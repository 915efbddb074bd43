"""LoadAwareScheduling in a profile: who is let in, who waits, what wakes them."""

import re

import pytest

from asched.core.cluster.facts import Seen
from asched.core.framework.profile import CannotBuildError
from asched.core.model.decode import decode
from asched.core.model.timestamp import rfc3339
from asched.hardware.koordinator.load_aware import LoadAwareScheduling
from asched.hardware.koordinator.node_metric import NODE_METRIC, NodeMetric
from asched.testing import World, given, node, pod


def world_with(args=None, *nodes: str) -> World:
    given_args = {"LoadAwareScheduling": args or {}}
    offered = [node(name, cpu=4) for name in nodes or ("n1",)]
    return given(offered, plugins=[LoadAwareScheduling], args=given_args)


def report(world: World, name: str, cpu: str, age_s: float = 0.0, **status) -> None:
    told = {
        "metadata": {"name": name},
        "status": {
            "updateTime": rfc3339(world.now_s - age_s),
            "nodeMetric": {"nodeUsage": {"cpu": cpu, "memory": "1Gi"}},
            **status,
        },
    }
    world._settle([Seen(NODE_METRIC, decode(NodeMetric, told))])


def test_a_loaded_node_is_left_out_until_it_is_reported_idle() -> None:
    world = world_with()
    report(world, "n1", "3000m")
    refused = world.schedule(pod("web"))
    assert "1 node(s) cpu usage exceed threshold" in refused.message
    report(world, "n1", "300m")
    world.wait(15)
    assert world.outcome("web").node == "n1"


def test_what_was_placed_since_the_report_counts() -> None:
    world = world_with()
    report(world, "n1", "100m")
    placed = [world.schedule(pod(f"p{n}", cpu="900m")).node for n in range(4)]
    # 100m, and 85 % of 900m each: the fourth would be at 79 %.
    assert placed == ["n1", "n1", "n1", ""]


@pytest.mark.parametrize("args", [{}, {"enableScheduleWhenNodeMetricsExpired": True}])
def test_reports_that_stopped_hold_up_nobody(args) -> None:
    world = world_with(args)
    report(world, "n1", "3900m")
    world.wait(181)
    assert world.schedule(pod("web")).node == "n1"


def test_reports_that_stopped_hold_up_pods_where_that_is_asked_for() -> None:
    world = world_with({"enableScheduleWhenNodeMetricsExpired": False})
    report(world, "n1", "100m")
    world.wait(181)
    assert "1 node(s) nodeMetric expired" in world.schedule(pod("web")).message
    report(world, "n1", "100m")
    world.wait(15)
    assert world.outcome("web").node == "n1"


def test_nodes_without_a_report_take_everybody_and_come_last() -> None:
    world = world_with(None, "silent", "idle")
    report(world, "idle", "100m")
    assert world.schedule(pod("web")).node == "idle"
    report(world, "idle", "3000m")
    assert world.schedule(pod("next")).node == "silent"


def test_a_threshold_in_a_nodes_annotation_goes_before_that_of_the_profile() -> None:
    world = world_with()
    report(world, "n1", "1000m")
    key = "scheduling.koordinator.sh/usage-thresholds"
    world.add(node("n1", cpu=4, annotations={key: '{"usageThresholds": {"cpu": 20}}'}))
    assert world.schedule(pod("web")).node == ""
    world.add(node("n1", cpu=4, annotations={key: "nonsense"}))
    world.wait(15)
    assert world.outcome("web").node == "n1"


def test_what_a_pod_says_of_itself_counts_where_that_is_allowed() -> None:
    key = "scheduling.koordinator.sh/load-estimated-scaling-factors"
    greedy = {"annotations": {key: '{"cpu": 100}'}}
    for is_allowed in (False, True):
        world = world_with({"allowCustomizeEstimation": is_allowed})
        report(world, "n1", "0")
        # 2900m: 62 % at a factor of 85, 73 % at one of 100.
        assert world.schedule(pod("modest", cpu="2900m")).node == "n1"
        world = world_with({"allowCustomizeEstimation": is_allowed})
        report(world, "n1", "0")
        placed = world.schedule(pod("greedy", cpu="2900m", **greedy)).node
        assert placed == ("" if is_allowed else "n1")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"usageThresholds": {"cpu": 101}}, "usageThresholds.cpu 101 is not in 0..100"),
        ({"resourceWeights": {"cpu": 0}}, "resourceWeights.cpu 0 is not in 1..100"),
        ({"resourceWeights": {"x/y": 1}}, "resourceWeights.x/y: estimatedScalingFactors has none"),
        ({"nodeMetricExpirationSeconds": 0}, "nodeMetricExpirationSeconds must be at least 1"),
        ({"estimator": "own"}, 'estimator "own" is not implemented'),
        ({"aggregated": {"usageAggregationType": "p42"}}, '"p42" is none of avg, p50'),
        ({"aggregated": {"scoreAggregatedDuration": "5"}}, '"5" is not a duration'),
        ({"kind": "OtherArgs"}, "not of kubescheduler.config.k8s.io/v1 LoadAwareSchedulingArgs"),
    ],
)
def test_args_without_a_meaning_are_refused(args, message) -> None:
    with pytest.raises(CannotBuildError, match=re.escape(message)):
        world_with(args)
