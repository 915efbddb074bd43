"""Amounts that the resource scorers compare: by resource and row, and those of the pod.

Of the configured resources, cpu, memory and ephemeral storage always count, others only if the pod
requests them. Resources are on the first axis, in the order of the configuration.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from asched.core.cluster.nodes import FIXED_RESOURCES
from asched.core.cluster.view import NodeView
from asched.core.config.args import ResourceSpec
from asched.core.model.requests import is_scalar

I64 = npt.NDArray[np.int64]

#: (resource, view) -> (allocatable, requested) int64[M] each, where devices stand for it.
DeviceAmounts = Callable[[str, NodeView], tuple[I64, I64]]


class Scored(NamedTuple):
    """The resources that count for a pod, with its amounts and the weights in plain numbers."""

    names: tuple[str, ...]
    plain: tuple[int, ...]
    plain_weights: tuple[int, ...]
    is_default: bool  # exactly cpu and memory: the first two rows of every table of amounts

    @property
    def amounts(self) -> I64:
        """int64[R, 1]"""
        return np.array(self.plain, dtype=np.int64).reshape(-1, 1)

    @property
    def weights(self) -> I64:
        """int64[R]"""
        return np.array(self.plain_weights, dtype=np.int64)


def scored(resources: Sequence[ResourceSpec], requests: Mapping[str, int]) -> Scored:
    """Choose the configured resources that count for a pod with these requests."""
    kept = [
        spec
        for spec in resources
        if spec.name in FIXED_RESOURCES or (is_scalar(spec.name) and requests.get(spec.name, 0) > 0)
    ]
    names = tuple([spec.name for spec in kept])
    amounts = tuple([requests.get(name, 0) for name in names])
    weights = tuple([spec.weight for spec in kept])
    return Scored(names, amounts, weights, names == FIXED_RESOURCES[:2])


def node_amounts(
    nodes: NodeView, names: Sequence[str], devices: DeviceAmounts, *, nonzero: bool
) -> tuple[I64, I64]:
    """(requested, allocatable), int64[R, M] each.

    `nonzero`: cpu and memory with the defaults for containers without requests. A resource that a
    node does not offer itself may be served by devices.
    """
    requested = np.zeros((len(names), nodes.size), dtype=np.int64)
    allocatable = np.zeros((len(names), nodes.size), dtype=np.int64)
    for position, name in enumerate(names):
        row = nodes.table.find_resource(name)
        if row is not None:
            is_default = nonzero and row < 2
            requested[position] = nodes.nonzero(row) if is_default else nodes.requested(row)
            allocatable[position] = nodes.allocatable(row)
        if name not in FIXED_RESOURCES and not allocatable[position].all():
            missing = allocatable[position] == 0
            offered, taken = devices(name, nodes)
            allocatable[position] = np.where(missing, offered, allocatable[position])
            requested[position] = np.where(missing, taken, requested[position])
    return requested, allocatable


def default_amounts(nodes: NodeView, *, nonzero: bool) -> tuple[I64, I64]:
    """`node_amounts` for cpu and memory, without a copy if all rows are read."""
    both = slice(0, 2)
    return (nodes.nonzero(both) if nonzero else nodes.requested(both)), nodes.allocatable(both)
