"""Function calls per pod: `python -m asched_lab.measure.calls [ROW ...]`.

Counts calls of Python functions (resumed generators among them) and of C functions, from the pod's
arrival to its confirmation, in turns of a fixed number of cycles. The same on any machine.
"""

import argparse
import asyncio
import sys
from itertools import count
from types import FrameType
from typing import Any, Final, NamedTuple

from asched.core.config.defaults import default_configuration
from asched.core.cycle.turn_limit import CountedLimit
from asched_lab.bench.manifests import scheduled_by
from asched_lab.bench.run_decide import DecideWorld
from asched_lab.measure.crowds import HIGH, SHAPES, high, low, node
from asched_lab.measure.engine import SCHEDULER

#: Cycles a turn: about what fits into one on an idle machine.
CYCLES: Final = 32
#: The preemptors find the nodes full; three pods have to be evicted for each.
ROWS: Final = {**SHAPES, "preemption": high}


class Calls(NamedTuple):
    """Mean calls for one pod."""

    python: float
    c: float


async def of_shape(shape: str, nodes: int, warm: int, pods: int) -> Calls:
    """Count calls for `pods` pods after `warm` pods that fill all caches."""
    world, counts, maker = DecideWorld(default_configuration(SCHEDULER)), [0, 0], ROWS[shape]
    world.machine.limit = CountedLimit(CYCLES)
    handle, numbers = world.machine.handle, count()

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            counts[0] += 1
        elif event == "c_call":
            counts[1] += 1

    def counting(*given: Any) -> Any:
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            return handle(*given)
        finally:
            sys.setprofile(before)

    async def place(number: int) -> None:
        made = [scheduled_by(maker(next(numbers), nodes), SCHEDULER) for _ in range(number)]
        target = world.pods.scheduled_count + number
        await world.create(made, "bench")
        await world.until(lambda: world.pods.scheduled_count >= target, 3600.0, "the pods")

    await world.create([node(i) for i in range(nodes)])
    world.take_in()
    if maker is high:
        await world.create([HIGH, *(low(i, nodes) for i in range(4 * nodes))], "bench")
        world.take_in()
    await place(warm)
    world.machine.handle = counting  # type: ignore[method-assign, assignment]
    await place(pods)
    await world.close()
    return Calls(counts[0] / pods, counts[1] / pods)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m asched_lab.measure.calls", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--nodes", type=int, default=600)
    parser.add_argument("--pods", type=int, default=400)
    args = parser.parse_args()
    if unknown := set(args.rows) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    for row in args.rows or ROWS:
        python, c = asyncio.run(of_shape(row, args.nodes, 100, args.pods))
        sys.stdout.write(f"{row}: {python:.0f} of Python's and {c:.0f} of C's\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
