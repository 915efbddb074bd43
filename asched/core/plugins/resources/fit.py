"""NodeResourcesFit: place a pod where the requested resources are free.

Rejects   nodes without room for one more pod, or with too little of a resource left; evicting
          pods helps unless the request exceeds all that the node can allocate.
Prefers   by the configured strategy: the emptier, the fuller, or along a curve. Of placements, the
          one that a pod group leaves fullest.
Retry     a pod leaves its node or shrinks; a node appears or grows; a device class starts to stand
          for a requested resource.
Cost      a few passes over the amounts of the requested resources.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/noderesources/fit.go
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import FIXED_RESOURCES, Aspect
from asched.core.cluster.pods import PodClass, PodInfo
from asched.core.cluster.view import NodeView, with_more
from asched.core.cluster.weakly import weakly
from asched.core.config import args as config
from asched.core.framework.order_free import POD_PLACE, OrderFree
from asched.core.framework.per_class import PerClass
from asched.core.framework.placements import Assignments, PlacementScorePlugin
from asched.core.framework.points import (
    I64,
    Codes,
    FilterPlugin,
    Mask,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Scope,
    ScorePlugin,
)
from asched.core.framework.registrations import Registration
from asched.core.framework.status import Reason, Status, unresolvable, unschedulable
from asched.core.model.requests import CPU, MEMORY, container_requests, is_extended, is_scalar
from asched.core.plugins.devices.amounts import Delegation, DeviceTally
from asched.core.plugins.resources.fit_hints import FitHints
from asched.core.plugins.resources.placement_fullness import PlacementPoints
from asched.core.plugins.resources.scores import (
    AsFloats,
    Scored,
    by_blocks,
    curve,
    default_amounts,
    least_allocated,
    least_allocated_one,
    mean_of_two,
    most_allocated,
    most_allocated_one,
    node_amounts,
    requested_to_capacity_ratio,
    scored,
)

#: (requested int64[R, M], allocatable int64[R, M], weights int64[R]) -> points int64[M].
Kernel = Callable[[I64, I64, I64], I64]


TOO_MANY_PODS: Final = Reason("Too many pods", resolvable=True)
INSUFFICIENT: Final = "Insufficient "

#: A code is a set of bits: one for each reason, in the order of the message ...
PODS_BIT: Final = 1
#: ... and a bit that says that evicting pods cannot help.
HOPELESS_BIT: Final = 1 << 30
#: Resources beyond this number share the last bit and are reported together.
RESOURCES_MAX: Final = 29

#: (row of axis R, bit, name) of the fixed resources, and the names of their bits.
_FIXED: Final = tuple((at, 1 << (at + 1), name) for at, name in enumerate(FIXED_RESOURCES))
_FIXED_NAMES: Final = tuple((bit, name) for _, bit, name in _FIXED)

#: The same kernels for a single node in plain integers, where they exist.
KERNELS_ONE: Final[Mapping[str, Callable[[Sequence[int], Sequence[int], Sequence[int]], int]]] = {
    config.LEAST_ALLOCATED: least_allocated_one,
    config.MOST_ALLOCATED: most_allocated_one,
}

#: The share that counts, times 100, of (requested, allocatable), and the pod's amount to add.
SHARES: Final[Mapping[str, tuple[Callable[[Any, Any], Any], float]]] = {
    config.LEAST_ALLOCATED: (lambda held, offered: (offered - held) * 100.0, -100.0),
    config.MOST_ALLOCATED: (lambda held, _: held * 100.0, 100.0),
}


class ResourceDemand(NamedTuple):
    """What a class of pods requests, as the filter compares it."""

    #: (resource, amount, bit) of the other resources, by name
    scalars: tuple[tuple[str, int, int], ...]
    #: (row of axis R, amount, bit) of the fixed resources that are requested
    plain: tuple[tuple[int, int, int], ...]
    #: the resource names of each bit
    bit_names: tuple[tuple[int, str], ...]


class NodeResourcesFit(
    OrderFree, PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, PlacementScorePlugin
):
    name = names.NODE_RESOURCES_FIT
    scope = Scope.NODE
    without_pre_filter = 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'
    reasons = (TOO_MANY_PODS,)
    reads_only_amounts = True
    ignores_nodes = True
    depends_on = Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE
    rows_few = 18  # a row alone takes 1 to 2 µs, gathered ones 35 to 45

    def __init__(self, args: config.NodeResourcesFitArgs | None, cluster: Cluster) -> None:
        args = args or config.NodeResourcesFitArgs()
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._resources = args.scoring_strategy.resources
        if not self._resources:
            raise ValueError("resources not found: scoringStrategy.resources must not be empty")
        self._scores_others = any(spec.name not in (CPU, MEMORY) for spec in self._resources)
        self._kernel = _kernel(args.scoring_strategy)
        self._placement_points = PlacementPoints(cluster, self._resources, _amounts_of)
        self._delegation = Delegation(cluster)
        self._devices = DeviceTally(cluster, self._delegation)
        self._hints = FitHints(cluster, self._delegation, weakly(self._is_ignored))
        self._demand = PerClass(self._demand_of)
        self._scored = PerClass(self._scored_of)
        self._kernel_one = KERNELS_ONE.get(args.scoring_strategy.type)
        part_of, self._step = SHARES.get(args.scoring_strategy.type, (None, 0.0))
        self._shares = None if part_of is None else AsFloats(cluster, part_of, nonzero=True)
        self._nodes = cluster.nodes
        self._columns = cluster.nodes.columns

    def registrations(self) -> Sequence[Registration]:
        return self._hints.registrations()

    def extra_events(self) -> Sequence[Registration]:
        ignores = bool(self._ignored or self._ignored_groups)
        return self._hints.extra_events() if ignores else ()

    def share_key(self, pod: PodInfo) -> Hashable:
        cls = pod.cls
        if self._scores_others:
            return cls.number
        return (tuple(cls.requests.items()), cls.scoring_nonzero)

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:
        if not self._demand(pod.cls).scalars:
            return 0
        return (self._delegation.epoch, self._devices.stamp(self._scored(pod.cls).names))

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        return PreFilterResult()

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        demand = self._demand(pod.cls)
        codes = (nodes.pod_count >= nodes.allowed_pods).astype(np.int32)
        for row, amount, bit in demand.plain:
            offered = nodes.allocatable(row)
            short: Mask = offered - nodes.requested(row) < amount
            at = short.nonzero()[0]
            if len(at):
                codes[at] |= np.where(offered[at] < amount, bit | HOPELESS_BIT, bit)
        for resource, amount, bit in demand.scalars:
            codes |= self._shortage(nodes, resource, amount, bit)
        return codes

    def filter_few(self, pod: PodInfo, rows: Sequence[int], data: Any) -> list[int] | None:
        demand = self._demand(pod.cls)
        if demand.scalars:
            return None
        codes: list[int] = []
        read = self._columns.read
        pods, allowed = read("pod_count").item, read("allowed_pods").item
        offered, held = read("allocatable").item, read("requested").item
        for row in rows:
            code = PODS_BIT if pods(row) >= allowed(row) else 0
            for at, amount, bit in demand.plain:
                allocatable = offered(at, row)
                if allocatable - held(at, row) < amount:
                    code |= bit | (HOPELESS_BIT if amount > allocatable else 0)
            codes.append(code)
        return codes

    def is_order_free(self, pod: PodInfo) -> bool:
        return not any(
            name in self._delegation.classes for name, *_ in self._demand(pod.cls).scalars
        )

    def takes(self, pod: PodInfo) -> Mapping[int, int]:
        demand = self._demand(pod.cls)
        found = {POD_PLACE: 1, **{at: amount for at, amount, _ in demand.plain}}
        for name, amount, _ in demand.scalars:
            at = self._nodes.find_resource(name)
            if at is not None and name not in self._delegation.classes:
                found[at] = amount
        return found

    def explain(self, pod: PodInfo, code: int) -> Status:
        reasons = [TOO_MANY_PODS.text] if code & PODS_BIT else []
        reasons += [
            INSUFFICIENT + name for bit, name in self._demand(pod.cls).bit_names if code & bit
        ]
        return (unresolvable if code & HOPELESS_BIT else unschedulable)(*reasons)

    def pre_score(self, pod: PodInfo, nodes: NodeView, feasible: Mask) -> PreFilterResult:
        return PreFilterResult()

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        wanted, shares = self._scored(pod.cls), self._shares
        if wanted.is_default:
            if shares is not None and shares.serves(wanted.plain):
                more = [self._step * amount for amount in wanted.plain]
                mean = partial(mean_of_two, more=more, weights=wanted.plain_weights)
                return by_blocks(mean, *shares.of(nodes))
            requested, allocatable = default_amounts(nodes, nonzero=True)
        else:
            requested, allocatable = node_amounts(nodes, wanted.names, self._devices, nonzero=True)

        amounts, weights = wanted.amounts, wanted.weights

        def points(held: I64, offered: I64) -> I64:
            return self._kernel(with_more(held, amounts), offered, weights)

        return by_blocks(points, requested, allocatable)

    def score_few(self, pod: PodInfo, rows: Sequence[int], data: Any) -> list[int] | None:
        wanted, kernel = self._scored(pod.cls), self._kernel_one
        if kernel is None or not wanted.is_default:
            return None
        read = self._columns.read
        nonzero, offered = read("nonzero").item, read("allocatable").item
        (cpu, memory), weights = wanted.plain, wanted.plain_weights
        return [
            kernel(
                (nonzero(0, row) + cpu, nonzero(1, row) + memory),
                (offered(0, row), offered(1, row)),
                weights,
            )
            for row in rows
        ]

    def score_placement(self, group: str, assignments: Assignments) -> int:
        return self._placement_points.of(assignments)

    def score_placements(
        self, group: str, candidates: Sequence[Assignments]
    ) -> Sequence[int] | Status:
        found = self._placement_points.of_parts(candidates)
        return found if found is not None else super().score_placements(group, candidates)

    def _shortage(self, nodes: NodeView, resource: str, amount: int, bit: int) -> Codes:
        """int32[M] of the bits that one resource sets."""
        row = nodes.table.find_resource(resource)
        is_delegated = resource in self._delegation.classes
        if row is None:
            refusal = 0 if is_delegated else bit | HOPELESS_BIT
            return np.full(nodes.size, refusal, dtype=np.int32)
        offered = nodes.allocatable(row)
        short = offered - nodes.requested(row) < amount
        if is_delegated:
            short &= offered > 0
        codes = np.where(amount > offered, bit | HOPELESS_BIT, bit) * short
        return codes.astype(np.int32)

    def _demand_of(self, cls: PodClass) -> ResourceDemand:
        wanted = {name: amount for name, amount in cls.requests.items() if amount > 0}
        scalars = sorted(
            [
                (name, amount)
                for name, amount in wanted.items()
                if name not in FIXED_RESOURCES and is_scalar(name) and not self._is_ignored(name)
            ]
        )
        plain = tuple([(at, wanted[name], bit) for at, bit, name in _FIXED if name in wanted])
        if not scalars:
            return ResourceDemand((), plain, _FIXED_NAMES)
        bits = {
            name: 1 << min(at, RESOURCES_MAX)
            for at, (name, _) in enumerate(scalars, start=1 + len(_FIXED))
        }
        return ResourceDemand(
            tuple((name, amount, bits[name]) for name, amount in scalars),
            plain,
            (*_FIXED_NAMES, *((bit, name) for name, bit in bits.items())),
        )

    def _is_ignored(self, name: str) -> bool:
        if not is_extended(name):
            return False
        return name in self._ignored or name.partition("/")[0] in self._ignored_groups

    def _scored_of(self, cls: PodClass) -> Scored:
        return scored(self._resources, _amounts_of(cls))


def _amounts_of(cls: PodClass) -> dict[str, int]:
    """Requests of such a pod as far as scores consider them."""
    cpu, memory = cls.scoring_nonzero
    plain = cls.requests if cls.is_simple else container_requests(cls.example)
    return {**plain, CPU: cpu, MEMORY: memory}


def _kernel(strategy: config.ScoringStrategy) -> Kernel:
    match strategy.type:
        case config.LEAST_ALLOCATED:
            return least_allocated
        case config.MOST_ALLOCATED:
            return most_allocated
        case config.REQUESTED_TO_CAPACITY_RATIO:
            ratio = strategy.requested_to_capacity_ratio
            if ratio is None or not ratio.shape:
                raise ValueError("scoringStrategy.requestedToCapacityRatio.shape must not be empty")
            points_by_percent = curve(ratio.shape)
            return partial(requested_to_capacity_ratio, points_by_percent=points_by_percent)
    raise ValueError(f"scoring strategy {strategy.type!r} is unknown")
