"""Results as a table, a JSON document, a line to append to a file, or curves as an SVG."""

import json
import platform
import subprocess
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from asched_lab.bench.metrics import DataItem, curve_of
from asched_lab.bench.suite import Result, item_of

WIDTH: Final = 900
HEIGHT: Final = 420
LEFT: Final = 70
RIGHT: Final = 20
TOP: Final = 40
BOTTOM: Final = 50
LEGEND_LINE: Final = 18
#: Distinguishable with colour blindness (Okabe and Ito).
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
TICKS: Final = 5

#: Name, points, and upstream's threshold (0: none).
Curve = tuple[str, list[tuple[float, float]], float]


def svg(results: Sequence[Result]) -> str:
    """One picture of all results."""
    curves: list[Curve] = [
        (f"{result.workload.full_name}/{collection.name}", curve_of(collection), threshold)
        for result in results
        for collection in result.collections
        for threshold in (result.workload.threshold,)
    ]
    mode = results[0].mode if results else ""
    return picture(f"Pods scheduled per second, {mode} mode", "seconds", curves)


def picture(title: str, below: str, curves: Sequence[Curve]) -> str:
    """Curves over one axis with the title `below`; curves without points are left out."""
    curves = [curve for curve in curves if curve[1]]
    right = max((points[-1][0] for _, points, _ in curves), default=1.0) or 1.0
    top = max((value for _, points, _ in curves for _, value in points), default=1.0) * 1.05 or 1.0
    height = HEIGHT + LEGEND_LINE * len(curves)
    size = f'width="{WIDTH}" height="{height}"'
    font = 'font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {height}" {font}>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
        *_axes(right, top, below),
    ]
    for number, curve in enumerate(curves):
        parts += _curve(number, curve, right, top)
    return "\n".join([*parts, "</svg>", ""])


