"""Histograms of a scheduler's /metrics: the difference between two reads, as percentiles.

Within a bucket values count as evenly spread, as in Prometheus' histogram_quantile; values above
the last finite bound count as that bound.
"""

import re
import urllib.error
import urllib.request
from typing import Final

from asched.kube.certificates import client_context
from asched_lab.bench.metrics import PERCENTILES, DataItem

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
