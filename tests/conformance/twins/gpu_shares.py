"""The GPU policies again, node by node in plain Python, from the published formulas."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from asched.hardware.gpu.shares import GpuDemand

Workload = Sequence[tuple[GpuDemand, float]]


class Node(NamedTuple):
    cpu: int
    left: tuple[int, ...]  # of the devices it has
    model: str


def can_use(node: Node, demand: GpuDemand) -> bool:
    return not demand.models or node.model in demand.models


def fits(node: Node, demand: GpuDemand) -> bool:
    if node.cpu < demand.cpu:
        return False
    if not demand.number:
        return True
    suited = [left for left in node.left if left >= demand.milli]
    return can_use(node, demand) and len(suited) >= demand.number


def fragmented(node: Node, workload: Workload) -> float:
    """By what is lacking, in the order of the simulator; added up at the end."""
    parts = [0.0] * 6
    total = sum(node.left)
    for demand, frequency in workload:
        has_cpu = node.cpu >= demand.cpu
        if not demand.milli:
            parts[3 if has_cpu else 4] += frequency * total
            continue
        if not can_use(node, demand):
            parts[5] += frequency * total
            continue
        has_devices = sum(left >= demand.milli for left in node.left) >= demand.number
        if has_devices and has_cpu:
            parts[1] += frequency * sum(left for left in node.left if left < demand.milli)
        elif has_devices:
            parts[2] += frequency * total
        else:
            parts[1 if has_cpu else 0] += frequency * total
    found = 0.0
    for part in parts:
        found += part
    return found


def after(node: Node, demand: GpuDemand, device: int) -> Node:
    """`device` gives a fraction; whole ones are the first free."""
    left = list(node.left)
    wanted = demand.number
    if wanted and demand.milli < 1000:
        left[device] -= demand.milli
    elif wanted:
        for at, share in enumerate(left):
            if share == 1000 and wanted:
                left[at] = 0
                wanted -= 1
    return Node(node.cpu - demand.cpu, tuple(left), node.model)


def descent(node: Node, demand: GpuDemand, workload: Workload) -> tuple[int, int]:
    """(points, device)."""
    before = fragmented(node, workload)
    devices = [-1]
    if 0 < demand.milli < 1000:
        devices = [at for at, left in enumerate(node.left) if left >= demand.milli]
    best = (-1, -1)
    for device in devices:
        gain = (before - fragmented(after(node, demand, device), workload)) / 1000
        points = int(100 / (1 + math.exp(-gain)))
        if points > best[0]:
            best = (points, device)
    return best


def dot_product(node: Node, demand: GpuDemand) -> int:
    cpu = node.cpu / 128_000 * (demand.cpu / 128_000)
    devices = sum(node.left) / 8_000 * (demand.milli * demand.number / 8_000)
    return int(100 * (1 - (cpu + devices) / 2))


def best_fit(node: Node, demand: GpuDemand) -> int:
    rest = (node.cpu - demand.cpu) / 128_000 * 0.5
    rest += (sum(node.left) - demand.milli * demand.number) / 8_000 * 0.5
    return int((1 - rest) * 100)


def packing(node: Node, demand: GpuDemand) -> int:
    if not demand.number:
        return 0
    free = sum(left == 1000 for left in node.left)
    if free == len(node.left):
        return max(33 - free, free)
    taken = sorted(left for left in node.left if left >= demand.milli)[: demand.number]
    untouched = sum(left == 1000 for left in taken)
    if untouched:
        return max(50 - untouched, 33)
    return max(100 - sum(left * 100 // 1000 for left in taken) // 10, 50)


def clustering(node: Node, demand: GpuDemand, kinds: set[int]) -> int:
    if not demand.number:
        return 0
    kind = 0 if demand.milli < 1000 else demand.number
    alone = (75 if len(kinds) == 1 else 50) if kind in kinds else 25
    base = alone if kind in kinds or not kinds else 0
    return base + 25 * (8_000 - sum(node.left)) // 8_000
