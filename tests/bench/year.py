"""What stays of a year: production's process in a simulated cluster in which all names change.

    python -m tests.bench.year [--days N]

Each day nodes, namespaces, pods, classes, claims, volumes, slices, budgets, pod groups with held
room, the configuration and a user's plugin have other names (`tests/year.py`); streams break, and
an audit compares everything. A day takes two virtual minutes, since time itself leaves nothing.
What is bounded by its size has small bounds here, so that it is full at once, and whatever grows
has none. Counted, with all pods gone: entries of containers, bytes of arrays and texts, tasks,
timers and streams.

Garbage is collected by production's collector, in virtual time, and by nobody else. `all` counts
all containers of the process that Python knows of, the simulated world's among them; in the end
those that nothing refers to any more are counted, which it left.

Exit status: 0 if the last day holds at most a twentieth more entries than the first, 1 if not.
"""

# ruff: noqa: T201 - a command prints

import argparse
import gc
import sys
from collections import Counter

from asched_lab.bench.report import commit, machine_line
from tests.small_bounds import make_small
from tests.year import Year

STEPS = 12
#: What is made on first use, and logs, are there by then.
FIRST_DAYS = 8
GROWTH_MAX = 0.05
COLUMNS = ("bytes", "bytes of text", "tasks", "timers", "streams")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.year", description=__doc__)
    parser.add_argument("--days", type=int, default=365, metavar="N")
    wanted = parser.parse_args(argv).days
    print(machine_line(), f"commit {commit() or 'unknown'}", sep="; ", flush=True)
    titles = " ".join(f"{one:>13}" for one in COLUMNS)
    print(f"{'day':>5} {'names':>7} {'entries':>8} {titles} {'all':>9}")
    make_small()
    gc.disable()
    with Year(collects=True) as year:
        first = last = 0
        for step in range(STEPS + 1):
            year.live(FIRST_DAYS + (wanted - FIRST_DAYS) * step // STEPS - year.day)
            held = year.held()
            last = entries_of(held)
            first = first or last
            shown = " ".join(f"{held[one]:>13}" for one in COLUMNS)
            known = gc.get_freeze_count() + len(gc.get_objects())
            print(f"{year.day:>5} {year.names:>7} {last:>8} {shown} {known:>9}", flush=True)
        found = year.world.acting.auditor.report.found
        print(f"{year.world.ledger.bound_count} pods bound, {found} differences found by audits")
        print(f"{left_by_collector()} containers are garbage that was not collected")
    return 0 if last <= first * (1 + GROWTH_MAX) else 1


def left_by_collector() -> int:
    """Containers that nothing refers to any more; what starting up leaves is frozen among them."""
    gc.unfreeze()
    return gc.collect()


def entries_of(held: Counter[str]) -> int:
    return sum(number for name, number in held.items() if name.startswith("entries"))


if __name__ == "__main__":
    sys.exit(main())
