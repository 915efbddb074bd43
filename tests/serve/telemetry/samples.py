"""What a page shows, sample by sample, and what a report moves there."""

import re
from collections.abc import Callable, Iterator

from asched.serve.telemetry.metrics import Metrics

#: What is told of the process is not ours.
_FOREIGN = ("process_", "python_")


def samples(metrics: Metrics) -> dict[str, float]:
    """`name{labels, sorted}` -> value, without the buckets of histograms."""
    lines = metrics.render().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith(("#", *_FOREIGN)))
    return {name: float(value) for name, value in pairs if "_bucket" not in name.split("{")[0]}


def moved(metrics: Metrics, report: Callable[[Metrics], None]) -> dict[str, float]:
    """By how much a report moves which samples; one that appears with a zero counts, too."""
    before = samples(metrics)
    report(metrics)
    after = samples(metrics)
    assert before.keys() <= after.keys()
    return {
        name: value - before.get(name, 0.0)
        for name, value in after.items()
        if value != before.get(name)
    }


def observed(name: str, labels: str, value: float) -> dict[str, float]:
    """What one observation of a histogram moves."""
    told = f"{{{labels}}}" if labels else ""
    return {f"{name}_count{told}": 1.0, f"{name}_sum{told}": value}


def kinds(metrics: Metrics) -> Iterator[tuple[str, str]]:
    """Each family's name and kind, by name, as the head lines say."""
    text = metrics.render().decode()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        if not name.startswith(_FOREIGN):
            yield name, kind
