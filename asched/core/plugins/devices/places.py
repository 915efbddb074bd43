"""On which nodes allocated claims are usable: those their allocation names.

A claim whose binding failed, or took longer than the binding timeout, is usable nowhere, so that
PostFilter can deallocate it.
"""

from typing import Final

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.framework.points import Mask
from asched.core.model.claim import AllocationResult, ResourceClaim
from asched.core.model.lru import Lru
from asched.core.model.selector import NodeSelector, compile_node_selector
from asched.core.model.timestamp import microseconds
from asched.core.plugins.devices.conditions import BindingFailed, is_ready

#: Memory for cached rows of the allocations' node selectors, a byte a row ...
BYTES_MAX: Final = 16 << 20
#: ... but never fewer selectors than this.
SELECTORS_MIN: Final = 16


class DevicePlaces:
    def __init__(self, cluster: Cluster, binding_timeout_s: float) -> None:
        self._cluster = cluster
        self._binding_timeout_s = binding_timeout_s
        self._generation = -1
        self._outside: Lru[NodeSelector, Mask] = Lru(SELECTORS_MIN)

    def outside(self, claim: ResourceClaim) -> Mask:
        """bool[N] over all rows: where an allocated claim cannot be used."""
        allocation, nodes = claim.status.allocation, self._cluster.nodes
        is_lost = allocation is not None and self._is_lost(claim, allocation)
        if is_lost or allocation is None or allocation.node_selector is None:
            return np.full(nodes.height, is_lost, dtype=np.bool_)
        if self._generation != nodes.generation:
            self._generation = nodes.generation
            self._outside = Lru(max(SELECTORS_MIN, BYTES_MAX // (nodes.height + 1)))
        selector = allocation.node_selector
        found = self._outside.get(selector)
        if found is None:
            found = self._rows_outside(selector)
            self._outside.put(selector, found)
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

    def _is_lost(self, claim: ResourceClaim, allocation: AllocationResult) -> bool:
        """Whether the binding of its devices failed, or takes longer than the binding timeout."""
        try:
            if is_ready(claim) or allocation.allocation_timestamp is None:
                return False
        except BindingFailed:
            return True
        since_s = microseconds(allocation.allocation_timestamp) / 1e6
        return since_s + self._binding_timeout_s < self._cluster.wall_clock_s


def only_name(selector: NodeSelector) -> str | None:
    """The only node a selector names, if it has no other condition."""
    terms = selector.node_selector_terms or ()
    if len(terms) != 1 or terms[0].match_expressions or len(terms[0].match_fields or ()) != 1:
        return None
    field = (terms[0].match_fields or ())[0]
    values = field.values or ()
    is_name = field.key == "metadata.name" and field.operator == "In" and len(values) == 1
    return values[0] if is_name else None
