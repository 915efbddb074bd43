"""The plugins in a profile: enabled by their names, heeding each measurement and placement."""

import re

import pytest

from asched import names
from asched.core.cluster.facts import Listed
from asched.core.framework.profile import CannotBuildError
from asched.core.model.decode import decode
from asched.core.model.timestamp import rfc3339
from asched.hardware.load.node_metrics import NODE_METRICS, NodeMetrics
from asched.hardware.load.overcommitment import LowRiskOverCommitment
from asched.hardware.load.packing import TargetLoadPacking
from asched.hardware.load.variation import LoadVariationRiskBalancing
from asched.testing import START_S, World, given, node, pod

PLUGINS = (TargetLoadPacking, LoadVariationRiskBalancing, LowRiskOverCommitment)
DEFAULT_SCORES = (
    names.TAINT_TOLERATION,
    names.NODE_AFFINITY,
    names.NODE_RESOURCES_FIT,
    names.NODE_RESOURCES_BALANCED_ALLOCATION,
    names.POD_TOPOLOGY_SPREAD,
    names.INTER_POD_AFFINITY,
    names.IMAGE_LOCALITY,
    names.DYNAMIC_RESOURCES,
)


def world_with(plugin, *nodes, args=None) -> World:
    """Nothing but this plugin prefers any node."""
    profile = {
        "multiPoint": {"enabled": [{"name": plugin.name}]},
        "score": {"disabled": [{"name": name} for name in DEFAULT_SCORES]},
    }
    given_args = {plugin.name: args} if args is not None else None
    offered = [node(name, cpu=4) for name in nodes]
    for one in offered:
        one["status"]["capacity"] = {"cpu": "4"}
    return given(offered, plugins=[plugin], profile=profile, args=given_args)


def measure(world: World, at_s: float = 0.0, **cpus: str) -> None:
    """Milli-CPU by node, measured `at_s` after the world's beginning."""
    listed = [
        {
            "metadata": {"name": name},
            "timestamp": rfc3339(START_S + at_s),
            "usage": {"cpu": cpu, "memory": "1Gi"},
        }
        for name, cpu in cpus.items()
    ]
    objects = tuple(decode(NodeMetrics, one).following(None) for one in listed)
    world._settle([Listed(NODE_METRICS, objects)])


@pytest.mark.parametrize("plugin", PLUGINS)
def test_without_any_measurement_every_pod_is_placed(plugin) -> None:
    world = world_with(plugin, "a", "b")
    for number in range(8):
        assert world.schedule(pod(f"p{number}", cpu=1)).node, number


def test_packing_goes_where_the_target_is_reached_and_heeds_what_was_placed_since() -> None:
    world = world_with(TargetLoadPacking, "low", "near", "above")
    measure(world, low="100m", near="1200m", above="3000m")
    first = world.schedule(pod("first", cpu="200m"))  # 300m: near would be at 37.5 %
    assert first.node == "near"
    # near would be at 1200 + 300 + 900 = 2400m, 60 %: 27 points; low at 1000m, 25 %: 78 points.
    assert world.schedule(pod("second", cpu="600m")).node == "low"


def test_a_new_measurement_counts_for_the_next_pod() -> None:
    world = world_with(TargetLoadPacking, "a", "b")
    measure(world, a="1400m", b="400m")
    assert world.schedule(pod("one", cpu="50m")).node == "a"
    measure(world, at_s=15, a="3900m", b="400m")
    assert world.schedule(pod("two", cpu="50m")).node == "b"


def test_variation_goes_where_less_is_used() -> None:
    world = world_with(LoadVariationRiskBalancing, "busy", "idle")
    measure(world, busy="3500m", idle="300m")
    assert world.schedule(pod("one", cpu="50m", memory="64Mi")).node == "idle"


def test_overcommitment_goes_where_limits_stay_within_the_node() -> None:
    world = world_with(LowRiskOverCommitment, "promised", "free")
    measure(world, promised="100m", free="100m")
    greedy = pod("greedy", cpu=1, on="promised")
    greedy["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "16"}
    world.add(greedy)
    assert world.schedule(pod("one", cpu="50m")).node == "free"


def test_measurements_that_stopped_prefer_nobody_and_hold_up_nobody() -> None:
    world = world_with(TargetLoadPacking, "a", "b", args={"targetUtilization": 50})
    measure(world, a="1000m", b="100m")
    assert world.schedule(pod("one", cpu="10m")).node == "a"
    world.wait(200)
    placed = [world.schedule(pod(f"p{n}", cpu="10m")).node for n in range(20)]
    assert set(placed) == {"a", "b"}  # drawn, as between equals


@pytest.mark.parametrize(
    ("plugin", "args", "message"),
    [
        (TargetLoadPacking, {"targetUtilization": 0}, "targetUtilization 0 is not in 1..99"),
        (TargetLoadPacking, {"defaultRequestsMultiplier": "x"}, 'Multiplier "x" is not a number'),
        (TargetLoadPacking, {"defaultRequests": {"cpu": "?"}}, "defaultRequests.cpu"),
        (TargetLoadPacking, {"watcherAddress": "http://w"}, "watcherAddress is not implemented"),
        (
            LoadVariationRiskBalancing,
            {"metricProvider": {"type": "Prometheus"}},
            'metricProvider.type "Prometheus" is not implemented',
        ),
        (
            LoadVariationRiskBalancing,
            {"metricProvider": {"insecureSkipVerify": False}},
            "metricProvider.insecureSkipVerify: false has no meaning",
        ),
        (LoadVariationRiskBalancing, {"safeVarianceMargin": -1.0}, "must not be negative"),
        (LowRiskOverCommitment, {"riskLimitWeights": {"disk": 1.0}}, "there are cpu and memory"),
        (LowRiskOverCommitment, {"riskLimitWeights": {"cpu": 1.5}}, "is not in 0..1"),
        (LowRiskOverCommitment, {"smoothingWindowSize": 0}, "at least 1"),
        (TargetLoadPacking, {"kind": "OtherArgs"}, "not of kubescheduler.config.k8s.io/v1"),
    ],
)
def test_args_without_a_meaning_are_refused(plugin, args, message) -> None:
    with pytest.raises(CannotBuildError, match=re.escape(message)):
        world_with(plugin, "a", args=args)


def test_args_may_be_written_as_upstreams_users_have_them() -> None:
    args = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "TargetLoadPackingArgs",
        "defaultRequests": {"cpu": "2000m"},
        "defaultRequestsMultiplier": "2",
        "targetUtilization": 70,
        "metricProvider": {"type": "KubernetesMetricsServer"},
    }
    world = world_with(TargetLoadPacking, "a", args=args)
    assert world.schedule(pod("one")).node == "a"