def _x(at_s: float, right_s: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * at_s / right_s


def _y(rate: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rate / top


def _axes(right_s: float, top: float, below: str) -> list[str]:
    parts = []
    for tick in range(TICKS + 1):
        rate, at_s = top * tick / TICKS, right_s * tick / TICKS
        y, x = _y(rate, top), _x(at_s, right_s)
        parts.append(
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#dddddd"/>'
        )
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{rate:.0f}</text>')
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{at_s:.3g}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    where = f'x="{middle:.0f}" y="{HEIGHT - 12}" text-anchor="middle"'
    parts.append(f"<text {where}>{escape(below)}</text>")
    return parts


def _curve(number: int, curve: Curve, right_s: float, top: float) -> list[str]:
    name, points, threshold = curve
    colour = COLOURS[number % len(COLOURS)]
    path = " ".join(f"{_x(at_s, right_s):.1f},{_y(rate, top):.1f}" for at_s, rate in points)
    y = HEIGHT + LEGEND_LINE * number + 6
    text = escape(name + (f" (upstream threshold {threshold:g})" if threshold else ""))
    parts = [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        f'<rect x="{LEFT}" y="{y - 9}" width="12" height="12" fill="{colour}"/>',
        f'<text x="{LEFT + 18}" y="{y + 1}">{text}</text>',
    ]
    if threshold and threshold <= top:
        level = _y(threshold, top)
        parts.append(
            f'<line x1="{LEFT}" y1="{level:.1f}" x2="{WIDTH - RIGHT}" y2="{level:.1f}" '
            f'stroke="{colour}" stroke-dasharray="4 4"/>'
        )
    return parts


SCHEDULING: Final = "scheduler_scheduling_algorithm_duration_seconds"
END_TO_END: Final = "pod_created_to_scheduled"
HEADER: Final = (
    "workload", "pods", "avg/s", "p50", "p90", "p95", "p99", "whole/s", "engine/s",
    "scheduling ms p50/p99", "end-to-end ms p50/p99", "upstream", "ratio",
)  # fmt: skip
MODE_TEXT: Final = {
    "decide": "decide mode: in process, no API server; pods per second of processor time",
    "bind": "bind mode: through an API server; pods per second of wall time",
}
#: Marks averages that are not means of samples.
NOT_SAMPLED: Final = "* not sampled:"
#: Seconds that git may take to report the commit.
GIT_TIMEOUT_S: Final = 5.0


def machine_line() -> str:
    """The measuring machine, in one line."""
    model, memory = platform.processor() or platform.machine(), ""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        model = f"{len(names)} x {names[0]}" if names else model
        total = Path("/proc/meminfo").read_text(encoding="utf-8").split()[1]
        memory = f", {int(total) / 1024**2:.0f} GiB"
    except (OSError, IndexError, ValueError):
        pass
    return f"{model}{memory}, Linux {platform.release()}, Python {platform.python_version()}"


def table(results: Sequence[Result]) -> str:
    """All results as text: a table of measurements, then what was not measured and why."""
    rows: list[tuple[str, ...]] = [HEADER]
    rows += [_row(result, item) for result in results for item in result.throughputs]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    lines = []
    if len(rows) > 1:
        lines.append(MODE_TEXT[results[0].mode])
        for row in rows:
            first, *rest = (
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            lines.append("  ".join((first, *rest)).rstrip())
    lines += _remarks(results)
    return "\n".join(lines)


def _row(result: Result, item: DataItem) -> tuple[str, ...]:
    data = item.data
    threshold, ratio = result.workload.threshold, result.ratio
    name = item.name
    return (
        name,
        item.labels["pods"],
        f"{data['Average']:.0f}" + ("*" if "sampled" in item.labels else ""),
        *(f"{data[key]:.0f}" if key in data else "-" for key in _PERCENTILE_KEYS),
        f"{data['Whole']:.0f}",
        f"{data['Engine']:.0f}" if "Engine" in data else "-",
        _pair(result.of_metric(SCHEDULING, name)),
        _pair(result.of_metric(END_TO_END, name)),
        f"{threshold:g}" if threshold else "-",
        f"{ratio:.2f}x" if ratio is not None else "-",
    )


_PERCENTILE_KEYS: Final = ("Perc50", "Perc90", "Perc95", "Perc99")


def _pair(item: DataItem | None) -> str:
    return "-" if item is None else f"{item.data['Perc50']:.2f}/{item.data['Perc99']:.2f}"


def _remarks(results: Sequence[Result]) -> list[str]:
    """Workloads that cannot run or failed, each by name; then notes, each once with its count."""
    lines: list[str] = []
    notes: Counter[str] = Counter()
    for result in results:
        name = result.workload.full_name
        if result.reason:
            lines.append(f"not run: {name}: {result.reason}")
        if result.error:
            lines.append(f"failed: {name}: {result.error}")
        notes.update(result.notes)
        notes.update(
            f"{NOT_SAMPLED} {item.labels['sampled']}"
            for item in result.throughputs
            if "sampled" in item.labels
        )
        lines += [f"complaint: {name}: {text}" for text in result.facts.get("complaints") or ()]
    lines += [
        note if note.startswith(NOT_SAMPLED) else f"note ({count}x): {note}"
        for note, count in notes.items()
    ]
    return lines


def facts_lines(results: Sequence[Result]) -> list[str]:
    """Plain figures per workload."""
    lines = []
    for result in results:
        facts = {k: v for k, v in result.facts.items() if k != "complaints"}
        if facts:
            text = ", ".join(f"{k} {v}" for k, v in facts.items())
            lines.append(f"{result.workload.full_name}: {text}")
    return lines


def stage_table(result: Result) -> str:
    """Time of a run per stage and per pod."""
    pods = sum(int(item.labels["pods"]) for item in result.throughputs) or 1
    lines = [f"{result.workload.full_name}: stage, times, microseconds each, microseconds per pod"]
    for stage, seconds, count in result.stages:
        each = seconds / max(count, 1) * 1e6
        lines.append(f"  {stage:32} {count:8d} {each:9.1f} {seconds / pods * 1e6:9.1f}")
    return "\n".join(lines)


def document(results: Sequence[Result]) -> dict[str, Any]:
    """All results in scheduler_perf's form, with asched's fields added."""
    return {
        "version": "v1",
        "dataItems": [item.as_json() for result in results for item in result.items],
        "mode": results[0].mode if results else "",
        "machine": machine_line(),
        "commit": commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "workloads": [item_of(result) for result in results],
    }


def append(path: Path, results: Sequence[Result]) -> None:
    """Append one JSON line per workload, to compare commits. Raises OSError."""
    stamp = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine_line(),
    }
    with path.open("a", encoding="utf-8") as file:
        for result in results:
            line = dict(item_of(result))
            line.pop("curve")
            file.write(json.dumps({**stamp, **line}) + "\n")


def commit() -> str:
    """The measured commit, with a + if files differ from it; empty outside a checkout."""
    where = Path(__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ("git", *arguments), cwd=where, capture_output=True, text=True, timeout=GIT_TIMEOUT_S,
            check=False,
        )  # fmt: skip
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        head = git("rev-parse", "--short", "HEAD")
        return head + ("+" if head and git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.TimeoutExpired):
        return ""
