"""Consumable capacity: how much of a device a request takes, and whether it is available.

A request that names a capacity takes that amount, rounded up by the device's policy; one that does
not name it takes the policy's default, or all there is. Amounts a policy does not allow do not fit.

Source  kubernetes/kubernetes v1.36 dynamic-resource-allocation/structured, consumable capacity
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from asched.core.config.gates import DEFAULT_GATES
from asched.core.model.claim import CapacityRequestPolicy, CapacityRequestPolicyRange, Device
from asched.core.model.quantity import Quantity, ceiling, parse

MILLI: Final = 1000
_BINARY = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")


def consumption(
    requested: Mapping[str, Quantity] | None,
    device: Device,
    rules: Mapping[str, bool] = DEFAULT_GATES,
) -> dict[str, str] | None:
    """What a request takes of each capacity, as the API writes it; None if the device does not
    allow it.

    Consumption by other claims is not considered.
    """
    published = device.capacity or {}
    wanted = requested or {}
    if any(name not in published for name in wanted):
        return None
    in_milli = rules["DRAFractionalCapacityRange"]
    takes_negative = not rules["capacity-out-of-range-is-refused"]
    taken: dict[str, str] = {}
    for name, capacity in published.items():
        policy = capacity.request_policy
        if name in wanted:
            amount = _rounded(wanted[name], policy, in_milli=in_milli)
        elif policy is not None and policy.default is not None:
            amount = str(policy.default)
        else:
            amount = str(capacity.value)
        if policy is not None and _violates(parse(amount), policy, in_milli=in_milli):
            return None
        if parse(amount) > parse(capacity.value):
            return None
        if parse(amount) < 0 and not takes_negative:
            return None
        taken[name] = amount
    return taken


def fits(taken: Mapping[str, str], device: Device, *held: Mapping[str, Fraction]) -> bool:
    """Whether a consumption fits with the existing ones."""
    published = device.capacity or {}
    return all(
        parse(amount) + sum(amounts.get(name, Fraction(0)) for amounts in held)
        <= parse(published[name].value)
        for name, amount in taken.items()
    )


def _rounded(requested: Quantity, policy: CapacityRequestPolicy | None, *, in_milli: bool) -> str:
    """Up to the next valid value; or up to the minimum, then to the next step above it."""
    if policy is None:
        return str(requested)
    amount, limits = parse(requested), policy.valid_range
    if limits is None or limits.min is None:
        above = (value for value in policy.valid_values or () if amount <= parse(value))
        return str(next(above, requested))
    if amount < parse(limits.min):
        return str(limits.min)
    if limits.step is None:
        return str(requested)
    unit = _unit(limits) if in_milli else 1
    base, each = ceiling(parse(limits.min) * unit), ceiling(parse(limits.step) * unit)
    steps = -(-(ceiling(amount * unit) - base) // each)
    rounded = base + steps * each
    return _written(rounded // unit) if rounded % unit == 0 else f"{rounded}m"


def _unit(limits: CapacityRequestPolicyRange) -> int:
    """How many parts of a whole a range is counted in: a thousand, if any of its limits has a
    fraction.
    """
    given = [one for one in (limits.min, limits.max, limits.step) if one is not None]
    return 1 if all(parse(one).denominator == 1 for one in given) else MILLI


def _violates(amount: Fraction, policy: CapacityRequestPolicy, *, in_milli: bool) -> bool:
    if policy.default is not None and amount == parse(policy.default):
        return False
    limits = policy.valid_range
    if limits is not None:
        if limits.max is not None and amount > parse(limits.max):
            return True
        if limits.step is None:
            return False
        unit = _unit(limits) if in_milli else 1
        base = ceiling(parse(limits.min if limits.min is not None else 0) * unit)
        return (ceiling(amount * unit) - base) % ceiling(parse(limits.step) * unit) != 0
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
