"""Devices that bind under conditions: whether they meet them, or their driver failed."""

from collections.abc import Iterator
from typing import Final

from asched.core.config.problem import quoted
from asched.core.model.claim import (
    AllocatedDeviceStatus,
    DeviceCondition,
    DeviceRequestAllocationResult,
    ResourceClaim,
)

TRUE: Final = "True"


class BindingFailed(Exception):  # noqa: N818
    """A driver says that a device cannot be bound; the message is upstream's."""


def is_ready(claim: ResourceClaim) -> bool:
    """Whether every device that binds under conditions meets them. Raises BindingFailed."""
    if claim.status.allocation is None:
        return False
    return next(unmet_conditions(claim), None) is None


def unmet_conditions(
    claim: ResourceClaim,
) -> Iterator[tuple[DeviceRequestAllocationResult, list[str]]]:
    """Yield the devices that do not meet their conditions yet, with these conditions. Raises
    BindingFailed.
    """
    for result in results_of(claim):
        if not result.binding_conditions:
            continue
        status = _status_of(claim, result)
        conditions = {c.type: c for c in (status.conditions if status is not None else ()) or ()}
        for name in result.binding_failure_conditions or ():
            if (failed := conditions.get(name)) is not None and failed.status == TRUE:
                raise BindingFailed(_failure(claim, failed))
        met = {name for name, condition in conditions.items() if condition.status == TRUE}
        if missing := [name for name in result.binding_conditions if name not in met]:
            yield result, missing


def _failure(claim: ResourceClaim, condition: DeviceCondition) -> str:
    return (
        f"device binding failed: claim={claim.metadata.name}, "
        f"reason={condition.reason}, message={quoted(condition.message)}"
    )


def _status_of(
    claim: ResourceClaim, result: DeviceRequestAllocationResult
) -> AllocatedDeviceStatus | None:
    for status in claim.status.devices or ():
        same = (status.driver, status.pool, status.device)
        if same == (result.driver, result.pool, result.device):
            return status
    return None


def results_of(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    allocation = claim.status.allocation
    return (allocation.devices.results or ()) if allocation is not None else ()
