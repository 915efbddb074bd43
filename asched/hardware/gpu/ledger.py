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
from asched.hardware.gpu.shares import I64, WHOLE, GpuDemand, GpuShares, Mask
from asched.plugin import Aspect, ByRow, Cluster, NodeView, PerClass, PodClass, Rows

ASPECTS: Final = Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LABELS | Aspect.LIVE
_PER_PERCENT: Final = WHOLE // 100


class GpuLedger(ByRow[None]):
    """The devices of all rows, updated for the rows that changed."""

    def __init__(self, cluster: Cluster, args: GpuSharingArgs) -> None:
        super().__init__(cluster.nodes, int(ASPECTS))
        self._cluster = cluster
        self._args = args
        self._left: I64 = np.zeros((0, 1), dtype=np.int64)
        self._devices: I64 = np.zeros(0, dtype=np.int64)
        self._kinds: Mask = np.zeros((0, 2), dtype=np.bool_)
        self._asked: list[Counter[GpuDemand]] = []
        self.demand = PerClass(partial(_demand_of, args))
        #: Requests of the pods on all rows.
        self.asked: Counter[GpuDemand] = Counter()

    def refresh(self) -> None:
        """Update the rows that changed. Not in a trial, whose changes must not be stored."""
        if not self._cluster.topology.on_trial:
            self.update(None)

    def _make_all(self, _: None) -> None:
        height = self._nodes.height
        self._left = np.zeros((height, self._left.shape[1]), dtype=np.int64)
        self._devices = np.zeros(height, dtype=np.int64)
        self._kinds = np.zeros((height, self._kinds.shape[1]), dtype=np.bool_)
        self._asked = [Counter() for _ in range(height)]
        self.asked = Counter()
        for row in range(height):
            self._read(row)

    def _make_rows(self, _: None, rows: Rows) -> bool:
        for row in rows:
            self._read(row)
        return True

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
