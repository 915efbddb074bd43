"""`asched chaos`: run simulated failure scenarios, or repeat one by its seed.

A failing run is reduced before it is printed: options that repeat the reduced run are printed with
it. Each seed that fails has a line; a broken rule is shown in full once per scenario.

With `--keep` runs are appended to a file, next the scenario that took the least time so far, until
it has `--lives` of them; `--table` prints their results, as in docs/results/scenarios.md.

Exit status: 0 if no rule was broken, 1 if one was (the first line names scenario and seed), 2 for
wrong usage.
"""

import argparse
import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from asched.cli.arguments import seed_number, whole
from asched.cli.commands import LAB_COMMANDS
from asched_lab.sim import lives
from asched_lab.sim.scenario import Broken, Cut, Scenario, play
from asched_lab.sim.scenarios import SCENARIOS
from asched_lab.sim.shrinking import Shrinking, kind_of

#: No step at all.
NONE: Final = "none"
#: About a week of one core.
_run_count: Final = whole(1, 1_000_000)


def add_parser(subparsers: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "chaos",
        help=LAB_COMMANDS["chaos"],
        description="The scheduler in virtual time, against a server with injected failures.",
        epilog="scenarios: " + ", ".join(SCENARIOS),
    )
    add = parser.add_argument
    add("--scenario", default="", metavar="NAME", help="one of the scenarios below (default: all)")
    add("--seed", type=seed_number, default=0, metavar="N", help="the first seed (0)")
    add(
        "--runs",
        type=_run_count,
        default=1,
        metavar="N",
        help="number of seeds, from the first on (1)",
    )
    add("--steps", action="store_true", help="print everything that happened")
    add("--whole", action="store_true", help="print failures without reducing them")
    add("--without", default="", metavar="FAULTS", help="leave out these faults: names, commas")
    add("--only", default="", metavar="NUMBERS", help="take these steps only, such as 0-3,7")
    add("--single", action="store_true", help="where pods are added, add one")
    add("--record", type=Path, metavar="DIR", help="write recordings to DIR (asched replay)")
    add("--keep", type=Path, metavar="FILE", help="append runs to this file, see --lives")
    add(
        "--lives",
        type=_run_count,
        default=0,
        metavar="N",
        help="continue until the file of --keep has N runs",
    )
    add("--table", type=Path, metavar="FILE", help="print the table of the runs in this file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the scenarios, one line each."""
    try:
        cut = _cut(args)
    except ValueError as error:
        print(f"asched chaos: {error}", file=sys.stderr)
        return 2
    with _quiet(logging.getLogger("asched")):
        if args.keep or args.table:
            return _kept(args)
        names = [args.scenario] if args.scenario else SCENARIOS
        return max(_play(name, cut, args) for name in names)


@contextmanager
def _quiet(log: logging.Logger) -> Iterator[None]:
    """Silence the scheduler's log."""
    silent, log.propagate = logging.NullHandler(), False
    log.addHandler(silent)
    try:
        yield
    finally:
        log.removeHandler(silent)
        log.propagate = True


def _cut(args: argparse.Namespace) -> Cut:
    """Raises ValueError with one line for invalid options."""
    if args.scenario and args.scenario not in SCENARIOS:
        raise ValueError(f"no scenario {args.scenario!r}; there are {', '.join(SCENARIOS)}")
    if bool(args.keep) != (args.lives > 0):
        raise ValueError("--keep FILE and --lives N (at least 1) go together")
    without = tuple(filter(None, args.without.split(",")))
    chosen = [SCENARIOS[args.scenario]] if args.scenario else SCENARIOS.values()
    known = sorted({type(fault).__name__ for kind in chosen for fault in kind.faults})
    unknown = next((name for name in without if name not in known), "")
    if unknown:
        raise ValueError(f"--without: no fault {unknown!r} here; there are {', '.join(known)}")
    return Cut(without, tuple(_numbers(args.only)) if args.only else None, args.single)


def _numbers(text: str) -> Iterator[int]:
    for part in text.split(",") if text != NONE else ():
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"--only {text}: numbers of steps are expected, such as 0-3,7")
        yield from range(int(first), int(last or first) + 1)


def _kept(args: argparse.Namespace) -> int:
    """Append runs to a file, and print its table."""
    kinds = {args.scenario: SCENARIOS[args.scenario]} if args.scenario else SCENARIOS
    failed = False
    try:
        if args.keep:
            for run in lives.continue_runs(args.keep, kinds, args.lives, args.seed):
                if run.broken:
                    failed = True
                    print(f"scenario {run.scenario}, seed {run.seed}: {run.broken}", flush=True)
        if args.table:
            print("\n".join(lives.table(lives.read(args.table), kinds)))
    except (OSError, ValueError) as error:
        print(f"asched chaos: {error}", file=sys.stderr)
        return 2
    return 1 if failed else 0


def _play(name: str, cut: Cut, args: argparse.Namespace) -> int:
    kind, bound, failed = SCENARIOS[name], 0, 0
    recoveries_s: list[float] = []
    shown: set[str] = set()
    for seed in range(args.seed, args.seed + args.runs):
        try:
            world = play(kind, seed, cut, _folder(args.record, name, seed))
        except Broken as broken:
            failed += 1
            _report(kind, broken, shown, args)
            continue
        bound += world.ledger.bound_count
        recoveries_s += world.recoveries_s
        if args.steps:
            print("\n".join(world.trace))
    summary = f"{args.runs} runs, {bound} pods bound"
    rules = f"{failed} with a broken rule" if failed else "no rule broken"
    print(f"{name}: {summary}, {rules}{_recovered(recoveries_s)}")
    return 1 if failed else 0


def _recovered(seconds: list[float]) -> str:
    """Time from the end of a fault to the first right decision; empty where no fault occurred."""
    if not seconds:
        return ""
    half, most, worst = lives.half_most_worst(seconds)
    return f", recovered in {half:.1f} s (p50), {most:.1f} s (p99), {worst:.1f} s (worst)"


def _folder(record: Path | None, name: str, seed: int) -> Path | None:
    """The folder for the recordings of one run."""
    if record is None:
        return None
    folder = record / f"{name}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _report(
    kind: type[Scenario], broken: Broken, shown: set[str], args: argparse.Namespace
) -> None:
    """Report the failure of one seed: in one line if the rule was shown broken before."""
    rule = kind_of(broken.findings[0])
    if rule in shown:
        print(f"{broken}".partition("\n")[0], file=sys.stderr)
        return
    shown.add(rule)
    if not args.whole:
        broken = Shrinking(kind, broken).run()
    if args.steps:
        print("\n".join(broken.world.trace))
    options = f"--scenario {kind.__name__} --seed {broken.world.seed}{_options(broken.cut)}"
    print(f"{broken}\nagain: asched chaos {options} --whole --steps", file=sys.stderr)


def _options(cut: Cut) -> str:
    """The options that repeat a run."""
    words = f" --without {','.join(cut.without)}" if cut.without else ""
    if cut.only is not None:
        words += f" --only {_ranges(cut.only)}"
    return words + (" --single" if cut.single else "")


def _ranges(numbers: Iterable[int]) -> str:
    """The format that `_numbers` reads."""
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    ]
    found = ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
    return found or NONE
