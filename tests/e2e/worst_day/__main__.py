"""The command line of the trial."""

import argparse
import asyncio
import sys
import tempfile
from collections import defaultdict
from dataclasses import fields
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from tests.e2e.affairs import broken_rules
from tests.e2e.control_plane import PODS, ControlPlane
from tests.e2e.worst_day.day import Day, Order
from tests.e2e.worst_day.wire import Wire


async def trial(order: Order, folder: Path) -> tuple[Day, list[str]]:
    """The day that was, and what was wrong in the end: nothing."""
    async with ControlPlane.here() as plane, plane.open_client():
        async with Wire(urlsplit(plane.url).port or 443) as wire:
            day = Day(order, plane, wire, folder, partial(print, flush=True))
            await day.run()
        nodes, pods = await plane.every("/api/v1/nodes"), await plane.every(PODS)
    waiting = [pod["metadata"]["name"] for pod in pods if not pod["spec"].get("nodeName")]
    wrong = [f"{len(pods)} pods instead of {order.pods}"] if len(pods) != order.pods else []
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
    by_cause: dict[str, list[float]] = defaultdict(list)
    for one in day.recoveries:
        by_cause[one.cause].append(one.took_s)
    lines = ["| fault | times | median s | worst s |", "|---|---|---|---|"]
    for cause, times in by_cause.items():
        times.sort()
        lines.append(f"| {cause} | {len(times)} | {times[len(times) // 2]:.1f} | {times[-1]:.1f} |")
    lines += [f"wrong: {line}" for line in wrong]
    lines.append(f"{day.seen.bound} pods bound, {len(wrong)} findings")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
