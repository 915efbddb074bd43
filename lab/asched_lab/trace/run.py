"""One run: every pod is offered once, in order; it gets the best node, or is rejected for good.

Equal pods share their points: for the next of its kind only the rows that changed meanwhile are
scored again.

Source  of the curve: experiments/analysis/merge_alloc_discrete.py of the simulator published with
        Weng et al., USENIX ATC 2023
"""

import time
from collections import Counter
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from asched.hardware.gpu.shares import WHOLE
from asched_lab.trace.arrivals import arrivals
from asched_lab.trace.engine import STRATEGIES, Engine
from asched_lab.trace.fleet import Fleet
from asched_lab.trace.openb import Trace, TraceError, TracePod, default_folder, load, one_of
from asched_lab.trace.policies import POLICIES, Policy, policy_named

#: Percent of all devices requested, at which figures are published.
LAST_PERCENT: Final = 130
POINTS: Final = (60, 90, 100, 130)


def curve(arrived: Sequence[int], used: Sequence[int], devices: int) -> list[float | None]:
    """For 0 to 130 percent arrived: the mean percentage in use, over all arrivals that round to it
    (or to a neighbour, if none does); None where no value exists.

    `arrived` and `used` are running sums after every arrival, in thousandths of a device.
    """
    capacity = devices * WHOLE
    by_percent: dict[int, list[float]] = {}
    for requested, in_use in zip(arrived, used, strict=True):
        share = round(100 * in_use / capacity, 2)
        by_percent.setdefault(round(100 * requested / capacity), []).append(share)
    found: list[float | None] = []
    for percent in range(LAST_PERCENT + 1):
        shares = by_percent.get(percent)
        if shares is None:
            shares = [
                share for near in (percent - 1, percent + 1) for share in by_percent.get(near, ())
            ]
        found.append(round(sum(shares) / len(shares), 2) if shares else None)
    return found


class Outcome(NamedTuple):
    """`curve`: percent of all devices in use, by percent of them asked for (0 to 130)."""

    trace: str
    policy: str
    seed: int
    pods: int
    placed: int
    placed_plain: int  # of the pods that request no device
    plain: int
    kept_out: int  # rejected although a node had room
    nodes_used: int
    curve: list[float | None]
    seconds: float


class _Points:
    """Points of all rows for equal pods; -inf where they do not fit."""

    __slots__ = ("_cursor", "device", "points")

    def __init__(self, size: int) -> None:
        self.points = np.full(size, -np.inf)
        self.device = np.full(size, -1)
        self._cursor = -1

    def refresh(self, fleet: Fleet, policy: Policy, pod: TracePod, *, is_scarce: bool) -> None:
        if self._cursor < 0:
            rows = np.arange(len(self.points))
        else:
            rows = np.unique(np.array(fleet.changes[self._cursor :], dtype=np.int64))
        self._cursor = len(fleet.changes)
        fitting = fleet.admits(pod, rows)
        self.points[rows[~fitting]] = -np.inf
        rows = rows[fitting]
        if len(rows):
            scored = policy.score(fleet, rows, pod.demand, is_scarce=is_scarce)
            self.points[rows] = scored.points
            self.device[rows] = scored.device


class Run:
    """All nodes under one policy."""

    def __init__(self, fleet: Fleet, policy: Policy) -> None:
        self.fleet = fleet
        self.kept_out = 0  # rejected although a node had room
        self._policy = policy
        self._points: dict[Hashable, _Points] = {}

    def offer(self, pod: TracePod) -> int | None:
        """Place a pod; return its row, None if it fits nowhere."""
        fleet, policy = self.fleet, self._policy
        is_scarce = policy.is_scarce(fleet, pod.demand)
        key = pod.demand, pod.memory, is_scarce
        cached = self._points.get(key)
        if cached is None:
            cached = self._points[key] = _Points(len(fleet.memory))
        cached.refresh(fleet, policy, pod, is_scarce=is_scarce)
        row = policy.choose(cached.points)
        if cached.points[row] == -np.inf:
            self.kept_out += is_scarce and bool(
                fleet.admits(pod, np.arange(len(fleet.memory))).any()
            )
            return None
        fleet.place(pod, row, int(cached.device[row]))
        return row

    def forget(self) -> None:
        """Drop all cached points."""
        self._points.clear()


def simulate(
    trace: str, policy: str, seed: int, folder: Path | None = None, *, by_engine: bool = False
) -> Outcome:
    """Run one policy on one trace, as `openb:default`. Raises TraceError.

    `by_engine`: decided by the scheduler's engine with the plugin GpuSharing.
    """
    return play(load(trace, folder or default_folder()), policy, seed, by_engine=by_engine)


def play(trace: Trace, policy: str, seed: int, *, by_engine: bool = False) -> Outcome:
    """The same for a loaded trace."""
    began = time.perf_counter()
    name = policy_named(policy)
    if name is None:
        raise TraceError(f"no policy {one_of(policy, list(POLICIES))}")
    setting = arrivals(trace, seed)
    run: Run | Engine
    if by_engine:
        if name not in STRATEGIES:
            raise TraceError(f"{name} is no strategy of the plugin; {', '.join(STRATEGIES)} are")
        run = Engine(setting.nodes, STRATEGIES[name])
    else:
        counts = list(Counter(pod.demand for pod in trace.pods).items())
        run = Run(Fleet(setting.nodes), POLICIES[name][1](counts, seed))
    places = [run.offer(pod) for pod in setting.pods]
    placed = [place is not None for place in places]
    totals = np.array([pod.demand.total for pod in setting.pods], dtype=np.int64)
    used = np.where(placed, totals, 0)
    plain = totals == 0
    return Outcome(
        trace.name,
        name,
        seed,
        len(places),
        sum(placed),
        int(plain[placed].sum()),
        int(plain.sum()),
        0 if isinstance(run, Engine) else run.kept_out,
        len(set(places) - {None}),
        curve(totals.cumsum().tolist(), used.cumsum().tolist(), setting.devices),
        time.perf_counter() - began,
    )
