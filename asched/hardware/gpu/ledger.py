"""Which devices of which node are in use, derived from requests.

Only the device plugin on a node knows which device a pod got. The ledger assumes that each node
packs its pods as tightly as possible: those with most first, whole devices from the free ones, a
fraction on the device with least left. A pod that does not fit in this way takes what is left.

Bounds  DEVICES_MAX: nodes with more devices count as having so many.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from asched.core.model.requests import CPU
from asched.hardware.gpu.shares import WHOLE, GpuDemand, GpuShares
from asched.hardware.rows import ByNode, Mask, UpstreamArgs
from asched.plugin import I64, Aspect, Cluster, NodeView, PerClass, PodClass, qualified_name_faults

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
        self._left: I64 = np.zeros((0, 1), dtype=np.int64)
        self._devices: I64 = np.zeros(0, dtype=np.int64)
        self._kinds: Mask = np.zeros((0, 2), dtype=np.bool_)
        self._asked: list[Counter[GpuDemand]] = []
        self.demand = PerClass(partial(_demand_of, args))
        #: Requests of the pods on all rows.
        self.asked: Counter[GpuDemand] = Counter()

    def _reset(self, height: int) -> None:
        self._left = np.zeros((height, self._left.shape[1]), dtype=np.int64)
        self._devices = np.zeros(height, dtype=np.int64)
        self._kinds = np.zeros((height, self._kinds.shape[1]), dtype=np.bool_)
        self._asked = [Counter() for _ in range(height)]
        self.asked = Counter()

    def shares(self, view: NodeView) -> GpuShares:
        """The current rows of a view; in a trial, with its changes."""
        model, column = view.label(self._args.model_label)
        rows = view.row_numbers()
        if self._cluster.topology.on_trial:
            held = [held_by(self._using(row), self._number_of(row)) for row in rows.tolist()]
            devices = np.array([len(left) for left in held], dtype=np.int64)
            left = np.zeros((len(held), int(devices.max(initial=1))), dtype=np.int64)
            for at, device_left in enumerate(held):
                left[at, : len(device_left)] = device_left
        else:
            self.refresh()
            left, devices = self._left[rows], self._devices[rows]
        cpu = view.allocatable(0) - view.requested(0)
        names = tuple(name or "" for name in column.values.values)
        return GpuShares(cpu, left, devices, model, names)

    def kinds(self, view: NodeView, demand: GpuDemand) -> tuple[Mask, I64]:
        """Whether pods of this kind are on each row, and the number of kinds there."""
        held = self._kinds[view.row_numbers()]
        same = held[:, demand.kind] if demand.kind < held.shape[1] else np.zeros(len(held), bool)
        return same, held.sum(axis=1)

    def _read(self, row: int) -> None:
        number = self._number_of(row)
        if number >= self._left.shape[1]:
            more = number + 1 - self._left.shape[1]
            self._left = np.pad(self._left, ((0, 0), (0, more)))
            self._kinds = np.pad(self._kinds, ((0, 0), (0, more)))
        demands = Counter(self.demand(info.cls) for info in self._cluster.pods_on(row).values())
        self._count(self._asked[row], demands)
        self._asked[row] = demands
        using = self._using(row)
        self._devices[row] = number
        self._left[row] = 0
        self._left[row, :number] = held_by(using, number)
        self._kinds[row] = False
        for demand in using:
            self._kinds[row, min(demand.kind, self._kinds.shape[1] - 1)] = True

    def _using(self, row: int) -> list[GpuDemand]:
        """Demands of the pods on a row for devices."""
        pods = self._cluster.pods_on(row).values()
        return [demand for info in pods if (demand := self.demand(info.cls)).number]

    def _count(self, before: Counter[GpuDemand], now: Counter[GpuDemand]) -> None:
        """The pods of one row changed; demands without pods are dropped."""
        self.asked.update(now)
        for demand, count in before.items():
            self.asked[demand] -= count
            if not self.asked[demand]:
                del self.asked[demand]

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
    asked = cls.accounted
    cpu, number = asked.get(CPU, 0), min(asked.get(args.resource, 0), DEVICES_MAX)
    if not number:
        return GpuDemand(cpu)
    percent = asked.get(args.share_resource, 0)
    is_share = number == 1 and 0 < percent < WHOLE // _PER_PERCENT
    model = (cls.example.spec.node_selector or {}).get(args.model_label)
    milli = percent * _PER_PERCENT if is_share else WHOLE
    return GpuDemand(cpu, milli, number, (model,) if model else ())


def held_by(using: Iterable[GpuDemand], number: int) -> list[int]:
    """Free shares of a node's devices with these pods packed as tightly as possible."""
    left = [WHOLE] * number
    for demand in sorted(using, key=lambda demand: -demand.total):
        for _ in range(demand.number):
            fitting = [at for at, share in enumerate(left) if share >= demand.milli]
            if fitting:
                at = min(fitting, key=left.__getitem__)
            elif left:
                at = max(range(number), key=left.__getitem__)
            else:
                break
            left[at] = max(left[at] - demand.milli, 0)
    return left
