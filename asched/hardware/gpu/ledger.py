"""Which devices of which node are in use, derived from requests.

Only the device plugin on a node knows which device a pod got. The ledger assumes that each node
packs its pods as tightly as possible: those with most first, whole devices from the free ones, a
fraction on the device with least left. A pod that does not fit in this way takes what is left.

Bounds  DEVICES_MAX: nodes with more devices count as having so many.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched.core.model.requests import CPU
from asched.hardware.rows import F64, ByNode, Mask, UpstreamArgs
from asched.plugin import I64, Aspect, Cluster, NodeView, PerClass, PodClass, qualified_name_faults

# Free parts of nodes' devices, in thousandths of one device, and the effect of a placement.
#
# A pod requests a number of devices and `milli` of each: a fraction of one, or whole ones. A
# fraction never spans devices.

I32 = npt.NDArray[np.int32]

#: One whole device.
WHOLE: Final = 1000


class GpuDemand(NamedTuple):
    """Demand of a pod. `models`: the allowed models, sorted; () for any."""

    cpu: int  # milli-CPU
    milli: int = 0
    number: int = 0  # of devices
    models: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Thousandths of a device."""
        return self.milli * self.number

    @property
    def kind(self) -> int:
        """Pods of the same kind use a node in the same way: fractions, or the same number of whole
        devices.
        """
        return 0 if self.milli < WHOLE else self.number


class GpuShares(NamedTuple):
    """M nodes. Absent devices have nothing left; `models` are the names of the ids in `model`."""

    cpu: I64  # [M] milli-CPU left
    free: I64  # [M, D]
    devices: I64  # [M] number of devices
    model: I32  # [M]
    models: tuple[str, ...]

    def take(self, rows: I64) -> "GpuShares":
        return GpuShares(
            self.cpu[rows], self.free[rows], self.devices[rows], self.model[rows], self.models
        )


class Placements(NamedTuple):
    """X ways to place a pod, grouped by node, by device.

    `position` int64[X] is the position among the M nodes; `device` int64[X] is the device of a
    fraction, -1 for whole devices, which are taken from the free ones in order, or for no device.
    """

    position: I64
    device: I64
    after: GpuShares


def has_devices(shares: GpuShares, demand: GpuDemand) -> Mask:
    """bool[M]: enough devices have enough left."""
    enough: Mask = (shares.free >= demand.milli).sum(axis=1) >= demand.number
    return enough


def fits(shares: GpuShares, demand: GpuDemand) -> Mask:
    """bool[M]: CPU, devices and model suffice."""
    enough = shares.cpu >= demand.cpu
    if demand.number:
        enough &= has_devices(shares, demand)
        enough &= accepts(demand, shares.models)[shares.model]
    return enough


def accepts(demand: GpuDemand, models: tuple[str, ...]) -> Mask:
    """Whether each model id is allowed."""
    return np.array([not demand.models or name in demand.models for name in models], dtype=np.bool_)


def placements(shares: GpuShares, demand: GpuDemand) -> Placements:
    """Every distinct way to place a pod on nodes where it fits: of devices with equally much left,
    the first.
    """
    if 0 < demand.milli < WHOLE:
        free = shares.free
        offered = free >= demand.milli
        for device in range(1, free.shape[1]):
            same = free[:, :device] == free[:, device : device + 1]
            offered[:, device] &= ~same.any(axis=1)
        position, device_of = offered.nonzero()
        after = shares.take(position)
        after.free[np.arange(len(position)), device_of] -= demand.milli
    else:
        position = np.arange(len(shares.cpu))
        device_of = np.full(len(position), -1)
        after = shares.take(position)
        if demand.number:
            is_whole = after.free == WHOLE
            after.free[is_whole & (is_whole.cumsum(axis=1) <= demand.number)] = 0
    return Placements(position, device_of, after._replace(cpu=after.cpu - demand.cpu))


def best_of(ways: Placements, points: npt.NDArray[np.generic], size: int) -> tuple[I64, I64]:
    """(index into the ways, device) of the best way on each of `size` nodes, int64[size] each;
    index -1 where there is none, and the first of equals.
    """
    index = np.full(size, -1)
    device = np.full(size, -1)
    if len(points):
        starts = np.flatnonzero(np.diff(ways.position, prepend=-1))
        peaks = np.maximum.reduceat(points, starts)
        is_best = points == np.repeat(peaks, np.diff(starts, append=len(points)))
        best = np.flatnonzero(is_best)[::-1]  # written last wins: the first of equals
        index[ways.position[best]] = best
        device[ways.position[best]] = ways.device[best]
    return index, device


