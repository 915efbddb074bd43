"""The live view: the data of its page and of `asched top`; with the pulse, which has rates of
bindings, waiting times and queue lengths of the last half hour, sampled every few seconds.

Expensive parts (why pods wait, nodes, gangs) are computed in slices, once for all clients, and
cached for AGE_S and for REST times the duration of the computation (AGE_S_MAX at most): they cost
at most a tenth of the loop for any number of clients. A sample is read from existing counters, in
some 50 µs.

    columns  seq; at (s since 1970); bound, refused, failed (attempts per second); waitP50, waitP99
             (s, from a pod's first attempt until it is bound); attemptP50, attemptP99 (s); active,
             backoff, unschedulable, gated (pods). Quantiles are null without observations.

Bounds  those of `waiting.py` and `cells.py`; BEATS_MAX beats, EVERY_S apart; RECENT_MAX steps of
        the last LOOKED_AT lines.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import time
from typing import Any, Final, NamedTuple

from asched.core.cycle.history import DecisionStep, HistoryEntry
from asched.core.queue.queue import SchedulingQueue
from asched.kube.clock import monotonic_s
from asched.kube.running import Running
from asched.serve.telemetry.instruments import Histogram
from asched.serve.telemetry.metrics import Metrics
from asched.serve.telemetry.scheduler_metrics import SchedulerMetrics
from asched.serve.view.cells import cells, one_node
from asched.serve.view.pools import pool_rows
from asched.serve.view.slices import linked
from asched.serve.view.waiting import grouped, one_gang, waiting_gangs

EVERY_S: Final = 2.0
#: Half an hour.
BEATS_MAX: Final = 900
#: Minimum duration of a sample; a late one covers the time it took.
_LEAST_S: Final = 0.001


class Beat(NamedTuple):
    """The columns in the module's docstring."""

    seq: int
    at: float
    bound: float
    refused: float
    failed: float
    wait_p50: float | None
    wait_p99: float | None
    attempt_p50: float | None
    attempt_p99: float | None
    active: int
    backoff: int
    unschedulable: int
    gated: int


#: Names on the page, such as waitP50.
COLUMNS: Final = tuple(re.sub("_(.)", lambda m: m[1].upper(), name) for name in Beat._fields)


class _Moved:
    """The growth of a counter since the last call. After a reset it begins at zero."""

    def __init__(self) -> None:
        self._before = 0.0

    def by(self, now: float) -> float:
        before, self._before = self._before, now
        return now - before if now >= before else now


class _Observations:
    """The observations of some histograms since the last call."""

    def __init__(self) -> None:
        self._before: Sequence[int] = ()

    def since(self, histograms: Iterable[Histogram]) -> tuple[Sequence[float], list[int]]:
        """(bounds, counts by bucket)."""
        bounds: Sequence[float] = ()
        now: list[int] = []
        for histogram in histograms:
            bounds = histogram.bounds
            now = (
                [a + b for a, b in zip(now, histogram.counts, strict=True)]
                if now
                else list(histogram.counts)
            )
        before, self._before = self._before, tuple(now)
        if len(before) != len(now) or any(a < b for a, b in zip(now, before, strict=True)):
            return bounds, now
        return bounds, [a - b for a, b in zip(now, before, strict=True)]


def quantile(share: float, bounds: Sequence[float], counts: Sequence[int]) -> float | None:
    """The value below which this share lies, interpolated within its bucket as in Prometheus'
    histogram_quantile; the last bound if it lies beyond; None without observations.
    """
    total = sum(counts)
    if not total:
        return None
    rank, reached = share * total, 0
    for at, count in enumerate(counts[: len(bounds)]):
        if count and reached + count >= rank:
            low = bounds[at - 1] if at else 0.0
            return round(low + (bounds[at] - low) * (rank - reached) / count, 5)
        reached += count
    return bounds[-1]


class Pulse:
    """Start `run` as a task."""

    def __init__(self, metrics: SchedulerMetrics, queue: SchedulingQueue) -> None:
        self._metrics = metrics
        self._queue = queue
        self._beats: deque[Beat] = deque(maxlen=BEATS_MAX)
        self._seq = 0
        self._last_s = monotonic_s()
        self._moved = {result: _Moved() for result in ("scheduled", "unschedulable", "error")}
        self._waits, self._attempts = _Observations(), _Observations()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            self.beat(monotonic_s(), time())

    def beat(self, now_s: float, at_s: float) -> None:
        """`now_s` by the duration counter, `at_s` since 1970."""
        past_s = max(now_s - self._last_s, _LEAST_S)
        self._last_s = now_s
        ended = dict.fromkeys(self._moved, 0.0)
        for (result, _), child in self._metrics.attempts.children.items():
            if result in ended:
                ended[result] += child.value
        per_s = {r: round(moved.by(ended[r]) / past_s, 2) for r, moved in self._moved.items()}
        waits = self._waits.since(self._metrics.sli_duration.children.values())
        took = self._attempts.since(self._metrics.attempt_duration.children.values())
        self._seq += 1
        self._beats.append(
            Beat(
                seq=self._seq,
                at=round(at_s, 3),
                bound=per_s["scheduled"],
                refused=per_s["unschedulable"],
                failed=per_s["error"],
                wait_p50=quantile(0.5, *waits),
                wait_p99=quantile(0.99, *waits),
                attempt_p50=quantile(0.5, *took),
                attempt_p99=quantile(0.99, *took),
                **self._queue.places.pending()._asdict(),
            )
        )

    def columns(self, since: int = 0) -> dict[str, Any]:
        """The samples after number `since`, column by column."""
        first = self._beats[0].seq if self._beats else 1
        skipped = max(since + 1 - first, 0)
        beats = [self._beats[at] for at in range(skipped, len(self._beats))]
        columns = zip(*beats, strict=True) if beats else ((),) * len(COLUMNS)
        return dict(zip(COLUMNS, map(list, columns), strict=True)) | {"everySeconds": EVERY_S}


