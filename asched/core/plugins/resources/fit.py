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

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import FIXED_RESOURCES, Aspect, NodeTable
from asched.core.cluster.pods import PodClass, PodInfo
from asched.core.cluster.view import NodeView, with_more
from asched.core.cluster.weakly import weakly
from asched.core.config import args as config
from asched.core.config.args import ResourceSpec
from asched.core.framework.order_free import POD_PLACE, OrderFree
from asched.core.framework.per_class import PerClass, PerPod
from asched.core.framework.placements import (
    Assignments,
    Divisions,
    PlacementScorePlugin,
    RepeatedPlacements,
)
from asched.core.framework.points import (
    I64,
    Codes,
    Concerns,
    FilterPlugin,
    Hint,
    Mask,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Registration,
    ScorePlugin,
)
from asched.core.framework.results.part_sums import KeptSums, OfRow, PartSums
from asched.core.framework.status import Reason, Status, unresolvable, unschedulable
from asched.core.model.claim import DeviceClass
from asched.core.model.kinds import DEVICE_CLASS, NODE, POD
from asched.core.model.lru import Lru
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.quantity import INT64_MAX, milli, whole
from asched.core.model.requests import (
    CPU,
    MEMORY,
    PODS,
    accounted_requests,
    container_requests,
    is_extended,
    is_scalar,
)
from asched.core.plugins.devices.amounts import Delegation, DeviceTally, names_of
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

Amounts = Mapping[str, int]
#: Powers of two of milli-CPU, and of four of bytes.
Size = tuple[int, int]

# Which changes may help a rejected pod. A deleted pod always may; a pod that shrinks, if it
# releases something that the waiting pod needs. A node may if the pod would fit it were it empty,
# and it is new or has grown in what the pod needs. Ignored resources are not ignored here, as in
# upstream; `overlooked` corrects that. Of thousands of waiting pods, a node concerns those that
# request no more CPU and memory than it has, found by the size of both (`_sizes_sought`).

#: Key of pods that request an ignored resource.
_IGNORED: Final = ("ignored",)