# Points of the simple GPU policies, 0..100 by node; CPU and devices count together.
#
# Edges   nodes where the pod does not fit have undefined points.
# Source  the simulator published with Weng et al., USENIX ATC 2023: dot product, GPU clustering,
#         GPU packing and best fit as in its plugins

#: The largest node, the unit of amounts: milli-CPU, thousandths of a device.
LARGEST_CPU: Final = 128_000.0
LARGEST_DEVICES: Final = 8
MAX_SCORE: Final = 100.0


def dot_product(shares: GpuShares, demand: GpuDemand) -> I64:
    """Few points where much is left of what the pod mostly requests."""
    largest = float(LARGEST_DEVICES * WHOLE)
    product = (shares.cpu / LARGEST_CPU) * (demand.cpu / LARGEST_CPU)
    product = product + (shares.free.sum(axis=1) / largest) * (demand.total / largest)
    points: I64 = (MAX_SCORE * (1.0 - product / 2)).astype(np.int64)
    return points


def best_fit(shares: GpuShares, demand: GpuDemand) -> I64:
    """The less is left with the pod, the better. Not scaled to 0..100 yet."""
    largest = float(LARGEST_DEVICES * WHOLE)
    rest = (shares.cpu - demand.cpu) / LARGEST_CPU * 0.5
    rest = rest + (shares.free.sum(axis=1) - demand.total) / largest * 0.5
    points: I64 = ((1.0 - rest) * MAX_SCORE).astype(np.int64)
    return points


