"""Devices made ready: who sees them, what they consume, and what selectors said of them."""

from typing import Any

import pytest

from asched.core.dra.devices import DevicePlace, ReadyDevice, SelectorAnswers
from asched.core.model.claim import Device, DeviceAttribute
from asched.core.model.decode import decode
from asched.core.model.selector import NodeSelector
from tests.device_builders import DRIVER, a_device, a_slice

ZONE_A = decode(
    NodeSelector,  # type: ignore[type-var]
    {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]},
)
ZONE_OR_NONE = decode(
    NodeSelector,  # type: ignore[type-var]
    {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": [value]}]}
            for value in ("a", "x")
        ]
    },
)


@pytest.mark.parametrize(
    ("place", "is_given", "seen_by"),
    [
        (DevicePlace("n1", None, None), True, ["n1"]),
        (DevicePlace(None, True, None), True, ["n1", "n2"]),
        (DevicePlace(None, False, None), False, []),
        (DevicePlace(None, None, ZONE_A), True, ["n2"]),
        (DevicePlace("", None, None), False, []),
        (DevicePlace("n1", True, ZONE_A), True, ["n1"]),
        (DevicePlace(None, None, ZONE_OR_NONE), True, ["n2"]),
        (DevicePlace(None, True, ZONE_A), True, ["n1", "n2"]),
        (DevicePlace(None, False, ZONE_A), True, ["n2"]),
        (DevicePlace(None, None, NodeSelector()), True, []),
        (DevicePlace(None, None, None), False, []),
    ],
)
def test_who_sees_a_device(place: DevicePlace, is_given: bool, seen_by: list[str]) -> None:
    nodes = {"n1": {}, "n2": {"zone": "a"}}
    assert place.is_given == is_given
    assert [name for name, labels in nodes.items() if place.matches(name, labels)] == seen_by


def ready(remembered: SelectorAnswers | None = None, **fields: Any) -> ReadyDevice:
    per_device = fields.pop("per_device", False)
    more = {"perDeviceNodeSelection": True} if per_device else {}
    record = decode(Device, a_device("gpu-0", **fields))
    return ReadyDevice(a_slice("gpu-0", **more), record, remembered or SelectorAnswers())


def test_an_attribute_without_a_domain_is_the_driver_s() -> None:
    device = ready(attributes={"model": "A", "other.com/x": "B"})

    def string(name: str) -> str | None:
        found = device.attribute(name)
        return None if found is None else found.string_value

    assert string(f"{DRIVER}/model") == "A"
    assert string("other.com/x") == "B"
    assert string("model") == "A"
    assert string("other.com/model") is None
    assert string("absent") is None
    assert ready().attribute("model") is None
    of_none = Device(name="d", attributes={"": DeviceAttribute(string_value="C")})
    bare = ReadyDevice(a_slice("d"), of_none, SelectorAnswers())
    assert bare.attribute(DRIVER) is None, "a domain is no name"
    assert ReadyDevice(a_slice("d"), Device(name="d"), SelectorAnswers()).attribute("x") is None
