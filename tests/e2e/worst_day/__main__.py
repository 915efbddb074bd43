"""The command line of the trial."""

import argparse
import asyncio
import sys
import tempfile
from collections import defaultdict
from dataclasses import fields
from functools import partial
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from tests.e2e.affairs import broken_rules
from tests.e2e.control_plane import PODS, a_plane
from tests.e2e.worst_day.day import Day, Order
from tests.e2e.worst_day.wire import Wire


async def trial(order: Order, folder: Path, kind: str = "real") -> tuple[Day, list[str]]:
    """The day that was on a server of that kind, and what was wrong in the end: nothing."""
    async with a_plane(kind) as plane:
        async with Wire(urlsplit(plane.client.url).port or 443) as wire:
            day = Day(order, plane, wire, folder, partial(print, flush=True))
            await day.run()
        nodes, pods = await plane.every("/api/v1/nodes"), await plane.every(PODS)
    waiting = [pod["metadata"]["name"] for pod in pods if not pod["spec"].get("nodeName")]
    ordered = sum(side.pods for side in day.sides)
    wrong = [f"{len(pods)} pods instead of {ordered}"] if len(pods) != ordered else []
    wrong += [f"{len(waiting)} pods have no node: {waiting[:10]}"] if waiting else []
    wrong += [f"moved: {moved}" for moved in day.seen.moved]
    wrong += broken_rules(nodes, pods)
    wrong += [f"a traceback in {name}" for name in day.tracebacks]
    return day, wrong


def main() -> int:
    """0: nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.worst_day", description=__doc__)
    for one in fields(Order):
        kind = type(one.default)
        flag = f"--{one.name.replace('_', '-')}"
        parser.add_argument(flag, type=kind, default=one.default, help="default %(default)s")
    parser.add_argument("--logs", type=Path, help="keep the logs of all lives here")
    args = vars(parser.parse_args())
    logs = args.pop("logs")
    with tempfile.TemporaryDirectory() as made:
        folder = logs or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        day, wrong = asyncio.run(trial(Order(**args), folder))
    took: dict[tuple[str, str], list[float]] = defaultdict(list)
    for recovery in day.recoveries:
        took[recovery.cause, recovery.who].append(recovery.took_s)
    lines = ["| fault | who | times | median s | worst s |", "|---|---|---|---|---|"]
    for (cause, who), times in took.items():
        lines.append(f"| {cause} | {who} | {len(times)} | {median(times):.1f} | {max(times):.1f} |")
    lines += [f"wrong: {line}" for line in wrong]
    bound = ", ".join(f"{side.bound} by {side.kind}" for side in day.sides)
    lines.append(f"pods bound: {bound}; {len(wrong)} findings")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