def packing(shares: GpuShares, demand: GpuDemand) -> I64:
    """Devices in use first, the fuller the better; then free ones of nodes in use; free nodes
    last.
    """
    if not demand.number:
        return np.zeros(len(shares.cpu), dtype=np.int64)
    is_whole = (shares.free == WHOLE).sum(axis=1)
    ascending = np.sort(np.where(shares.free >= demand.milli, shares.free, WHOLE + 1), axis=1)
    taken = ascending[:, : demand.number]
    untouched = (taken == WHOLE).sum(axis=1)
    shared = np.maximum(100 - (taken * 100 // WHOLE).sum(axis=1) // 10, 50)
    used = np.where(untouched > 0, np.maximum(50 - untouched, 33), shared)
    points: I64 = np.where(is_whole == shares.devices, np.maximum(33 - is_whole, is_whole), used)
    return points


def clustering(
    shares: GpuShares, demand: GpuDemand, holds_kind: npt.NDArray[np.bool_], kinds: I64
) -> I64:
    """Group pods of one kind (fractions, or the same number of whole devices).

    `holds_kind` bool[M]: a pod of this kind is there; `kinds` int64[M]: the number of kinds there.
    """
    if not demand.number:
        return np.zeros(len(shares.cpu), dtype=np.int64)
    largest = LARGEST_DEVICES * WHOLE
    base = np.where(holds_kind, np.where(kinds == 1, 75, 50), np.where(kinds == 0, 25, 0))
    points: I64 = base + 25 * (largest - shares.free.sum(axis=1)) // largest
    return points


def spread(points: I64) -> I64:
    """Scale points of the feasible nodes to 0..100, the least to 0."""
    low, high = int(points.min()), int(points.max())
    if high == low:
        return points - low
    return (points - low) * 100 // (high - low)


def ranked(points: I64) -> I64:
    """Rank: the best get 100, the next best 99 and so on: whole points that preserve the order."""
    _, place = np.unique(points, return_inverse=True)
    behind = place.max(initial=0) - place
    found: I64 = np.maximum(int(MAX_SCORE) - behind, 0)
    return found


# Fragmentation: how much of a node's free devices the expected pods cannot use.
#
# For a node with CPU c and device shares g left, S their sum, and one expected pod: all of S if the
# pod asks for no device, may not use this model, or does not fit by CPU or devices; otherwise what
# lies on devices too full for it. Over all expected pods it is the mean by their frequency.
#
# Source  Weng et al., Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
#         Gradient Descent, USENIX ATC 2023, and the simulator published with it

#: Of all pods seen, the most frequent shapes are expected, until they cover this share.
COVERED: Final = 0.95


def expected(counts: Sequence[tuple[GpuDemand, int]]) -> list[tuple[GpuDemand, float]]:
    """The expected shapes with their frequencies, the most frequent first."""
    ordered = sorted(counts, key=lambda entry: (entry[1], *entry[0][:3], "|".join(entry[0].models)))
    total = float(sum(count for _, count in counts))
    kept: list[tuple[GpuDemand, int]] = []
    covered = 0.0
    for demand, count in reversed(ordered):
        if covered >= COVERED * total:
            break
        kept.append((demand, count))
        covered += count
    return [(demand, (count / total) / (covered / total)) for demand, count in kept]


class Fragmentation:
    """An expected workload, and the device shares that it could not use."""

    def __init__(self, workload: Sequence[tuple[GpuDemand, float]]) -> None:
        """Pods with their frequencies, which sum up to 1."""
        self.workload = tuple(workload)
        demands = [demand for demand, _ in workload]
        self._weights = np.array([weight for _, weight in workload]).reshape(-1, 1)
        self._cpu = np.array([demand.cpu for demand in demands], dtype=np.int64).reshape(-1, 1)
        self._count = np.array([demand.number for demand in demands]).reshape(-1, 1)
        millis = np.array([demand.milli for demand in demands], dtype=np.int64)
        self._millis, self._milli_of = np.unique(millis, return_inverse=True)
        self._plain = (millis == 0).reshape(-1, 1)
        self._models: tuple[str, ...] = ()
        self._access: Mask = np.ones((len(demands), 0), dtype=np.bool_)

    def of(self, shares: GpuShares) -> F64:
        """float64[M], thousandths of a device.

        The order of summation is fixed: by workload, separately for each kind of shortage. Scores
        are cut to whole points, so that another order may change them.
        """
        free = shares.free
        total = free.sum(axis=1)
        if not self.workload:
            return np.zeros(len(total))
        enough = free[None, :, :] >= self._millis[:, None, None]  # [U, M, D]
        missed = total - np.where(enough, free, 0).sum(axis=2)  # [U, M]
        has_devices = enough.sum(axis=2)[self._milli_of] >= self._count  # [m, M]
        has_cpu = shares.cpu >= self._cpu
        if shares.models != self._models:
            self._models = shares.models
            self._access = np.array([accepts(demand, self._models) for demand, _ in self.workload])
        access = self._access[:, shares.model]
        usable = has_devices & access & ~self._plain
        amounts = np.where(usable & has_cpu, missed[self._milli_of], total) * self._weights
        plain = np.broadcast_to(self._plain, has_cpu.shape)
        can_serve = access & ~plain
        parts = (
            can_serve & ~has_devices & ~has_cpu,
            can_serve & has_cpu,
            can_serve & has_devices & ~has_cpu,
            plain & has_cpu,
            plain & ~has_cpu,
            ~access & ~plain,
        )
        found: F64 = np.zeros(len(total))
        for part in parts:
            found += np.add.accumulate(np.where(part, amounts, 0.0))[-1]
        return found

    def gradient(self, shares: GpuShares, demand: GpuDemand) -> tuple[Placements, F64]:
        """The ways to place a pod on nodes where it fits, and by how much each reduces
        fragmentation, float64[X].
        """
        ways = placements(shares, demand)
        return ways, self.of(shares)[ways.position] - self.of(ways.after)


def descent_points(gradient: F64) -> I64:
    """int64[X] in 0..100; 50 where nothing changes. Cut, not rounded."""
    return (MAX_SCORE / (1.0 + np.exp(-gradient / WHOLE))).astype(np.int64)


# Devices as a cutting-stock problem: the value of a piece, and the loss of cutting it from a
# device.
#
# Fractions are pieces of given lengths, devices are bars. The frequencies of the lengths determine
# the plan with the fewest bars; its prices give the value of every rest of a bar: that of the best
# pieces that can still be cut from it. A cut costs nothing if the rest loses no more than the price
# of the piece.
#
# Bounds  GRAIN: lengths are rounded up, rests down. LENGTHS_MAX: the most frequent lengths count.
# Source  Gilmore and Gomory, A Linear Programming Approach to the Cutting-Stock Problem, Operations
#         Research 9 (1961)

GRAIN: Final = 10
CELLS: Final = WHOLE // GRAIN
LENGTHS_MAX: Final = 32
#: Plans tried before the last one is used; a few dozen find the best.
PLANS_MAX: Final = 200
#: Weight of a device's rest relative to the loss: among equals the tightest device wins.
TIGHT: Final = 0.1
_NOTHING: Final = 1e-9


def _rest_values(counts: Iterable[tuple[GpuDemand, float]]) -> F64:
    """Values of rests from the frequency of each length."""
    by_cells = defaultdict[int, float](float, {CELLS: 1.0})
    for demand, count in counts:
        if demand.number == 1:
            by_cells[_cells(demand.milli)] += count
    frequent = sorted(by_cells, key=lambda cells: (-by_cells[cells], cells))[:LENGTHS_MAX]
    lengths = sorted({*frequent, CELLS})
    need = np.array([by_cells[cells] for cells in lengths])
    need /= need.sum()
    plan = np.diag([float(CELLS // cells) for cells in lengths])
    for _ in range(PLANS_MAX):
        inverse = np.linalg.inv(plan)
        values, pattern = _best_pattern(lengths, inverse.sum(axis=0).tolist())
        if values[CELLS] <= 1 + _NOTHING:
            break
        entering = inverse @ pattern
        grows = entering > _NOTHING
        ratio = np.where(grows, inverse @ need / np.where(grows, entering, 1.0), np.inf)
        plan[:, int(ratio.argmin())] = pattern
    return np.array(values) / values[CELLS]


def _cells(milli: int) -> int:
    return -(-milli // GRAIN)


def _best_pattern(lengths: Sequence[int], prices: Sequence[float]) -> tuple[list[float], F64]:
    """(the best value that can be cut from every rest, how many of each length from a whole)."""
    pieces = list(enumerate(zip(lengths, prices, strict=True)))
    values = [0.0] * (CELLS + 1)
    chosen = [-1] * (CELLS + 1)
    for cells in range(1, CELLS + 1):
        values[cells] = values[cells - 1]
        for piece, (length, price) in pieces:
            if length > cells:
                break
            value = values[cells - length] + price
            if value > values[cells] + _NOTHING:
                values[cells], chosen[cells] = value, piece
    pattern = np.zeros(len(lengths))
    cells = CELLS
    while cells:
        piece = chosen[cells]
        cells -= lengths[piece] if piece >= 0 else 1
        if piece >= 0:
            pattern[piece] += 1
    return values, pattern


class Stock:
    """An expected workload, and the cost of placing a pod under it."""

    def __init__(self, counts: Sequence[tuple[GpuDemand, float]]) -> None:
        """Pods with their frequencies."""
        #: values of rests in steps of GRAIN, float64[CELLS + 1]; a whole device has the value 1
        self._rest = _rest_values(counts)
        using = [(demand, count) for demand, count in counts if demand.number]
        devices = sum(demand.total * count for demand, count in using)
        #: milli-CPU that pods use along with a thousandth of a device
        self.cpu_per_milli = sum(demand.cpu * count for demand, count in using) / (devices or 1)

    def price(self, milli: int) -> float:
        return float(self._rest[_cells(milli)])

    def loss(self, free: I64, milli: int) -> F64:
        """Loss of a device's value by giving `milli`, beyond the price of the piece."""
        after = self._rest[(free - milli) // GRAIN]
        return self._rest[free // GRAIN] - after - self.price(milli)

    def stranded(self, shares: GpuShares) -> F64:
        """float64[M] devices that stay idle for lack of CPU if pods come as expected."""
        total = shares.free.sum(axis=1)
        if not self.cpu_per_milli:
            return np.zeros(len(total))
        idle: F64 = np.maximum(0.0, total - shares.cpu / self.cpu_per_milli) / WHOLE
        return idle

    def costs(self, shares: GpuShares, demand: GpuDemand, ways: Placements) -> F64:
        """float64[X] devices lost by each way to place a pod; may be negative."""
        cost: F64 = self.stranded(ways.after) - self.stranded(shares)[ways.position]
        if 0 < demand.milli < WHOLE:
            free = shares.free[ways.position, ways.device]
            cost += self.loss(free, demand.milli) + TIGHT * (free - demand.milli) / WHOLE
        return cost


# The args of GpuSharing: its strategies, names of resources and labels, and the expected pods.

FRAGMENTATION_GRADIENT_DESCENT: Final = "FragmentationGradientDescent"
CUTTING_STOCK: Final = "CuttingStock"
BEST_FIT: Final = "BestFit"
DOT_PRODUCT: Final = "DotProduct"
PACKING: Final = "Packing"
CLUSTERING: Final = "Clustering"
#: Strategies that use expected pods.
EXPECTING: Final = (FRAGMENTATION_GRADIENT_DESCENT, CUTTING_STOCK)
STRATEGIES: Final = (*EXPECTING, BEST_FIT, DOT_PRODUCT, PACKING, CLUSTERING)
#: Nodes with more devices count as having this many.
DEVICES_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class ExpectedPod:
    """A shape of pods, and how many are expected; `milli_device` thousandths of each device, whole
    devices by default. Raises ValueError.
    """

    milli_cpu: int = field(default=0, metadata={"name": "milliCPU"})
    devices: int = 0
    milli_device: int | None = None
    weight: int = 1
    models: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        faults = []
        if self.weight < 1:
            faults.append(f"weight {self.weight} must be at least 1")
        if self.milli_cpu < 0:
            faults.append(f"milliCPU {self.milli_cpu} must not be negative")
        if not 0 <= self.devices <= DEVICES_MAX:
            faults.append(f"devices {self.devices} not in valid range [0, {DEVICES_MAX}]")
        lowest = {0: 0, 1: 1}.get(self.devices, WHOLE)
        highest = WHOLE if self.devices else 0
        if not lowest <= self._milli <= highest:
            faults.append(
                f"milliDevice {self._milli} not in valid range [{lowest}, {highest}] for"
                f" {self.devices} devices"
            )
        if faults:
            raise ValueError("; ".join(faults))

    @property
    def _milli(self) -> int:
        if self.milli_device is not None:
            return self.milli_device
        return WHOLE if self.devices else 0

    @property
    def demand(self) -> GpuDemand:
        return GpuDemand(self.milli_cpu, self._milli, self.devices, tuple(sorted(self.models)))


@dataclass(frozen=True, slots=True)
class GpuSharingArgs(UpstreamArgs):
    """`resource` counts devices, `share_resource` is the percentage a pod takes of its one device.
    Labels of nodes: the number of devices (without it: the allocatable number), and their model. No
    `workload`: derived from the pods on the nodes. Raises ValueError.
    """

    strategy: str = FRAGMENTATION_GRADIENT_DESCENT
    resource: str = "nvidia.com/gpu"
    share_resource: str = "nvidia.com/gpucores"
    devices_label: str = "nvidia.com/gpu.count"
    model_label: str = "nvidia.com/gpu.product"
    workload: tuple[ExpectedPod, ...] = ()

    def __post_init__(self) -> None:
        UpstreamArgs.__post_init__(self)
        faults = list(self._faults())
        if faults:
            raise ValueError("; ".join(faults))

    def _faults(self) -> Iterator[str]:
        if self.strategy not in STRATEGIES:
            yield f'strategy "{self.strategy}" is none of {", ".join(STRATEGIES)}'
        elif self.workload and self.strategy not in EXPECTING:
            yield f"strategy {self.strategy} expects no pods: workload must be left out"
        names = {"resource": self.resource, "shareResource": self.share_resource}
        names |= {"devicesLabel": self.devices_label, "modelLabel": self.model_label}
        for name, value in names.items():
            if wrong := qualified_name_faults(value):
                yield f'{name} "{value}": {"; ".join(wrong)}'


ASPECTS: Final = Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LABELS | Aspect.LIVE
_PER_PERCENT: Final = WHOLE // 100


class GpuLedger(ByNode):
    """The devices of all rows, updated for the rows that changed."""

    def __init__(self, cluster: Cluster, args: GpuSharingArgs) -> None:
        super().__init__(cluster, ASPECTS)
        self._args = args
        self._free: I64 = np.zeros((0, 1), dtype=np.int64)
        self._devices: I64 = np.zeros(0, dtype=np.int64)
        self._kinds: Mask = np.zeros((0, 2), dtype=np.bool_)
        self._demands: list[Counter[GpuDemand]] = []
        self.demand = PerClass(partial(_demand_of, args))
        #: Requests of the pods on all rows.
        self.total_demands: Counter[GpuDemand] = Counter()

    def _reset(self, height: int) -> None:
        self._free = np.zeros((height, self._free.shape[1]), dtype=np.int64)
        self._devices = np.zeros(height, dtype=np.int64)
        self._kinds = np.zeros((height, self._kinds.shape[1]), dtype=np.bool_)
        self._demands = [Counter() for _ in range(height)]
        self.total_demands = Counter()

    def shares(self, view: NodeView) -> GpuShares:
        """The current rows of a view; in a trial, with its changes."""
        model, column = view.label(self._args.model_label)
        rows = view.row_numbers()
        if self._cluster.topology.on_trial:
            held = [held_by(self._using(row), self._number_of(row)) for row in rows.tolist()]
            devices = np.array([len(free) for free in held], dtype=np.int64)
            free = np.zeros((len(held), int(devices.max(initial=1))), dtype=np.int64)
            for at, device_free in enumerate(held):
                free[at, : len(device_free)] = device_free
        else:
            self.refresh()
            free, devices = self._free[rows], self._devices[rows]
        cpu = view.allocatable(0) - view.requested(0)
        names = tuple(name or "" for name in column.values.values)
        return GpuShares(cpu, free, devices, model, names)

    def kinds(self, view: NodeView, demand: GpuDemand) -> tuple[Mask, I64]:
        """Whether pods of this kind are on each row, and the number of kinds there."""
        held = self._kinds[view.row_numbers()]
        same = held[:, demand.kind] if demand.kind < held.shape[1] else np.zeros(len(held), bool)
        return same, held.sum(axis=1)

    def _read(self, row: int) -> None:
        number = self._number_of(row)
        if number >= self._free.shape[1]:
            more = number + 1 - self._free.shape[1]
            self._free = np.pad(self._free, ((0, 0), (0, more)))
            self._kinds = np.pad(self._kinds, ((0, 0), (0, more)))
        demands = Counter(self.demand(info.cls) for info in self._cluster.pods_on(row).values())
        self.total_demands.update(demands)
        self.total_demands.subtract(self._demands[row])
        for gone in [demand for demand in self._demands[row] if not self.total_demands[demand]]:
            del self.total_demands[gone]
        self._demands[row] = demands
        using = self._using(row)
        self._devices[row] = number
        self._free[row] = 0
        self._free[row, :number] = held_by(using, number)
        self._kinds[row] = False
        for demand in using:
            self._kinds[row, min(demand.kind, self._kinds.shape[1] - 1)] = True

    def _using(self, row: int) -> list[GpuDemand]:
        """Demands of the pods on a row for devices."""
        pods = self._cluster.pods_on(row).values()
        return [demand for info in pods if (demand := self.demand(info.cls)).number]

    def _number_of(self, row: int) -> int:
        node = self._cluster.nodes.node_at[row]
        if node is None:
            return 0
        text = node.labels.get(self._args.devices_label, "")
        if text.isascii() and text.isdigit():
            return int(min(int(text[:9]), DEVICES_MAX))
        resource = self._cluster.nodes.find_resource(self._args.resource)
        if resource is None:
            return 0
        return int(min(self._cluster.nodes.columns.read("allocatable")[resource, row], DEVICES_MAX))


def _demand_of(args: GpuSharingArgs, cls: PodClass) -> GpuDemand:
    """The demand of a class, none if an amount cannot be parsed; a share of several devices counts
    as whole devices.
    """
    requests = cls.accounted
    cpu, number = requests.get(CPU, 0), min(requests.get(args.resource, 0), DEVICES_MAX)
    if not number:
        return GpuDemand(cpu)
    percent = requests.get(args.share_resource, 0)
    is_share = number == 1 and 0 < percent < WHOLE // _PER_PERCENT
    model = (cls.example.spec.node_selector or {}).get(args.model_label)
    milli = percent * _PER_PERCENT if is_share else WHOLE
    return GpuDemand(cpu, milli, number, (model,) if model else ())


def held_by(using: Iterable[GpuDemand], number: int) -> list[int]:
    """Free shares of a node's devices with these pods packed as tightly as possible."""
    free = [WHOLE] * number
    for demand in sorted(using, key=lambda demand: -demand.total):
        for _ in range(demand.number):
            fitting = [at for at, share in enumerate(free) if share >= demand.milli]
            if fitting:
                at = min(fitting, key=free.__getitem__)
            elif free:
                at = max(range(number), key=free.__getitem__)
            else:
                break
            free[at] = max(free[at] - demand.milli, 0)
    return free
