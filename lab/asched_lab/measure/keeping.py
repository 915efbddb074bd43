"""The cost of storing every decision, and of recording everything in addition.

    python -m asched_lab.measure.keeping [--turns 400] [--shapes plain,spread] [--rounds 3]

The row `decide-SHAPE` (5,000 nodes) in one process, a few pods at a time, alternating between: no
decision is stored; decisions are stored, as by default; they are stored and all is recorded. So the
load of the machine affects all three equally. Prints processor time per pod of the deciding loop,
which bounds its throughput, with the 90 % interval of a bootstrap over the turns, and beside it the
time of the recording's thread, which packs without delaying the loop if a core is free. The
recorded file is deleted: it lacks two turns of three.
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Final

from asched.core.config.defaults import default_configuration
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.decision_records import DecisionRecords
from asched.ops.recording.recorder import REST_S
from asched_lab.bench.manifests import scheduled_by
from asched_lab.bench.run_decide import DecideWorld
from asched_lab.measure.crowds import SHAPES, Crowd, node
from asched_lab.measure.engine import SCHEDULER, TIMEOUT_S, create

KINDS: Final = ("forgotten", "kept", "recorded")
NODES: Final = 5000
#: Pods of one kind before the next kind.
PODS: Final = 200
DRAWS: Final = 400


def _keeping() -> Callable[[bool], None]:
    """A function that turns the storing of decisions on and off in this process."""

    def nothing(*_: Any) -> None:
        return

    def refused(*_: Any) -> tuple[tuple[()], int]:
        return (), 0

    context, recorder = SchedulerContext, DecisionRecords
    real = recorder.chosen, context.tell, context.tell_bound, recorder.refused

    def turn(on: bool) -> None:
        done = real if on else (nothing, nothing, nothing, refused)
        recorder.chosen, context.tell, context.tell_bound, recorder.refused = done  # type: ignore[assignment,method-assign]

    return turn


def _has_bound(world: DecideWorld, count: int) -> bool:
    return world.pods.scheduled_count >= count


async def measure(shape: str, turns: int) -> tuple[dict[str, list[float]], float, float]:
    """({kind: microseconds a pod, turn by turn}, those of the thread, bytes on disk a pod)."""
    keep, order = _keeping(), random.Random(0)
    with tempfile.TemporaryDirectory(prefix="asched-keeping-") as folder:
        path = Path(folder) / "recording"
        crowd = Crowd(NODES, ((SHAPES[shape], turns * PODS * len(KINDS)),))
        world = DecideWorld(default_configuration(SCHEDULER), record=path)
        recording = world.recording
        assert recording is not None
        await create(world, crowd.also, "")
        await create(world, (node(i) for i in range(NODES)), "")
        await world.sleep(0.0)
        world.forget_measured()
        await asyncio.sleep(4 * REST_S)  # the thread writes the nodes
        thread_s, size = recording.thread_s, recording.written_bytes
        waiting = (scheduled_by(pod, SCHEDULER) for pod in crowd.waiting_pods())
        spent: dict[str, list[float]] = {kind: [] for kind in KINDS}
        done = 0
        for _ in range(turns):
            for kind in order.sample(KINDS, len(KINDS)):
                keep(kind != "forgotten")
                world.handler = recording if kind == "recorded" else world.machine
                await world.create(list(islice(waiting, PODS)), "bench")
                started_s, done = world.engine_s, done + PODS
                await world.until(partial(_has_bound, world, done), TIMEOUT_S, "the pods")
                spent[kind].append((world.engine_s - started_s) / PODS * 1e6)
        await world.close()
        pods = turns * PODS
        return (
            spent,
            (recording.thread_s - thread_s) / pods * 1e6,
            (recording.written_bytes - size) / pods,
        )


def bounds(more: list[float]) -> tuple[float, float]:
    """The 5th and 95th percentile of medians of turns drawn with replacement."""
    draw = random.Random(0)
    found = sorted(median(draw.choices(more, k=len(more))) for _ in range(DRAWS))
    return found[DRAWS // 20], found[-DRAWS // 20 - 1]


def show(shape: str, turns: int) -> None:
    """Print a line for each kind: its time, and the difference to the first kind, turn by turn."""
    spent, thread_us, size = asyncio.run(measure(shape, turns))
    base = spent[KINDS[0]]
    middle = median(base)
    for kind in KINDS:
        more = [new - old for new, old in zip(spent[kind], base, strict=True)]
        low, high = (bound / middle * 100 for bound in bounds(more))
        added = f"{median(more):+6.2f} µs {median(more) / middle * 100:+5.1f} %"
        added = f"{added} ({low:+.1f} to {high:+.1f})" if kind != KINDS[0] else ""
        print(f"{shape:<14}{kind:<10}{median(spent[kind]):7.1f} µs a pod  {added}")
    part = thread_us / middle * 100
    print(f"{'':<14}{'thread':<10}{thread_us:7.1f} µs a pod   {part:.1f} %, {size:.0f} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=400, help=f"of {PODS} pods for each kind")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", default="plain", help=", ".join(sorted(SHAPES)))
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    for shape in args.shapes.split(","):
        if args.here:
            show(shape, args.turns)
            continue
        for _ in range(args.rounds):  # the layout of memory differs from process to process
            command = [
                sys.executable,
                "-m",
                "asched_lab.measure.keeping",
                "--here",
                "--shapes",
                shape,
            ]
            subprocess.run([*command, "--turns", str(args.turns)], check=True)


if __name__ == "__main__":
    main()
