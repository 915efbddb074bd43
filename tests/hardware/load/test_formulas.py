"""Points at the edges of the formulas, and args at those of their ranges."""

from typing import Any

import numpy as np
import pytest

from asched.hardware.load.packing import TargetLoadPacking, TargetLoadPackingArgs, packed, rounded
from asched.hardware.load.provider import LoadArgs, MetricProvider
from asched.hardware.load.variation import (
    LoadVariationRiskBalancing,
    LoadVariationRiskBalancingArgs,
    variation_points,
)
from asched.plugin import ScorePlugin
from tests.builders import all_rows
from tests.hardware.load.worlds import NOW_S, World, a_node, a_pod


@pytest.mark.parametrize(
    ("used", "capacity", "target", "points"),
    [
        (0, 1000, 40, 40),
        (200, 1000, 40, 70),
        (400, 1000, 40, 100),  # the target itself
        (401, 1000, 40, 40),
        (700, 1000, 40, 20),
        (1000, 1000, 40, 0),
        (1001, 1000, 40, 0),
        (1000, 0, 40, 40),  # as if nothing were used
        (np.nan, 1000, 40, 0),
        (990, 1000, 99, 100),
        (0, 1000, 1, 1),
    ],
)
def test_packing_is_best_at_its_target(
    used: float, capacity: float, target: int, points: int
) -> None:
    assert packed(np.array([used]), np.array([capacity]), target).tolist() == [points]


def test_halves_are_rounded_up() -> None:
    values = np.array([0.0, 0.49999999999999994, 0.5, 1.5, 2.4, 2.5])
    assert rounded(values).tolist() == [0, 0, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("measured", "asked", "settings", "points"),
    [
        ((0, 0, 100), 0, (1, 1), 100),
        ((30, 0, 100), 20, (1, 1), 75),
        ((30, 20, 100), 20, (1, 1), 65),
        ((30, 20, 100), 20, (2, 1), 55),
        ((30, 25, 100), 20, (1, 2), 50),
        ((90, 0, 100), 50, (1, 1), 50),  # no more than all of it
        ((250, 0, 100), 0, (1, 1), 50),
        ((0, 250, 100), 0, (1, 1), 50),
        ((0, 90, 100), 0, (5, 1), 50),
        ((-10, 0, 100), 20, (1, 1), 90),
        ((30, 50, 100), 20, (1, 0), 75),  # the zeroth root of what is below 1
        ((30, 100, 100), 20, (1, 0), 25),
        ((1, 1, 0), 1, (1, 1), 0),
    ],
)
def test_variation_is_the_mean_of_use_and_deviation(
    measured: tuple[float, float, float],
    asked: int,
    settings: tuple[float, float],
    points: float,
) -> None:
    mean, deviation, offered = (np.array([float(one)]) for one in measured)
    found = variation_points(mean, deviation, offered, asked, *settings)
    assert found == pytest.approx([points])


@pytest.mark.parametrize(
    ("args", "resources", "overhead", "predicted"),
    [
        ({}, {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}}, {}, 3000),
        ({}, {"requests": {"cpu": "1"}}, {}, 1500),
        ({}, {"requests": {"cpu": "1m"}}, {}, 2),  # halves up
        ({}, {"requests": {"memory": "1"}}, {"cpu": "7m"}, 1007),
        ({}, {}, {"memory": "1"}, 1000),
        ({"default_requests_multiplier": "0"}, {"requests": {"cpu": "1"}}, {}, 0),
        ({"default_requests": {"cpu": 2}}, {}, {}, 2000),
        ({"default_requests": {"memory": "1"}}, {}, {}, 0),
    ],
)
def test_what_a_pod_is_predicted_to_use(
    args: dict[str, Any], resources: dict[str, Any], overhead: dict[str, str], predicted: int
) -> None:
    world = World()
    pod = a_pod("p", **resources)
    pod["spec"]["overhead"] = overhead
    plugin = TargetLoadPacking(TargetLoadPackingArgs(**args), world.cluster)
    assert plugin.share_key(world.pending(pod)) == predicted


@pytest.mark.parametrize("target", [1, 99])
def test_targets_have_a_range(target: int) -> None:
    TargetLoadPackingArgs(target_utilization=target)
    for beyond in (0, 100):
        with pytest.raises(ValueError, match=r"is not in 1\.\.99"):
            TargetLoadPackingArgs(target_utilization=beyond)


@pytest.mark.parametrize("text", ["inf", "nan", "-1", "", "much"])
def test_a_multiplier_is_a_number_from_0_on(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number from 0 on"):
        TargetLoadPackingArgs(default_requests_multiplier=text)


def test_what_has_no_meaning_with_the_metrics_server_is_refused() -> None:
    for fields in ({"address": "http://p"}, {"token": "t"}):
        with pytest.raises(ValueError, match="have no meaning with"):
            MetricProvider(**fields)
    MetricProvider()
    for kind in (TargetLoadPackingArgs, LoadVariationRiskBalancingArgs, LoadArgs):
        with pytest.raises(ValueError, match="watcherAddress"):
            kind(watcher_address="http://w")
    LoadVariationRiskBalancingArgs(safe_variance_margin=0, safe_variance_sensitivity=0)
    for name in ("safe_variance_margin", "safe_variance_sensitivity"):
        with pytest.raises(ValueError, match="must not be negative"):
            LoadVariationRiskBalancingArgs(**{name: -0.1})


@pytest.mark.parametrize("by_stamp", [False, True])
@pytest.mark.parametrize("kind", [TargetLoadPacking, LoadVariationRiskBalancing])
def test_whoever_asks_first_takes_in_what_was_measured(
    kind: type[ScorePlugin], *, by_stamp: bool
) -> None:
    world = World()
    world.add(a_node("n1"), a_node("n2"))
    args: Any = {
        TargetLoadPacking: TargetLoadPackingArgs,
        LoadVariationRiskBalancing: LoadVariationRiskBalancingArgs,
    }[kind]
    plugin: Any = kind(args(), world.cluster)
    pod = world.pending(a_pod("p", requests={"cpu": "100m", "memory": "1Gi"}))
    before = plugin.stamp(pod, None)
    assert plugin.score(pod, all_rows(world.cluster), None).tolist() == [0, 0]
    world.measure({"n1": ("1", "1Gi")}, NOW_S)
    if by_stamp:
        assert plugin.stamp(pod, None) != before
    first, second = plugin.score(pod, all_rows(world.cluster), None).tolist()
    assert (first > 0, second) == (True, 0)
