"""Args at their edges: what is just allowed, and what is not any more."""

from typing import Any

import pytest

from tests.core.config.documents import texts

LIST = {"defaultingType": "List"}
GOOD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
NO_NAME = "name part must consist of alphanumeric characters"


@pytest.mark.parametrize(
    ("plugin", "args", "start"),
    [
        ("CheckAndHold", {"provisioningClassName": "a" * 253}, ""),
        ("CheckAndHold", {"provisioningClassName": "a" * 254}, "provisioningClassName: Invalid"),
        ("CheckAndHold", {"provisioningClassName": "a", "holdSeconds": 1}, ""),
        (
            "PodTopologySpread",
            {"defaultingType": "Other"},
            'defaultingType: Unsupported value: "Other": supported values: "System", "List"',
        ),
        (
            "PodTopologySpread",
            {**LIST, "defaultConstraints": [{**GOOD, "topologyKey": "a b"}]},
            f'defaultConstraints[0].topologyKey: Invalid value: "a b": {NO_NAME}',
        ),
        (
            "PodTopologySpread",
            {**LIST, "defaultConstraints": [GOOD, {**GOOD, "topologyKey": "host"}]},
            "",
        ),
        (
            "VolumeBinding",
            {"bindTimeoutSeconds": -1},
            "bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be",
        ),
        ("VolumeBinding", {"bindTimeoutSeconds": 0}, ""),
        ("DynamicResources", {"bindingTimeout": 1_000_000_000, "filterTimeout": 0}, ""),
        (
            "DynamicResources",
            {"bindingTimeout": 999_000_000},
            'bindingTimeout: Invalid value: "999ms": must be at least 1 second',
        ),
    ],
)
def test_one_fault_or_none(plugin: str, args: Any, start: str) -> None:
    found = texts(plugin, args)
    assert len(found) == bool(start)
    assert all(text.startswith(start) for text in found)


@pytest.mark.parametrize("gate", ["DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"])
def test_a_binding_timeout_needs_both_gates(gate: str) -> None:
    both = {"DRADeviceBindingConditions": True, "DRAResourceClaimDeviceStatus": True}
    assert texts("DynamicResources", {"bindingTimeout": 5_000_000_000}, **both) == []
    assert texts(
        "DynamicResources", {"bindingTimeout": 5_000_000_000}, **{**both, gate: False}
    ) == [
        (
            "bindingTimeout: Forbidden: DRADeviceBindingConditions or DRAResourceClaimDeviceStatus "
            "feature gate is disabled"
        )
    ]
