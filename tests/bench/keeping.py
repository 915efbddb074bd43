"""What it costs to keep every decision, and to record everything beside that.

    python -m tests.bench.keeping [--rounds 8] [--shape plain]

Three kinds of the row `decide-SHAPE` (5,000 nodes, 10,000 pods) in turn, each in a process of its
own: nothing is kept of decisions; they are kept, as ever; they are kept and all is recorded. Told
is processor time a pod: of the engine, and of the recording's thread, which packs without holding
anybody up where a core is free. The least of all rounds is what neighbours disturbed least.
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from asched.core.config.defaults import default_configuration
from asched.core.cycle import scheduling
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.cycle.decided import Patterns
from asched.core.cycle.history import Histories
from asched.core.framework.runner import Decision
from asched.lab.bench.manifests import scheduled_by
from asched.lab.bench.run_decide import DecideWorld
from tests.bench.crowds import SHAPES, Crowd, node
from tests.bench.engine import SCHEDULER, TIMEOUT_S, _create

KINDS = ("forgotten", "kept", "recorded")
NODES, PODS = 5000, 10_000


def forget() -> None:
    """Nothing is kept of decisions in this process."""

    def tell_node(_: SchedulerContext, attempt: Attempt, decision: Decision) -> None:
        attempt.evaluated, attempt.feasible = decision.evaluated, decision.feasible

    def nothing(*_: Any, **__: Any) -> tuple[tuple[()], int]:
        return (), 0

    scheduling.tell_node = tell_node
    Histories.tell = nothing  # type: ignore[assignment,method-assign]
    Patterns.refused = nothing  # type: ignore[assignment,method-assign]


async def one(kind: str, shape: str) -> dict[str, float]:
    """A row: microseconds of processor time a pod, and bytes of the recording a pod."""
    if kind == "forgotten":
        forget()
    with tempfile.TemporaryDirectory(prefix="asched-keeping-") as folder:
        path = Path(folder) / "recording"
        crowd = Crowd(NODES, ((SHAPES[shape], PODS),))
        record = path if kind == "recorded" else None
        world = DecideWorld(default_configuration(SCHEDULER), record=record)
        await _create(world, crowd.also, "")
        await _create(world, (node(i) for i in range(NODES)), "")
        await world.sleep(0.0)
        world.forget_measured()
        thread_s = world.recording.thread_s if world.recording else 0.0
        started_s = world.engine_s
        waiting = (scheduled_by(pod, SCHEDULER) for pod in crowd.waiting_pods())
        await _create(world, waiting, "bench")
        await world.until(lambda: world.pods.scheduled_count >= PODS, TIMEOUT_S, "all pods")
        spent_s = world.engine_s - started_s
        await world.close()
        recording = world.recording
        thread_s = recording.thread_s - thread_s if recording is not None else 0.0
        size = path.stat().st_size if recording is not None else 0
    return {"engine": spent_s / PODS * 1e6, "thread": thread_s / PODS * 1e6, "bytes": size / PODS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--shape", default="plain", choices=sorted(SHAPES))
    parser.add_argument("--here", choices=KINDS)
    args = parser.parse_args()
    if args.here:
        print(json.dumps(asyncio.run(one(args.here, args.shape))))
        return
    command = [sys.executable, "-m", "tests.bench.keeping", "--shape", args.shape, "--here"]
    rounds = []
    for number in range(args.rounds):
        done = {}
        for kind in KINDS if number % 2 == 0 else KINDS[::-1]:
            told = subprocess.run([*command, kind], capture_output=True, check=True).stdout
            done[kind] = json.loads(told)
        rounds.append(done)
    print(f"{args.shape}, {args.rounds} rounds, processor time a pod in µs: least (median)")
    least = {}
    for kind in KINDS:
        parts = []
        for part in ("engine", "thread"):
            spent = sorted(done[kind][part] for done in rounds)
            least[kind, part] = spent[0]
            parts.append(f"{part} {spent[0]:6.1f} ({median(spent):.1f})")
        print(f"  {kind:<10}{'   '.join(parts)}")
    base, thread = least["forgotten", "engine"], least["recorded", "thread"]
    for kind in KINDS[1:]:
        print(f"  engine, {kind}: {(least[kind, 'engine'] / base - 1) * 100:+.1f} %")
    print(f"  the thread: {thread / base * 100:.1f} % of the engine's time")
    print(f"  {rounds[0]['recorded']['bytes']:.0f} bytes of recording a pod, packed")


if __name__ == "__main__":
    main()
