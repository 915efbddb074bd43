"""On which nodes allocated claims are usable: those their allocation names, unless binding failed.

Devices may have to be bound before a pod can use them: their driver sets the binding conditions
that the allocation lists. A claim whose binding failed, or took longer than the binding timeout, is
usable nowhere, so that PostFilter can deallocate it.
"""

from collections import OrderedDict
from datetime import datetime
from typing import Final

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.config.problem import quoted
from asched.core.framework.points import Mask
from asched.core.model.claim import (
    AllocatedDeviceStatus,
    DeviceCondition,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from asched.core.model.selector import NodeSelector, compile_node_selector

#: Memory for cached rows of the allocations' node selectors, a byte a row ...
BYTES_MAX: Final = 16 << 20
#: ... but never fewer selectors than this.
SELECTORS_MIN: Final = 16
TRUE: Final = "True"


class BindingFailed(Exception):  # noqa: N818
    """A driver says that a device cannot be bound; the message is upstream's."""


class DevicePlaces:
    def __init__(self, cluster: Cluster, binding_timeout_s: float) -> None:
        self._cluster = cluster
        self._binding_timeout_s = binding_timeout_s
        self._generation = -1
        self._outside: OrderedDict[NodeSelector, Mask] = OrderedDict()

    def outside(self, claim: ResourceClaim) -> Mask:
        """bool[N] over all rows: where an allocated claim cannot be used."""
        allocation = claim.status.allocation
        height = self._cluster.nodes.height
        if allocation is None:
            return np.zeros(height, dtype=np.bool_)
        if self._is_lost(claim):
            return np.ones(height, dtype=np.bool_)
        if allocation.node_selector is None:
            return np.zeros(height, dtype=np.bool_)
        nodes = self._cluster.nodes
        if self._generation != nodes.generation:
            self._generation = nodes.generation
            self._outside.clear()
        selector = allocation.node_selector
        found = self._outside.get(selector)
        if found is None:
            found = self._outside[selector] = self._rows_outside(selector)
            if len(self._outside) > max(SELECTORS_MIN, BYTES_MAX // (height + 1)):
                self._outside.popitem(last=False)
        return found

    def _rows_outside(self, selector: NodeSelector) -> Mask:
        nodes = self._cluster.nodes
        outside = np.ones(nodes.height, dtype=np.bool_)
        if (name := only_name(selector)) is not None:
            row = nodes.row_of.get(name)
            if row is not None:
                outside[row] = False
            return outside
        terms = compile_node_selector(selector) or ()
        for row, node in nodes.nodes():
            outside[row] = not any(term.matches(node.name, node.labels) for term in terms)
        return outside

    def _is_lost(self, claim: ResourceClaim) -> bool:
        try:
            return not is_ready(claim) and self._is_late(claim)
        except BindingFailed:
            return True

    def _is_late(self, claim: ResourceClaim) -> bool:
        """Whether the binding timeout has passed since the allocation of a claim that is
        not ready.
        """
        allocation = claim.status.allocation
        if allocation is None or allocation.allocation_timestamp is None:
            return False
        since = datetime.fromisoformat(allocation.allocation_timestamp)
        return since.timestamp() + self._binding_timeout_s < self._cluster.wall_clock_s


def only_name(selector: NodeSelector) -> str | None:
    """The only node a selector names, if it has no other condition."""
    terms = selector.node_selector_terms or ()
    if len(terms) != 1 or terms[0].match_expressions or len(terms[0].match_fields or ()) != 1:
        return None
    field = (terms[0].match_fields or ())[0]
    values = field.values or ()
    is_name = field.key == "metadata.name" and field.operator == "In" and len(values) == 1
    return values[0] if is_name else None


def is_ready(claim: ResourceClaim) -> bool:
    """Whether every device that binds under conditions meets them. Raises BindingFailed."""
    allocation = claim.status.allocation
    if allocation is None:
        return False
    for result in allocation.devices.results or ():
        if not result.binding_conditions:
            continue
        status = _status_of(claim, result)
        if status is None:
            return False
        conditions = {condition.type: condition for condition in status.conditions or ()}
        for name in result.binding_failure_conditions or ():
            if (failed := conditions.get(name)) is not None and failed.status == TRUE:
                raise BindingFailed(_failure(claim, failed))
        if any(
            n not in conditions or conditions[n].status != TRUE for n in result.binding_conditions
        ):
            return False
    return True


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
