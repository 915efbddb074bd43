"""Data items: what a run measured, in the shape scheduler_perf writes them.

Rules   throughput is sampled: nothing is recorded before the first pod, the first interval that saw
        pods is only a baseline, every later one that saw pods gives pods per elapsed second, and
        intervals without pods in between repeat that value; the average is the mean of the samples,
        so ramp-up and the tail of the first interval stay outside;
        a run that is over before a second sample has no average by that rule: then its pods per
        second between first and last are reported instead, with a note.
Source  kubernetes/kubernetes v1.36 test/integration/scheduler_perf (throughput collector)

Percentiles of a scheduler's /metrics are of the difference between two reads of its histograms.
Within a bucket values count as evenly spread, as in Prometheus' histogram_quantile; values above
the last finite bound count as that bound. Timings of the engine are plain lists, for durations and
for sums per stage; nothing is traced, so measuring costs well under a microsecond per report.
"""

import math
import re
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from asched.core.cycle.observer import Observer
from asched.core.model.kinds import Kind
from asched.kube.certificates import client_context
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


#: Timeout for the page, in seconds; a busy scheduler answers between two turns.
TIMEOUT_S: Final = 5.0
_LINE: Final = re.compile(r"^(\w+)_(bucket|sum|count)(?:\{(.*)\})? ([0-9.e+\-]+|NaN)")
_BOUND: Final = re.compile(r'(?:^|,)le="([^"]+)"')


class Histogram:
    """Cumulative counts by upper bound, and the sum of all values."""

    def __init__(self) -> None:
        self.counts: dict[float, float] = {}
        self.total = 0.0

    def since(self, before: "Histogram | None") -> "Histogram":
        """The values recorded since an earlier read."""
        fresh = Histogram()
        earlier = before or Histogram()
        fresh.total = self.total - earlier.total
        fresh.counts = {b: n - earlier.counts.get(b, 0.0) for b, n in self.counts.items()}
        return fresh

    @property
    def count(self) -> float:
        return self.counts.get(float("inf"), 0.0)

    def percentile(self, percent: float) -> float:
        """The value that `percent` of all values do not exceed. Needs at least one value."""
        wanted = self.count * percent / 100
        low, below = 0.0, 0.0
        for bound in sorted(self.counts):
            if self.counts[bound] >= wanted:
                if bound == float("inf"):
                    return low
                inside = self.counts[bound] - below
                return low + (bound - low) * ((wanted - below) / inside if inside else 1.0)
            low, below = bound, self.counts[bound]
        return low


def read(text: str) -> dict[str, Histogram]:
    """Read every histogram of a page; series of one name are added up."""
    found: dict[str, Histogram] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        name, part, labels, value = match.groups()
        if part == "bucket":
            bound = _BOUND.search(labels or "")
            if bound is not None:
                counts = found.setdefault(name, Histogram()).counts
                at = float(bound[1])
                counts[at] = counts.get(at, 0.0) + float(value)
        elif part == "sum":
            found.setdefault(name, Histogram()).total += float(value)
    return {name: histogram for name, histogram in found.items() if histogram.counts}


def fetch(url: str) -> dict[str, Histogram]:
    """The histograms of a page on loopback with a self-signed certificate; empty if it does not
    answer.
    """
    context = client_context(verify=False)
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S, context=context) as reply:  # noqa: S310 - our own process
            return read(reply.read().decode("utf-8"))
    except (urllib.error.URLError, OSError):
        return {}


def item(metric: str, run: str, histogram: Histogram) -> DataItem | None:
    """A data item in milliseconds; None if the histogram is empty."""
    if histogram.count <= 0:
        return None
    data = {"Average": histogram.total / histogram.count * 1000}
    for percent in PERCENTILES:
        data[f"Perc{percent}"] = histogram.percentile(percent) * 1000
    return DataItem(run, metric, "ms", data, {"count": f"{histogram.count:.0f}"})


# ruff: noqa: ARG002 - an observer's methods take all arguments


class Sums:
    """Seconds and counts by name."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, int]] = {}

    def add(self, name: str, seconds: float, times: int = 1) -> None:
        known_s, count = self._sums.get(name, (0.0, 0))
        self._sums[name] = (known_s + seconds, count + times)

    def items(self) -> Iterable[tuple[str, tuple[float, int]]]:
        return self._sums.items()


class Recorder(Observer):
    """Durations in seconds; timings that a profile does not need are dropped."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop all timings so far."""
        self.attempts: list[float] = []
        self.algorithms: list[float] = []
        self.results: dict[str, int] = defaultdict(int)
        self.points = Sums()
        self.plugins = Sums()
        self.facts = Sums()
        self.hints = (0.0, 0)
        self.complaints: list[str] = []
        self.flushed = 0

    def attempt_ended(self, result: str, profile: str, duration_s: float) -> None:
        self.attempts.append(duration_s)
        self.results[result] += 1

    def algorithm_ran(self, duration_s: float) -> None:
        self.algorithms.append(duration_s)

    def pod_scheduled(
        self, profile: str, attempts: int, since_first_attempt_s: float, *, was_flushed: bool
    ) -> None:
        self.flushed += was_flushed

    def point_ran(self, point: str, profile: str, status: str, duration_s: float) -> None:
        self.points.add(point, duration_s)

    def points_passed(self, point: str, profile: str, status: str, times: int) -> None:
        self.points.add(point, 0.0, times)

    def plugin_ran(self, plugin: str, point: str, status: str, duration_s: float) -> None:
        self.plugins.add(f"{point} {plugin}", duration_s)

    def fact_handled(self, label: str, duration_s: float, kind: Kind | None) -> None:
        self.facts.add(label, duration_s)

    def hint_answered(self, plugin: str, label: str, hint: str, duration_s: float) -> None:
        seconds, count = self.hints
        self.hints = (seconds + duration_s, count + 1)

    def complaint(self, message: str) -> None:
        self.complaints.append(message)

    def plugin_raised(self, plugin: str, point: str, error: BaseException) -> None:
        self.complaints.append(f"{plugin} raised at {point}: {error}")

    def contained(self, part: str, about: str, error: BaseException) -> None:
        self.complaints.append(f"{part} raised about {about}: {error}")

    def binding_failed(self, pod_key: str, node: str, message: str) -> None:
        self.complaints.append(f"binding {pod_key} to {node} failed: {message}")
