"""Function calls per pod: `python -m asched_lab.measure.calls [ROW ...]`.

Counts calls of Python functions (resumed generators among them) and of C functions, from the pod's
arrival to its confirmation, in turns of a fixed number of cycles. The same on any machine. With
`--trace`: the functions of asched that one pod passes, by file.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from itertools import count, groupby
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import asched
from asched.core.config.defaults import configuration
from asched_lab.bench.manifests import scheduled_by
from asched_lab.bench.run_decide import DecideWorld
from asched_lab.measure.crowds import HIGH, SHAPES, high, low, node
from asched_lab.measure.engine import SCHEDULER
from asched_lab.replay.counted import CountedLimit

#: Cycles a turn: about what fits into one on an idle machine.
CYCLES: Final = 32
#: The preemptors find the nodes full; three pods have to be evicted for each.
ROWS: Final = {**SHAPES, "preemption": high}


class Calls(NamedTuple):
    """Mean calls for one pod."""

    python: float
    c: float


class Function(NamedTuple):
    """A function of asched: its file in the package, its first line and its qualified name."""

    file: str
    line: int
    name: str


async def of_shape(
    shape: str, nodes: int, warm: int, pods: int, plugins: Sequence[str] = (), **settings: Any
) -> Calls:
    """Count calls for `pods` pods after `warm` pods that fill all caches. `plugins`: enabled beside
    those of the default profile. `settings`: further fields of the configuration.
    """
    counts = [0, 0]

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            counts[0] += 1
        elif event == "c_call":
            counts[1] += 1

    await _place(shape, nodes, warm, pods, note, plugins, **settings)
    return Calls(counts[0] / pods, counts[1] / pods)


async def passed(shape: str, nodes: int, warm: int) -> list[Function]:
    """The functions of asched that one pod passes after `warm` pods, in the order of the files."""
    root, found = Path(asched.__file__).parent, set[Function]()

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        path = Path(code.co_filename)
        if event == "call" and path.is_relative_to(root):
            file = path.relative_to(root).as_posix()
            found.add(Function(file, code.co_firstlineno, code.co_qualname))

    await _place(shape, nodes, warm, 1, note)
    return sorted(found)


async def _place(
    shape: str,
    nodes: int,
    warm: int,
    pods: int,
    note: Callable[[FrameType, str, Any], None],
    plugins: Sequence[str] = (),
    **settings: Any,
) -> None:
    """Place pods with `note` as the profile function of the machine's turns."""
    enabled = {"multiPoint": {"enabled": [{"name": name} for name in plugins]}}
    profile = {"schedulerName": SCHEDULER, "plugins": enabled}
    world, maker = DecideWorld(configuration({"profiles": [profile], **settings})), ROWS[shape]
    world.machine.limit = CountedLimit(CYCLES)
    handle, numbers = world.machine.handle, count()

    def noting(*given: Any) -> Any:
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
    world.machine.handle = noting  # type: ignore[method-assign, assignment]
    await place(pods)
    await world.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m asched_lab.measure.calls", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--nodes", type=int, default=600)
    parser.add_argument("--pods", type=int, default=400)
    parser.add_argument("--trace", action="store_true", help="show the functions that a pod passes")
    args = parser.parse_args()
    if unknown := set(args.rows) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    for row in args.rows or ROWS:
        if args.trace:
            functions = asyncio.run(passed(row, args.nodes, 100))
            for file, of_file in groupby(functions, key=lambda function: function.file):
                names = " ".join(function.name for function in of_file)
                sys.stdout.write(f"{row}: {file}: {names}\n")
            continue
        python, c = asyncio.run(of_shape(row, args.nodes, 100, args.pods))
        sys.stdout.write(f"{row}: {python:.0f} of Python's and {c:.0f} of C's\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
