"""The pulse: rates of bindings, waiting times and queue lengths of the last half hour.

They are sampled every few seconds from existing counters, in some 50 µs.

    columns  seq; at (s since 1970); bound, refused, failed (attempts per second); waitP50, waitP99
             (s, from a pod's first attempt until it is bound); attemptP50, attemptP99 (s); active,
             backoff, unschedulable, gated (pods). Quantiles are null without observations.

Bounds  BEATS_MAX beats, EVERY_S apart.
"""

import asyncio
import re
from collections import deque
from collections.abc import Iterable, Sequence
from time import time
from typing import Any, Final, NamedTuple

from asched.core.queue.queue import SchedulingQueue
from asched.kube.clock import monotonic_s
from asched.serve.telemetry.instruments import Histogram
from asched.serve.telemetry.scheduler_metrics import SchedulerMetrics

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
