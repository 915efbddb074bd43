"""What a search leaves behind when it turns round, and how far it looks: as upstream's does."""

from typing import Any

from tests.core.dra.worlds import (
    DRIVER,
    World,
    a_claim,
    a_device,
    a_slice,
    asks,
)

A = f'device.attributes["{DRIVER}"]'


def named(name: str) -> str:
    return f'{A}.name == "{name}"'


def known(name: str, **fields: Any) -> dict[str, Any]:
    """A device that a selector can name."""
    attributes = {"name": name, **fields.pop("attributes", {})}
    return a_device(name, attributes=attributes, **fields)


ONE = {"consumesCounters": [{"counterSet": "set", "counters": {"c": {"value": "1"}}}]}


def counted(*devices: dict[str, Any], amount: int = 1) -> World:
    """Devices of which those with ONE share an amount of a counter."""
    sets = [{"name": "set", "counters": {"c": {"value": str(amount)}}}]
    return World(
        a_slice(*devices, of=2, name="devices"),
        a_slice(of=2, name="counters", sharedCounters=sets),
    )


# --- what is given back ------------------------------------------------------------------------


def shared(name: str, **capacity: Any) -> dict[str, Any]:
    return known(name, allowMultipleAllocations=True, capacity=capacity, **ONE)


NONE = {"value": "4", "requestPolicy": {"default": "0", "validValues": ["0", "1"]}}


def test_counters_are_paid_as_long_as_one_share_of_several_is_left() -> None:
    """The second share of s is given back; the first has paid, and t needs the same counter."""
    world = counted(shared("s", cores=NONE), known("t", **ONE), known("u"))
    claim = a_claim(asks(named("s")), asks(), asks(named("t")))
    assert world.devices(claim) is None
    world = counted(shared("s", cores=NONE), known("t", **ONE), known("u"), amount=2)
    assert world.devices(claim) == [["s", "s", "t"]]


# --- too many for a claim ----------------------------------------------------------------------


# --- steps -------------------------------------------------------------------------------------
