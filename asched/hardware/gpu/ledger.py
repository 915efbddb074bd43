"""Which devices of which node are in use, derived from requests.

Only the device plugin on a node knows which device a pod got. The ledger assumes that each node
packs its pods as tightly as possible: those with most first, whole devices from the free ones, a
fraction on the device with least left. A pod that does not fit in this way takes what is left.

Bounds  DEVICES_MAX: nodes with more devices count as having so many.
"""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Final

import numpy as np

from asched.core.model.requests import CPU
from asched.hardware.gpu.args import DEVICES_MAX, GpuSharingArgs
from asched.hardware.gpu.shares import WHOLE, GpuDemand, GpuShares
from asched.hardware.rows import ByNode, Mask
from asched.plugin import I64, Aspect, Cluster, NodeView, PerClass, PodClass

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
