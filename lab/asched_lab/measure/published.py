"""The figures of a comparison with kube-scheduler, as docs/results/bind.md and README.md have them.

docs/results/bind.md has the whole table between two comments, README.md the rates of its rows.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Final

from asched_lab.bench.processes import KUBE_SCHEDULER
from asched_lab.measure.beside import SERVERS, SETTINGS, Runs
from asched_lab.measure.measurement import Row

PAGE: Final = Path("docs/results/bind.md")
README: Final = Path("README.md")
BEGIN, END = "<!-- beside: begin -->", "<!-- beside: end -->"
#: Workload -> first cell of its row in README.md.
LABELS: Final = {
    "plain": "Bind 3,000 waiting pods on 5,000 nodes, per second: plain",
    "affinity": "the same with required affinity",
    "spread": "the same with hard zone spread",
    "mixed": "the same, nearly every pod different",
}
HEAD: Final = ("workload", "API server", *(
    f"{name} {what}" for name in ("asched", KUBE_SCHEDULER)
    for what in ("bound/s", "events/s", "events", "first s")
))  # fmt: skip


def section(runs: Iterable[Runs], facts: Mapping[str, str]) -> str:
    """The part of the page: `facts` (command, date, machine, versions), then the table."""
    described = {
        **facts,
        "API server": "`default`: priority and fairness and limits of requests as they are by"
        " default; `unlimited`: without both",
        "first s": "from the start of the process to its first binding; rates count from there. As"
        " the first holder of its lease, asched seals the waiting pods before",
        "clients": "both as user system:kube-scheduler, each the first to hold its lease",
        **SETTINGS,
    }
    lines = [BEGIN, "", "| | |", "|---|---|"]
    lines += [f"| {name} | {text} |" for name, text in described.items()]
    lines += ["", f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    for one in runs:
        cells = [one.workload, one.server, *_cells(one.asched), *_cells(one.kube_scheduler)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", END])


def publish(root: Path, text: str) -> None:
    """Write a section into the page, and its rates into README.md."""
    page = (root / PAGE).read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    page = before + text + rest.split(END)[1]
    (root / PAGE).write_text(page, encoding="utf-8")
    readme = (root / README).read_text(encoding="utf-8")
    for workload, rates in figures(page).items():
        if workload in LABELS:
            label = re.escape(LABELS[workload])
            cells = f"| {LABELS[workload]} | {rates[0]} | {rates[1]} |"
            readme = re.sub(rf"^\| {label} \|[^|]*\|[^|]*\|", cells, readme, flags=re.MULTILINE)
    (root / README).write_text(readme, encoding="utf-8")


def figures(page: str) -> dict[str, tuple[str, str]]:
    """Workload -> bindings per second of asched and kube-scheduler, without their ranges; on the
    server that the table has first.
    """
    found: dict[str, tuple[str, str]] = {}
    for line in page.split(BEGIN)[1].split(END, maxsplit=1)[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(HEAD) and cells[1] in SERVERS:
            rates = cells[2].partition(" (")[0], cells[6].partition(" (")[0]
            found.setdefault(cells[0], rates)
    return found


def _cells(rows: list[Row]) -> tuple[str, ...]:
    events = [row.events for row in rows]
    return (
        _range([row.rate for row in rows]),
        _range([row.events_rate for row in rows]),
        _range([float(count) for count in events]),
        f"{median(row.first_s for row in rows):.1f}",
    )


def _range(values: list[float]) -> str:
    """The median, and the range if there is one."""
    low, high = (f"{value:,.0f}" for value in (min(values), max(values)))
    return f"{median(values):,.0f}" + (f" ({low} to {high})" if low != high else "")