class FitHints:
    """The hint functions, with the requests of waiting pods."""

    def __init__(
        self,
        cluster: Cluster,
        delegation: Delegation,
        is_ignored: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._delegation = delegation
        self._is_ignored = is_ignored
        of_class, classes = PerClass(_requests_of), cluster.classes
        #: per pod: computing its class is the largest part of a hint
        self._requests_of = PerPod(cluster, lambda pod: of_class(classes.class_of(pod)))

    def registrations(self) -> Sequence[Registration]:
        pod = Trigger(POD.resource, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN)
        node = Trigger(NODE.resource, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
        device_class = Trigger(DEVICE_CLASS.resource, Action.ADD | Action.UPDATE)
        of_sizes = Concerns(self._sizes_sought, self._sizes_offered)
        return (
            Registration(pod, self._pod_changed),
            Registration(node, self._node_changed, of_sizes),
            Registration(device_class, self._device_class_changed),
        )

    def extra_events(self) -> Sequence[Registration]:
        node = Trigger(NODE.resource, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
        of_ignored = Concerns(self._ignored_sought, lambda *_: _IGNORED)
        return (Registration(node, self._wants_ignored, of_ignored),)

    def _wants_ignored(self, pod: Pod, old: Node | None, new: Node) -> Hint:  # noqa: ARG002
        """The node lacks only resources that are ignored."""
        wants = any(map(self._is_ignored, self._requests_of(pod)))
        return Hint.QUEUE if wants else Hint.SKIP

    def _ignored_sought(self, pod: Pod) -> Collection[str]:
        return _IGNORED if any(map(self._is_ignored, self._requests_of(pod))) else ()

    def _sizes_sought(self, pod: Pod) -> Collection[Size]:
        wanted = self._requests_of(pod)
        return (_size(wanted.get(CPU, 0), wanted.get(MEMORY, 0)),)

    def _sizes_offered(self, old: Node | None, new: Node) -> Collection[Size]:
        """Sizes up to the node's own; none for a node that has not grown."""
        offered = new.status.allocatable or {}
        if old is not None and not self._delegation.classes:
            before = old.status.allocatable or {}
            if not any(_amount(offered, name) > _amount(before, name) for name in offered):
                return ()
        cpu, memory = _size(_amount(offered, CPU), _amount(offered, MEMORY))
        return tuple(product(range(cpu + 1), range(memory + 1)))

    def _pod_changed(self, pod: Pod, old: Pod, new: Pod | None) -> Hint:
        if new is None:
            held_place = old.spec.node_name or old.status.nominated_node_name
            return Hint.QUEUE if held_place else Hint.SKIP
        if new.uid == pod.uid:
            return Hint.QUEUE
        if not new.spec.node_name:
            return Hint.SKIP
        before, after = accounted_requests(old), accounted_requests(new)
        gave_back = any(before.get(name, 0) > after.get(name, 0) for name in self._requests_of(pod))
        return Hint.QUEUE if gave_back else Hint.SKIP

    def _node_changed(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        wanted = self._requests_of(pod)
        offered = new.status.allocatable or {}
        if _amount(offered, PODS) < 1:
            return Hint.SKIP
        classes = self._delegation.classes
        delegated = {n for n in wanted if n in classes and not _amount(offered, n)}
        if any(_amount(offered, n) < amount for n, amount in wanted.items() if n not in delegated):
            return Hint.SKIP
        if old is None or delegated:
            return Hint.QUEUE
        before = old.status.allocatable or {}
        has_grown = any(_amount(offered, n) > _amount(before, n) for n in (PODS, *wanted))
        return Hint.QUEUE if has_grown else Hint.SKIP

    def _device_class_changed(self, pod: Pod, old: DeviceClass | None, new: DeviceClass) -> Hint:
        gained = names_of(new) - (names_of(old) if old is not None else set())
        return Hint.QUEUE if gained & self._requests_of(pod).keys() else Hint.SKIP


def _requests_of(cls: PodClass) -> Amounts:
    """The requests, without zeroes and ignored names."""
    return {
        name: amount
        for name, amount in cls.requests.items()
        if amount > 0 and (name in FIXED_RESOURCES or is_scalar(name))
    }


def _size(milli_cpu: int, memory_bytes: int) -> Size:
    """Monotonic in both amounts."""
    return milli_cpu.bit_length(), memory_bytes.bit_length() // 2


def _amount(allocatable: Mapping[str, str | int | float], name: str) -> int:
    amount = allocatable.get(name, 0)
    return milli(amount) if name == CPU else whole(amount)


#: A hundred times twice as much are 64 bits.
AMOUNT_MAX: Final = INT64_MAX // 200
#: A guess: jobs that wait at the same time have fewer sizes.
POINTS_MAX: Final = 16
READS: Final = int(Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE)


# How full placements would be. For parts that share no nodes, requested and allocatable amounts are
# updated row by row, and the points of a part are valid until one of its rows changes: after a gang
# fills a rack, only that rack is recomputed for the next gang.
#
# Bounds  POINTS_MAX kinds of gangs, the least recently used is dropped; sums as in `part_sums.py`.
# Source  kubernetes/kubernetes v1.36 plugins/noderesources/resource_allocation.go (scorePlacement)


class _Points(Struct):
    """`points` of each part, as `sums` were at a version and an end of its log."""

    sums: PartSums
    full_version: int
    seen: int
    points: list[int]


class PlacementPoints:
    """`amounts_of`: requests of a pod of a class as far as scores consider them."""

    def __init__(
        self,
        cluster: Cluster,
        resources: Sequence[ResourceSpec],
        amounts_of: Callable[[PodClass], Mapping[str, int]],
    ) -> None:
        self._nodes = cluster.nodes
        self._resources = resources
        self._amounts_of = amounts_of
        self._divisions = cluster.singleton(Divisions)
        self._sums = KeptSums()
        self._points: Lru[Scored, _Points] = Lru(POINTS_MAX)

    def of(self, assignments: Assignments) -> int:
        """The share of all nodes of a placement that would be in use, by the configured resources.
        Devices do not count.
        """
        wanted = self._wanted(assignments.pods)
        rows = np.flatnonzero(assignments.placement.mask(self._nodes)).astype(np.int32)
        view = NodeView(self._nodes, rows)
        requested, allocatable = node_amounts(view, wanted.names, _no_devices, nonzero=True)
        held = _sums(np.where(allocatable > 0, requested, 0))
        return _share(held, _sums(allocatable), wanted)

    def of_parts(self, candidates: Sequence[Assignments]) -> Sequence[int] | None:
        """The same for parts that share no nodes, for the same pods; None if the parts overlap, or
        if their sums exceed 64 bits.
        """
        if not isinstance(candidates, RepeatedPlacements):
            pods = candidates[0].pods
            if any(candidate.pods is not pods for candidate in candidates):
                return None
            candidates = RepeatedPlacements([candidate.placement for candidate in candidates], pods)
        parts = self._divisions.of(candidates.placements)
        if parts is None:
            return None
        wanted = self._wanted(candidates.pods)
        names, nodes = wanted.names, self._nodes
        kept = self._sums.get(names, parts, lambda: PartSums(nodes, parts, READS))
        sums = kept.of(
            partial(_held_and_offered, names),
            nodes.resources.end,
            of_row=_of_rows(nodes, [nodes.find_resource(name) for name in names]),
        )
        if sums is None:
            return None
        known = self._points.get(wanted)
        moved = None
        if known is not None and known.sums is kept and known.full_version == kept.full_version:
            moved = kept.turned.rows(known.seen, 1)
        if known is None or moved is None:
            known = _Points(kept, kept.full_version, 0, _of_all(sums, wanted))
            self._points.put(wanted, known)
        for part in moved or ():
            both = sums[:, part].tolist()
            known.points[part] = _share(both[: len(names)], both[len(names) :], wanted)
        known.seen = kept.turned.end
        return known.points

    def _wanted(self, pods: Sequence[tuple[PodInfo, str]]) -> Scored:
        """Total requests of all pods of a trial."""
        asked: dict[str, int] = {}
        of_class: dict[PodClass, int] = {}
        for pod, _ in pods:
            of_class[pod.cls] = of_class[pod.cls] + 1 if pod.cls in of_class else 1
        for cls, count in of_class.items():
            for name, amount in self._amounts_of(cls).items():
                asked[name] = asked.get(name, 0) + amount * count
        return scored(self._resources, asked)


def _of_all(sums: I64, wanted: Scored) -> list[int]:
    held, offered = sums[: len(wanted.names)], sums[len(wanted.names) :]
    if max(int(sums.max(initial=0)), *wanted.plain) <= AMOUNT_MAX:
        points = most_allocated(held + wanted.amounts, offered, wanted.weights)
        found: list[int] = points.tolist()
        return found
    both = zip(held.T.tolist(), offered.T.tolist(), strict=True)
    return [_share(held, offered, wanted) for held, offered in both]


def _share(held: Sequence[int], offered: Sequence[int], wanted: Scored) -> int:
    with_pods = [have + amount for have, amount in zip(held, wanted.plain, strict=True)]
    return most_allocated_one(with_pods, offered, wanted.plain_weights)


def _held_and_offered(names: Sequence[str], nodes: NodeView) -> I64:
    """int64[2R, M]: what is used of each resource where it is offered, then what is offered."""
    requested, allocatable = node_amounts(nodes, names, _no_devices, nonzero=True)
    return np.concatenate((np.where(allocatable > 0, requested, 0), allocatable))


def _of_rows(nodes: NodeTable, places: Sequence[int | None]) -> OfRow:
    """The same for one row at a time; `places` of the resources."""
    read = nodes.columns.read
    allocatable = read("allocatable").item
    requested, nonzero = read("requested").item, read("nonzero").item

    def amounts(row: int) -> list[int]:
        offered = [0 if at is None else allocatable(at, row) for at in places]
        held = [
            0 if at is None or most <= 0 else (nonzero(at, row) if at < 2 else requested(at, row))
            for at, most in zip(places, offered, strict=True)
        ]
        return held + offered

    return amounts


def _sums(amounts: I64) -> list[int]:
    """The sum of each row of int64[R, M], however large."""
    limit = INT64_MAX // max(amounts.shape[1], 1)
    is_small = int(amounts.max(initial=0)) <= limit
    found: list[int] = (amounts if is_small else amounts.astype(np.object_)).sum(axis=1).tolist()
    return found


def _no_devices(_resource: str, nodes: NodeView) -> tuple[I64, I64]:
    nothing = np.zeros(nodes.size, dtype=np.int64)
    return nothing, nothing


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

#: (requested int64[R, M], allocatable int64[R, M], weights int64[R]) -> points int64[M].
Kernel = Callable[[I64, I64, I64], I64]


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

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:  # noqa: ARG002
        if not self._demand(pod.cls).scalars:
            return 0
        return (self._delegation.epoch, self._devices.stamp(self._scored(pod.cls).names))

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:  # noqa: ARG002
        return PreFilterResult()

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:  # noqa: ARG002
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

    def filter_one(self, pod: PodInfo, row: int, data: Any) -> int | None:
        codes = self.filter_few(pod, (row,), data)
        return None if codes is None else codes[0]

    def filter_few(self, pod: PodInfo, rows: Sequence[int], data: Any) -> list[int] | None:  # noqa: ARG002
        demand = self._demand(pod.cls)
        if demand.scalars:
            return None
        read, codes = self._columns.read, list[int]()
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

    def pre_score(self, pod: PodInfo, nodes: NodeView, feasible: Mask) -> PreFilterResult:  # noqa: ARG002
        return PreFilterResult()

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:  # noqa: ARG002
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

    def score_one(self, pod: PodInfo, row: int, data: Any) -> int | None:
        points = self.score_few(pod, (row,), data)
        return None if points is None else points[0]

    def score_few(self, pod: PodInfo, rows: Sequence[int], data: Any) -> list[int] | None:  # noqa: ARG002
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

    def score_placement(self, group: str, assignments: Assignments) -> int:  # noqa: ARG002
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
