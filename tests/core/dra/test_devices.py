"""Devices made ready: who sees them, what they consume, and what selectors said of them."""

from typing import Any

import pytest

from asched.core.dra.cel.errors import CelError
from asched.core.dra.devices import COMPILE_COST, DeviceId, DevicePlace, ReadyDevice
from asched.core.dra.selector_answers import SelectorAnswers
from asched.core.model.claim import Device, DeviceAttribute
from asched.core.model.decode import decode
from asched.core.model.selector import NodeSelector
from tests.core.dra.worlds import DRIVER, a_device, a_slice

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


def test_a_device_is_known_by_driver_pool_and_name() -> None:
    device = ready(allowMultipleAllocations=True, bindingConditions=["Ready"])
    assert device.id == DeviceId(DRIVER, "n1", "gpu-0")
    assert device.id.text == f"{DRIVER}/n1/gpu-0"
    assert (device.pool_id, device.allows_multiple, device.binds) == ((DRIVER, "n1"), True, True)
    plain = ready()
    assert (plain.allows_multiple, plain.binds, plain.place, plain.consumes) == (
        False,
        False,
        None,
        {},
    )


def test_a_device_names_its_nodes_only_where_the_slice_lets_it() -> None:
    assert ready(nodeName="n7").place is None
    place = ready(per_device=True, nodeName="n7").place
    assert place is not None
    assert place.node_name == "n7"


def test_what_it_consumes_is_told_by_set_and_counter() -> None:
    used = [
        {"counterSet": "a", "counters": {"x": {"value": "2"}, "y": {"value": "1Ki"}}},
        {"counterSet": "b"},
    ]
    assert ready(consumesCounters=used).consumes == {("a", "x"): 2, ("a", "y"): 1024}


def test_a_selector_runs_once_and_costs_once() -> None:
    device = ready(attributes={"model": "A"})
    text = f'device.attributes["{DRIVER}"].model == "A"'
    answer, cost = device.ask(text)
    assert (answer, cost > 0) == (True, True)
    assert device.ask(text) == (True, 0)
    assert device.is_selected(text)
    assert not device.is_selected(f'device.attributes["{DRIVER}"].model == "B"')


def test_what_cannot_be_understood_is_an_error_that_costs_and_is_remembered() -> None:
    device = ready()
    answer, cost = device.ask("nonsense")
    assert isinstance(answer, CelError)
    assert cost == COMPILE_COST
    assert device.ask("nonsense") == (answer, 0)
    with pytest.raises(CelError, match="nonsense"):
        device.is_selected("nonsense")


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
