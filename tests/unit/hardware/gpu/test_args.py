"""The args of GpuSharing, as a configuration gives them: decoded, or refused with their place."""

import re
from typing import Any

import pytest

from asched.hardware.gpu.args import STRATEGIES, GpuSharingArgs
from asched.hardware.gpu.plugin import GpuSharing
from asched.hardware.gpu.shares import GpuDemand
from asched.host.user_plugins.arguments import ArgsError, arguments


def decoded(given: dict[str, Any]) -> GpuSharingArgs:
    args = arguments(GpuSharing, given)[0]
    assert isinstance(args, GpuSharingArgs)
    return args


def test_nothing_given_is_the_published_policy_learning_what_to_expect() -> None:
    assert decoded({}) == GpuSharingArgs(strategy="FragmentationGradientDescent", workload=())


def test_what_is_expected_is_spelt_as_kubernetes_spells_it() -> None:
    shapes = [
        {"milliCPU": 4000, "devices": 1, "milliDevice": 470, "weight": 3},
        {"devices": 2, "models": ["T4", "A10"]},
        {"milliCPU": 500},
    ]
    found = decoded({"strategy": "CuttingStock", "workload": shapes}).workload
    assert [(one.demand, one.weight) for one in found] == [
        (GpuDemand(4000, 470, 1), 3),
        (GpuDemand(0, 1000, 2, ("A10", "T4")), 1),  # whole devices, if nothing is said
        (GpuDemand(500), 1),
    ]


def test_its_kind_may_be_said_and_no_other() -> None:
    decoded({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "GpuSharingArgs"})
    with pytest.raises(ArgsError, match="these are args of "):
        decoded({"kind": "NodeResourcesFitArgs"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"strategy": "FGD"}, f'args: strategy "FGD" is none of {", ".join(STRATEGIES)}'),
        (
            {"strategy": "Packing", "workload": [{"milliCPU": 1}]},
            "args: strategy Packing expects no pods: workload must be left out",
        ),
        (
            {"workload": [{}, {"devices": 2, "milliDevice": 5}]},
            "args.workload[1]: milliDevice 5 not in valid range [1000, 1000] for 2 devices",
        ),
        (
            {"workload": [{"milliCPU": -1, "weight": 0}]},
            "args.workload[0]: weight 0 must be at least 1; milliCPU -1 must not be negative",
        ),
        (
            {"workload": [{"devices": 65}]},
            "workload[0]: devices 65 not in valid range [0, 64]",
        ),
        (
            {"workload": [{"milliCpu": 1}]},
            'field (did you mean "milliCPU"?); known fields: milliCPU, ',
        ),
        ({"resource": "a b", "modelLabel": ""}, 'args: resource "a b": name part must consist of '),
        ({"modelLabel": ""}, 'args: modelLabel "": name part must be non-empty'),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgsError, match=re.escape(said)):
        decoded(given)
