"""Args as kube-scheduler prints its internal form of them."""

from typing import Any

import pytest

from asched.core.config.args import (
    NO_STRATEGY,
    DefaultPreemptionArgs,
    DefaultSpreadConstraint,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatio,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from asched.core.config.internal_text import internal_args, shape_points

SHAPE = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
POINTS = [{"Utilization": 0, "Score": 10}, {"Utilization": 100, "Score": 0}]
SECOND_NS = 1_000_000_000


@pytest.mark.parametrize(
    ("args", "printed"),
    [
        (
            DefaultPreemptionArgs(10, 100),
            {"MinCandidateNodesPercentage": 10, "MinCandidateNodesAbsolute": 100},
        ),
        (
            InterPodAffinityArgs(7, True),
            {"HardPodAffinityWeight": 7, "IgnorePreferredTermsOfExistingPods": True},
        ),
        (
            NodeResourcesBalancedAllocationArgs((ResourceSpec("cpu", 1),)),
            {"Resources": [{"Name": "cpu", "Weight": 1}]},
        ),
        (NodeResourcesBalancedAllocationArgs(()), {"Resources": None}),
        (
            VolumeBindingArgs(bind_timeout_s=600, shape=None),
            {"BindTimeoutSeconds": 600, "Shape": None},
        ),
        (
            VolumeBindingArgs(bind_timeout_s=1, shape=SHAPE),
            {"BindTimeoutSeconds": 1, "Shape": POINTS},
        ),
        (
            DynamicResourcesArgs(filter_timeout_ns=10 * SECOND_NS, binding_timeout_ns=None),
            {"FilterTimeout": "10s", "BindingTimeout": None},
        ),
        (
            PodTopologySpreadArgs((DefaultSpreadConstraint(1, "zone", "DoNotSchedule"),), "List"),
            {
                "DefaultConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
                ],
                "DefaultingType": "List",
            },
        ),
        (NodeAffinityArgs({"a": 1}), {"AddedAffinity": {"a": 1}}),
        (
            NodeResourcesFitArgs((), ("x.com", "y.com"), NO_STRATEGY),
            {
                "IgnoredResources": None,
                "IgnoredResourceGroups": ["x.com", "y.com"],
                "ScoringStrategy": None,
            },
        ),
        (
            NodeResourcesFitArgs((), (), ScoringStrategy("x", (), RequestedToCapacityRatio())),
            {
                "IgnoredResources": None,
                "IgnoredResourceGroups": None,
                "ScoringStrategy": {
                    "Type": "x",
                    "Resources": None,
                    "RequestedToCapacityRatio": {"Shape": None},
                },
            },
        ),
        ({"of": "users"}, {"of": "users"}),
    ],
)
def test_fields_have_go_s_names(args: Any, printed: Any) -> None:
    assert internal_args(args) == printed


def test_what_is_ignored_and_how_it_scores() -> None:
    ratio = RequestedToCapacityRatio(SHAPE)
    strategy = ScoringStrategy("RequestedToCapacityRatio", (ResourceSpec("cpu", 2),), ratio)
    args = NodeResourcesFitArgs(ignored_resources=("x.com/a",), scoring_strategy=strategy)
    assert internal_args(args) == {
        "IgnoredResources": ["x.com/a"],
        "IgnoredResourceGroups": None,
        "ScoringStrategy": {
            "Type": "RequestedToCapacityRatio",
            "Resources": [{"Name": "cpu", "Weight": 2}],
            "RequestedToCapacityRatio": {"Shape": POINTS},
        },
    }


def test_lists_that_are_empty_are_null() -> None:
    spread = internal_args(PodTopologySpreadArgs(default_constraints=()))
    assert spread == {"DefaultConstraints": None, "DefaultingType": "System"}
    assert shape_points(()) == []
    assert shape_points(None) is None
