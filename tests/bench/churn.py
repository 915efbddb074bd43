"""What stays of names that came and went: the deciding half in process, for weeks of churn.

    python -m tests.bench.churn [--names N] [--looking-back STEPS | --plain]

Nodes and pods are replaced round after round, each with names of its own in labels, taints,
features, images, resources, selectors, namespaces and claims (`tests/churn.py`). Ten times on the
way everything that asched holds is counted, with all pods gone: entries of containers, bytes of
arrays, and the process's memory. The last column tells the growth since the first count.

The history of pods is kept on purpose; it is bounded in lines and bytes, and takes millions of
names to fill. `--looking-back` bounds it to so many steps: what grows then is kept by mistake.
`--plain` leaves production's bounds, and lets a hundred plain pods come a round, which fill it in a
minute of processor time: the first count comes when it drops its oldest, and N names come after it.

Exit status: 0 if the end holds no more than a tenth above the first count, 1 if it does.
"""

# ruff: noqa: T201 - a command prints

import argparse
import resource
import sys
from collections import Counter
from pathlib import Path

from asched_lab.bench.report import commit, machine_line
from tests.churn import Churn

STEPS = 10
LABELS = 100
#: The first count comes after this share of the names: what is bounded in bytes is full then.
WARM = 0.5
GROWTH_MAX = 0.1


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.churn", description=__doc__)
    parser.add_argument("--names", type=int, default=1_000_000, metavar="N")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--looking-back", type=int, default=0, metavar="STEPS")
    how.add_argument("--plain", action="store_true")
    args = parser.parse_args(argv)
    wanted = args.names
    print(machine_line(), f"commit {commit() or 'unknown'}", sep="; ", flush=True)
    print(f"{'names':>10} {'entries':>10} {'array kB':>9} {'RSS MB':>8} {'growth':>8}")
    churn = Churn(LABELS, args.looking_back, plain=args.plain)
    while args.plain and not churn.is_full:
        churn.turn(10)
    begun, share = (churn.names, 0.0) if args.plain else (0, WARM)
    first = last = 0
    for step in range(STEPS + 1):
        goal = begun + wanted * (share + (1 - share) * step / STEPS)
        while churn.names < goal:
            churn.turn(10)
        held = churn.weigh()
        last = entries_of(held)
        first = first or last
        print(
            f"{churn.names:>10} {last:>10} {held['bytes'] // 1024:>9} {rss_mb():>8.1f}"
            f" {last / first - 1:>8.1%}",
            flush=True,
        )
    return 0 if last <= first * (1 + GROWTH_MAX) else 1


def entries_of(held: Counter[str]) -> int:
    return sum(number for name, number in held.items() if name.startswith("entries"))


def rss_mb() -> float:
    """Resident memory now, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


if __name__ == "__main__":
    sys.exit(main())
