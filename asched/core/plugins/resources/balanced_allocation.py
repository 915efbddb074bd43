"""NodeResourcesBalancedAllocation: prefer nodes whose resources are used evenly.

Prefers   nodes whose resources are used more evenly with the pod than without it.
Retry     nothing: it rejects no pod.
Cost      a few passes in floating point over the amounts of the configured resources.
Source    kubernetes/kubernetes v1.36 plugins/noderesources/balanced_allocation.go
"""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodClass, PodInfo
from asched.core.cluster.view import NodeView
from asched.core.config.args import NodeResourcesBalancedAllocationArgs
from asched.core.framework.per_class import PerClass
from asched.core.framework.points import I64, Mask, PreFilterResult, PreScorePlugin, ScorePlugin
from asched.core.framework.registrations import Registration
from asched.core.framework.status import SKIP
from asched.core.plugins.devices.amounts import Delegation, DeviceTally
from asched.core.plugins.resources.scores import (
    Evenness,
    Scored,
    balance_of_two,
    balanced_allocation,
    balanced_allocation_one,
    by_blocks,
    default_amounts,
    gain_in_balance,
    node_amounts,
    scored,
)


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    name = names.NODE_RESOURCES_BALANCED_ALLOCATION
    depends_on = Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE
    rows_few = 18  # a row alone takes 1 to 2 µs, gathered ones 35 to 45

    def __init__(self, args: NodeResourcesBalancedAllocationArgs | None, cluster: Cluster) -> None:
        self._resources = (args or NodeResourcesBalancedAllocationArgs()).resources
        self._devices = DeviceTally(cluster, Delegation(cluster))
        self._scored = PerClass(self._scored_of)
        self._columns = cluster.nodes.columns
        self._evenness = Evenness(cluster)

    def registrations(self) -> Sequence[Registration]:
        return ()

    def share_key(self, pod: PodInfo) -> Hashable:
        wanted = self._scored(pod.cls)
        return (wanted.names, wanted.plain)

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:
        wanted = self._scored(pod.cls)
        return 0 if wanted.is_default else self._devices.stamp(wanted.names)

    def pre_score(self, pod: PodInfo, nodes: NodeView, feasible: Mask) -> PreFilterResult:
        """Skip a pod that requests none of the resources."""
        is_idle = not any(self._scored(pod.cls).plain)
        return PreFilterResult(SKIP) if is_idle else PreFilterResult()

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        wanted = self._scored(pod.cls)
        if not any(wanted.plain):  # PreScore is not enabled
            return np.zeros(nodes.size, dtype=np.int64)
        even = self._evenness
        if wanted.is_default:
            if even.serves(wanted.plain):
                kernel = partial(balance_of_two, more=wanted.plain)
                return gain_in_balance(
                    by_blocks(kernel, *even.of(nodes)), nodes.gather(even.values)
                )
            requested, allocatable = default_amounts(nodes, nonzero=False)
        else:
            requested, allocatable = node_amounts(nodes, wanted.names, self._devices, nonzero=False)

        amounts = wanted.amounts

        def points(held: I64, offered: I64) -> I64:
            return balanced_allocation(held, amounts, offered)

        return by_blocks(points, requested, allocatable)

    def score_few(self, pod: PodInfo, rows: Sequence[int], data: Any) -> list[int] | None:
        wanted = self._scored(pod.cls)
        amounts = wanted.plain
        if not wanted.is_default or not any(amounts):
            return None
        points: list[int] = []
        read = self._columns.read
        offered, held = read("allocatable").item, read("requested").item
        for row in rows:
            cpu, memory = float(offered(0, row)), float(offered(1, row))
            if not (cpu and memory):
                return None
            points.append(balanced_allocation_one(held(0, row), held(1, row), amounts, cpu, memory))
        return points

    def _scored_of(self, cls: PodClass) -> Scored:
        return scored(self._resources, cls.requests)
