"""Data items: what a run measured, in the shape scheduler_perf writes them.

Rules   throughput is sampled: nothing is recorded before the first pod, the first interval that saw
        pods is only a baseline, every later one that saw pods gives pods per elapsed second, and
        intervals without pods in between repeat that value; the average is the mean of the samples,
        so ramp-up and the tail of the first interval stay outside;
        a run that is over before a second sample has no average by that rule: then its pods per
        second between first and last are reported instead, with a note.
Source  kubernetes/kubernetes v1.36 test/integration/scheduler_perf (throughput collector)
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from asched_lab.bench.watching import Collection

#: Sampling interval of throughput: one second, as upstream. In process a workload is over within a
#: second or two, so there a run is cut into INTERVALS if that is finer.
INTERVAL_S: Final = 1.0
INTERVALS: Final = 20
#: Points of a plot, at least, where the clock allows it.
CURVE_POINTS: Final = 50
PERCENTILES: Final = (50, 90, 95, 99)

Unit = str


@dataclass(frozen=True, slots=True)
class DataItem:
    """One measured thing: `data` maps Average, Perc50 … to numbers."""

    name: str
    metric: str
    unit: Unit
    data: dict[str, float]
    labels: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        labels = {"Metric": self.metric, "Name": self.name, **self.labels}
        return {"data": dict(self.data), "unit": self.unit, "labels": labels}


def samples(times_s: Sequence[float], started_s: float, interval_s: float) -> list[float]:
    """Throughput samples of sorted times, pods per second, by scheduler_perf's rule."""
    found: list[float] = []
    seen = skipped = at = 0
    is_baseline_taken = False
    tick_s = started_s
    while seen < len(times_s):
        tick_s += interval_s
        while at < len(times_s) and times_s[at] <= tick_s:
            at += 1
        fresh, seen = at - seen, at
        if not fresh:
            skipped += is_baseline_taken
            continue
        if not is_baseline_taken:
            is_baseline_taken = True
            continue
        rate = fresh / (interval_s * (skipped + 1))
        found += [rate] * (skipped + 1)
        skipped = 0
    return found


def spread(values: Sequence[float] | NDArray[np.float64]) -> dict[str, float]:
    """Average and percentiles."""
    array = np.asarray(values, dtype=np.float64)
    data = {"Average": float(array.mean())}
    for percent, value in zip(PERCENTILES, np.percentile(array, PERCENTILES), strict=True):
        data[f"Perc{percent}"] = float(value)
    return data


def throughput(collection: Collection, run: str, *, is_fine: bool) -> DataItem:
    """The throughput of a collection; `is_fine`: in intervals as short as the run needs."""
    times_s = sorted(collection.scheduled_at_s)
    interval_s = INTERVAL_S
    if is_fine and times_s:
        span_s = (times_s[-1] - collection.started_s) * (1 + 1e-9)
        interval_s = min(INTERVAL_S, span_s / INTERVALS)
    taken = samples(times_s, collection.started_s, interval_s)
    labels = {"pods": str(len(times_s)), "interval_s": f"{interval_s:.3g}"}
    if taken:
        data = spread(taken)
    else:
        data = {"Average": whole_rate(times_s, collection.started_s)}
        labels["sampled"] = "over before the second sample, so pods per second of the whole"
    data["Whole"] = whole_rate(times_s, collection.started_s)
    return DataItem(f"{run}/{collection.name}", "SchedulingThroughput", "pods/s", data, labels)


def whole_rate(times_s: Sequence[float], started_s: float) -> float:
    """Pods per second from the start of the collection to the last pod; 0 without pods."""
    if not times_s or times_s[-1] <= started_s:
        return 0.0
    return len(times_s) / (times_s[-1] - started_s)


def latency(metric: str, run: str, seconds: Sequence[float]) -> DataItem | None:
    """Durations in milliseconds; None if there are none."""
    if not seconds:
        return None
    data = spread(np.asarray(seconds, dtype=np.float64) * 1000)
    return DataItem(run, metric, "ms", data, {"count": str(len(seconds))})


def curve_of(collection: Collection) -> list[tuple[float, float]]:
    """Throughput over time: (seconds since the collection began, pods per second), evenly cut."""
    times_s = sorted(collection.scheduled_at_s)
    if not times_s or times_s[-1] <= collection.started_s:
        return []
    span_s = times_s[-1] - collection.started_s
    width_s = min(INTERVAL_S, span_s / CURVE_POINTS)
    counts = [0] * math.ceil(span_s / width_s)
    for time_s in times_s:
        counts[min(int((time_s - collection.started_s) / width_s), len(counts) - 1)] += 1
    return [(slot * width_s, number / width_s) for slot, number in enumerate(counts)]
