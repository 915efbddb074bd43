"""Nodes of a trace run as columns: what is free on each, and the order in which they changed."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from asched.hardware.gpu.shares import WHOLE, GpuDemand, GpuShares, fits
from asched.plugin import I64
from asched_lab.trace.openb import PODS_MAX, TraceNode, TracePod

Mask = npt.NDArray[np.bool_]


class Fleet:
    """All nodes, in the order that decides between equal ones."""

    def __init__(self, nodes: Sequence[TraceNode]) -> None:
        slots = max((node.devices for node in nodes), default=0)
        models = tuple(sorted({node.model for node in nodes}))
        devices = np.array([node.devices for node in nodes], dtype=np.int64)
        self.shares = GpuShares(
            np.array([node.cpu for node in nodes], dtype=np.int64),
            (np.arange(slots) < devices[:, None]) * np.int64(WHOLE),
            devices,
            np.array([models.index(node.model) for node in nodes], dtype=np.int32),
            models,
        )
        self.memory: I64 = np.array([node.memory for node in nodes], dtype=np.int64)
        self.room: I64 = np.full(len(nodes), PODS_MAX, dtype=np.int64)
        self.pods: I64 = np.zeros((len(nodes), slots + 1), dtype=np.int64)  # by `Demand.kind`
        self.devices = int(devices.sum())
        self.free = self.devices  # devices without pods
        #: Rows in the order in which they changed.
        self.changes: list[int] = []
        self._state_of: dict[tuple[int, ...], int] = {}
        #: Rows with equal numbers offer the same devices and CPU.
        self.state: I64 = np.array([self._state(row) for row in range(len(nodes))], dtype=np.int64)

    def admits(self, pod: TracePod, rows: I64) -> Mask:
        """Bool per row: CPU, memory, number of pods, devices and model suffice."""
        found = fits(self.shares.take(rows), pod.demand)
        return found & (self.memory[rows] >= pod.memory) & (self.room[rows] > 0)

    def place(self, pod: TracePod, row: int, device: int) -> None:
        """`device` serves a fraction; whole devices are the first free ones."""
        demand, free = pod.demand, self.shares.free[row]
        self.shares.cpu[row] -= demand.cpu
        self.memory[row] -= pod.memory
        self.room[row] -= 1
        if demand.number:
            taken = np.flatnonzero(free == WHOLE)[: demand.number]
            if demand.milli < WHOLE:
                taken = np.array([device])
            self.free -= int((free[taken] == WHOLE).sum())
            free[taken] -= demand.milli
            self.pods[row, demand.kind] += 1
        self.state[row] = self._state(row)
        self.changes.append(row)

    def kinds(self, rows: I64, demand: GpuDemand) -> tuple[Mask, I64]:
        """Whether each row has pods of this kind, and how many kinds it has."""
        present = self.pods[rows] > 0
        return present[:, demand.kind], present.sum(axis=1)

    def _state(self, row: int) -> int:
        shares = self.shares
        words = (int(shares.cpu[row]), int(shares.model[row]), int(shares.devices[row]))
        key = (*shares.free[row].tolist(), *words)
        return self._state_of.setdefault(key, len(self._state_of))
