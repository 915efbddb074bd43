"""What a report tells of the load over a time, and a node's annotations of thresholds and size."""

from typing import Any

import pytest

from asched.hardware.koordinator.node_load import FILTER, SCORE, Aggregated, Profile
from tests.hardware.koordinator.worlds import Json, Node, usage


def told_of(duration: str, **percentiles: str | None) -> Json:
    usages = {kind: {"cpu": cpu} if cpu else {} for kind, cpu in percentiles.items()}
    return {"duration": duration, "usage": usages}


SEVERAL = [
    told_of("5m0s", avg="3", p95="4"),
    told_of("soon", p95="1"),
    told_of("1h", avg="5", p95=None),
    told_of("30m", p95="6"),
    told_of("30m0s", p95="7"),  # of equals the last
    told_of("10m0s", p95="8"),
]


@pytest.mark.parametrize(
    ("aggregated", "told", "load"),
    [
        (None, SEVERAL, 3000),
        (Aggregated("p95", 0), SEVERAL, 8000),  # the longest that was told
        (Aggregated("avg", 0), SEVERAL, 6000),
        (Aggregated("p95", 300), SEVERAL, 5000),
        (Aggregated("p95", 600), SEVERAL, 9000),
        (Aggregated("avg", 3600), SEVERAL, 6000),
        # there is no such percentile: what all pods are expected to use, or the last usage
        (Aggregated("p95", 3600), SEVERAL, 2000),
        (Aggregated("p95", 299), SEVERAL, 2000),
        (Aggregated("p50", 300), SEVERAL, 2000),
        (Aggregated("p50", 0), SEVERAL, 3000),
        (Aggregated("p95", 0), None, 3000),
        (Aggregated("p95", 300), None, 2000),
        (Aggregated("p95", 0), [{"duration": "5m"}], 3000),
        (Aggregated("p95", 0), [told_of("0", p95="4")], 5000),
    ],
)
def test_a_percentile_stands_in_place_of_the_last_usage(
    aggregated: Aggregated | None, told: list[Json] | None, load: int
) -> None:
    """Of two pods one is measured."""
    info = {"nodeUsage": {"cpu": "2"}, "aggregatedNodeUsages": told}
    for_filter = Node(profile=Profile({}, {}, aggregated))
    for_score = Node(score=aggregated)
    for node in (for_filter, for_score):
        node.pod("p")
        node.pod("q")
        node.report(usage("1"), nodeMetric=info)
    assert (for_filter.load(FILTER), for_filter.load(SCORE)) == (load, 3000)
    assert (for_score.load(FILTER), for_score.load(SCORE)) == (3000, load)


# --- thresholds and what is offered --------------------------------------------------------------

OURS = Profile({"cpu": 65}, {"cpu": 40})
WITH_P95 = Profile({"cpu": 65}, {"cpu": 40}, Aggregated("p95", 300), {"cpu": 55})
THEIRS = {"usageThresholds": {"cpu": 30}, "usageAggregationType": "p50"}


@pytest.mark.parametrize(
    ("profile", "said", "general", "prod", "aggregated"),
    [
        (OURS, None, 65, 40, None),
        (OURS, "nonsense", 65, 40, None),
        (OURS, {}, 65, 40, None),
        (OURS, {"usageThresholds": {"cpu": 20}}, 20, 40, None),
        (OURS, {"usageThresholds": {}}, 65, 40, None),
        (OURS, {"usageThresholds": {"memory": 20}}, 0, 40, None),
        (OURS, {"prodUsageThresholds": {"cpu": 10}}, 65, 10, None),
        (OURS, {"aggregatedUsage": THEIRS}, 30, 40, Aggregated("p50", 0)),
        (
            OURS,
            {"aggregatedUsage": {**THEIRS, "usageAggregatedDuration": "5m"}},
            30,
            40,
            Aggregated("p50", 300),
        ),
        (
            OURS,
            {
                "usageThresholds": {"cpu": 20},
                "aggregatedUsage": {**THEIRS, "usageAggregatedDuration": "soon"},
            },
            65,
            40,
            None,
        ),
        (OURS, {"aggregatedUsage": {**THEIRS, "usageThresholds": {}}}, 65, 40, None),
        (OURS, {"aggregatedUsage": {**THEIRS, "usageAggregationType": ""}}, 65, 40, None),
        (WITH_P95, None, 55, 40, Aggregated("p95", 300)),
        (WITH_P95, {"usageThresholds": {"cpu": 20}}, 55, 40, Aggregated("p95", 300)),
        (WITH_P95, {"aggregatedUsage": THEIRS}, 30, 40, Aggregated("p50", 0)),
    ],
)
def test_a_node_has_thresholds_of_its_own(
    profile: Profile, said: Any, general: int, prod: int, aggregated: Aggregated | None
) -> None:
    node = Node(profile=profile, **({"thresholds": said} if said is not None else {}))
    node.kept.refresh()
    assert node.kept.thresholds[:, 0, 0].tolist() == [general, prod]
    assert node.kept.is_aggregated.tolist() == [aggregated is not None]
    assert profile.of(node.cluster.node_of("n1")).aggregated == aggregated
    assert not node.kept.has_report.any()


@pytest.mark.parametrize(
    ("raw", "offered"),
    [
        (None, 10_000),
        ({"cpu": "4"}, 4000),
        ({"cpu": 4}, 4000),
        ({"cpu": 2.5}, 2500),
        ({"memory": "4"}, 10_000),
        ({}, 10_000),
        ("nonsense", 10_000),
        ({"cpu": "much"}, 10_000),
        ({"memory": "4", "cpu": [1]}, 10_000),
        ({"cpu": "4", "memory": "much"}, 10_000),
    ],
)
def test_an_amplified_node_tells_what_it_has_in_truth(raw: Any, offered: int) -> None:
    node = Node(**({"raw": raw} if raw is not None else {}))
    node.kept.refresh()
    assert node.kept.allocatable.tolist() == [[offered]]