AGE_S: Final = 1.0
REST: Final = 10.0
AGE_S_MAX: Final = 15.0
RECENT_MAX: Final = 30
LOOKED_AT: Final = 200
#: Steps that are shown; a chosen node only until its outcome is known.
NODE_STEPS: Final = (DecisionStep.NODE, DecisionStep.BOUND, DecisionStep.NOMINATED)
WORTH_A_LINE: Final = (
    *NODE_STEPS,
    DecisionStep.REJECTED,
    DecisionStep.ERROR,
    DecisionStep.FAILED,
)


class LiveView:
    """`is_leader` queries the election."""

    def __init__(
        self,
        scheduler: Running,
        metrics: Metrics,
        version: str,
        rules: str,
        is_leader: Callable[[], bool],
    ) -> None:
        self._scheduler = scheduler
        self._context = scheduler.machine.context
        self._version, self._rules = version, rules
        self._is_leader = is_leader
        self._started_s = time()
        self.pulse = Pulse(metrics.scheduler, self._context.queue)
        self._looking = asyncio.Lock()
        self._long: dict[str, Any] = {}
        self._due_s = 0.0

    async def view(self, names_of: int, since: int) -> Mapping[str, Any]:
        """All data. `names_of`: the generation of node names that the client has; `since`: the last
        beat of the pulse that it has.
        """
        long = await self._refreshed()
        nodes = dict(long["nodes"])
        if nodes["generation"] == names_of:
            del nodes["names"]
        context, scheduler = self._context, self._scheduler
        pending = context.queue.places.pending()
        return {
            "at": scheduler.clock.now_s(),
            "startedAt": self._started_s,
            "version": self._version,
            "rules": self._rules,
            "leads": self._is_leader(),
            "synced": scheduler.is_synced,
            "profiles": sorted(context.runners),
            "pods": len(context.cluster.pods_seen),
            "placed": len(context.cluster.placed),
            "queues": {
                **pending._asdict(),
                "inFlight": len(context.queue.in_flight),
                "binding": scheduler.machine.bindings,
            },
            "series": self.pulse.columns(since),
            **long,
            "nodes": nodes,
            "recent": self._recent(),
        }

    def node(self, name: str) -> Mapping[str, Any] | None:
        """A node, its usage and its pods; None if there is none."""
        return one_node(self._context.cluster, name)

    def gang(self, key: str) -> Mapping[str, Any] | None:
        """A pod group ("namespace/name") and its pods; None if unknown."""
        return one_gang(self._context, key)

    async def _refreshed(self) -> Mapping[str, Any]:
        async with self._looking:
            begun_s = monotonic_s()
            if begun_s >= self._due_s:
                context = self._context
                now_s, histories = self._scheduler.clock.now_s(), await linked(context.histories)
                self._long = {
                    "waiting": await grouped(context.queue, histories, now_s),
                    "gangs": await waiting_gangs(context),
                    "pools": await pool_rows(context, histories, self._scheduler.pools),
                    "nodes": await cells(context.cluster),
                }
                ended_s = monotonic_s()
                self._due_s = ended_s + min(max(AGE_S, REST * (ended_s - begun_s)), AGE_S_MAX)
            return self._long

    def _recent(self) -> list[dict[str, Any]]:
        """The last steps, newest first."""
        shown, known = list[dict[str, Any]](), set[tuple[str, int]]()
        for key, line in self._context.histories.latest(LOOKED_AT):
            is_over = line.step is DecisionStep.NODE and (key, line.attempt) in known
            known.add((key, line.attempt))
            if line.step in WORTH_A_LINE and not is_over:
                shown.append(_step(key, line))
        return shown[:RECENT_MAX]


def _step(key: str, line: HistoryEntry) -> dict[str, Any]:
    what = "being bound" if line.step is DecisionStep.NODE else line.step.value
    shown: dict[str, Any] = {"pod": key, "at": line.at_s, "what": what}
    if line.step in NODE_STEPS:
        if line.step is DecisionStep.NODE:
            shown["node"] = line.details.node
        else:
            shown["node"] = line.details if line.step is DecisionStep.BOUND else line.details[0]
    return shown
