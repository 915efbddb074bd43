"""The allocator again for devices that are shared and devices that are partitioned: every choice in
order, checked when complete, with what other claims hold counted anew from the beginning.

Amounts are whole numbers. Rules of amounts: hardware reference, consumable capacity.
"""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any, NamedTuple

Json = dict[str, Any]


class Asked(NamedTuple):
    """One request: how many devices, which, and how much of each capacity."""

    count: int
    kind: str
    amounts: dict[str, int]


class Part(NamedTuple):
    """One device of a claim; `amounts` None: held alone."""

    device: str
    amounts: dict[str, int] | None


class Pool(NamedTuple):
    """Devices in order as the API has them, and counters that they share."""

    devices: list[Json]
    counters: dict[str, int]


def allocate(pool: Pool, requests: list[Asked], held: list[Part]) -> list[Part] | None:
    """The first complete choice that breaks no rule."""
    for choice in product(*(list(_choices(pool, asked)) for asked in requests)):
        parts = [part for parts in choice for part in parts]
        if keeps_rules(pool, [*held, *parts]):
            return parts
    return None


def _choices(pool: Pool, asked: Asked) -> Iterator[list[Part]]:
    """Sets of devices for one request, whoever else holds them."""
    able = []
    for device in pool.devices:
        if asked.kind and device["attributes"]["kind"] != {"string": asked.kind}:
            continue
        is_shared = device.get("allowMultipleAllocations", False)
        if not is_shared and not asked.amounts:
            able.append(Part(device["name"], None))
            continue
        amounts = consumed(device, asked.amounts)
        if amounts is not None:
            able.append(Part(device["name"], amounts if is_shared else None))
    for chosen in combinations(able, asked.count):
        yield list(chosen)


def consumed(device: Json, asked: dict[str, int]) -> dict[str, int] | None:
    """What of each capacity a share takes; None if the device is out."""
    offered = device.get("capacity", {})
    if not asked.keys() <= offered.keys():
        return None
    found = {}
    for name, capacity in offered.items():
        value, policy = int(capacity["value"]), capacity.get("requestPolicy", {})
        if name in asked:
            amount = rounded(asked[name], policy)
        else:
            amount = int(policy["default"]) if policy else value
        if amount is None or amount > value:
            return None
        found[name] = amount
    return found


def rounded(asked: int, policy: Json) -> int | None:
    """None above what the policy allows."""
    if "validValues" in policy:
        return min((v for v in map(int, policy["validValues"]) if v >= asked), default=None)
    if "validRange" in policy:
        limits = {name: int(value) for name, value in policy["validRange"].items()}
        amount = limits["min"]
        while amount < asked:
            amount += limits.get("step", asked - amount)
        return amount if amount <= limits.get("max", amount) else None
    return asked


def keeps_rules(pool: Pool, held: list[Part]) -> bool:
    """No device is held alone and otherwise, no capacity and no counter runs out."""
    left = dict(pool.counters)
    for device in pool.devices:
        parts = [part for part in held if part.device == device["name"]]
        if not parts:
            continue
        for use in device.get("consumesCounters", ()):
            for name, amount in use["counters"].items():
                left[name] -= int(amount["value"])
        if any(part.amounts is None for part in parts):
            if len(parts) > 1:
                return False
            continue
        for name, capacity in device.get("capacity", {}).items():
            if sum((part.amounts or {})[name] for part in parts) > int(capacity["value"]):
                return False
    return all(amount >= 0 for amount in left.values())
