"""Consumable capacity: how much of a device a request takes, and whether it is available.

A request that names a capacity takes that amount, rounded up by the device's policy; one that does
not name it takes the policy's default, or all there is. Amounts a policy does not allow do not fit.

Source  kubernetes/kubernetes v1.36 dynamic-resource-allocation/structured, consumable capacity
"""

from collections.abc import Mapping
from fractions import Fraction

from asched.core.model.claim import CapacityRequestPolicy, Device
from asched.core.model.quantity import Quantity, ceiling, parse

_BINARY = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")


def consumption(requested: Mapping[str, Quantity] | None, device: Device) -> dict[str, str] | None:
    """What a request takes of each capacity, as the API writes it; None if the device does not
    allow it.

    Consumption by other claims is not considered.
    """
    published = device.capacity or {}
    wanted = requested or {}
    if any(name not in published for name in wanted):
        return None
    taken: dict[str, str] = {}
    for name, capacity in published.items():
        policy = capacity.request_policy
        if name in wanted:
            amount = _rounded(wanted[name], policy)
        elif policy is not None and policy.default is not None:
            amount = str(policy.default)
        else:
            amount = str(capacity.value)
        if policy is not None and _violates(parse(amount), policy):
            return None
        if parse(amount) > parse(capacity.value):
            return None
        taken[name] = amount
    return taken


def fits(taken: Mapping[str, str], device: Device, *held: Mapping[str, Fraction]) -> bool:
    """Whether a consumption fits beside the existing ones."""
    published = device.capacity or {}
    return all(
        parse(amount) + sum(amounts.get(name, Fraction(0)) for amounts in held)
        <= parse(published[name].value)
        for name, amount in taken.items()
    )


def _rounded(requested: Quantity, policy: CapacityRequestPolicy | None) -> str:
    if policy is None:
        return str(requested)
    limits = policy.valid_range
    if limits is not None and limits.min is not None:
        return _rounded_to_range(requested, limits.min, limits.step)
    for value in policy.valid_values or ():
        if parse(requested) <= parse(value):
            return str(value)
    return str(requested)


def _rounded_to_range(requested: Quantity, least: Quantity, step: Quantity | None) -> str:
    """Up to the minimum, then to the next step above it; steps count in whole units."""
    if parse(requested) < parse(least):
        return str(least)
    if step is None:
        return str(requested)
    base, each = ceiling(parse(least)), ceiling(parse(step))
    steps = -(-(ceiling(parse(requested)) - base) // each)
    return _written(base + steps * each)


def _violates(amount: Fraction, policy: CapacityRequestPolicy) -> bool:
    if policy.default is not None and amount == parse(policy.default):
        return False
    limits = policy.valid_range
    if limits is not None:
        if limits.max is not None and amount > parse(limits.max):
            return True
        if limits.step is None:
            return False
        base = ceiling(parse(limits.min if limits.min is not None else 0))
        return (ceiling(amount) - base) % ceiling(parse(limits.step)) != 0
    if policy.valid_values:
        return all(amount != parse(value) for value in policy.valid_values)
    return False


def _written(amount: int) -> str:
    """A whole amount with the largest binary suffix, or plain, whatever the step's notation is, as
    upstream.
    """
    for power, suffix in zip(range(6, 0, -1), _BINARY, strict=True):
        if amount and amount % 1024**power == 0:
            return f"{amount // 1024**power}{suffix}"
    return str(amount)
