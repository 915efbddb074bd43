"""`asched bench`: run scheduler_perf's workload files and compare with upstream's thresholds.

Two modes, never mixed in one run. `decide` measures the engine in process, without an API server.
`bind` runs `asched run` as a process against an API server: the embedded one, or the cluster of
--kubeconfig, where namespaces and nodes of the workload are created and removed again.

Exit status: 0 if everything that can run was completed, 1 if something failed, 2 for usage.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

from asched.cli.arguments import seed_number
from asched.cli.commands import LAB_COMMANDS
from asched.host.event_loop import run_on_loop
from asched_lab.bench import report
from asched_lab.bench.run_bind import BindWorld
from asched_lab.bench.run_decide import DecideWorld
from asched_lab.bench.suite import Maker, Prepared, Result, Show, run_all, select
from asched_lab.bench.workload import LabelFilter, Workload, WorkloadError
from asched_lab.bench.world import World

#: Seconds between two lines of progress.
LINE_EVERY_S: Final = 5.0


def add_parser(subparsers: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "bench",
        help=LAB_COMMANDS["bench"],
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--config", action="append", required=True, metavar="FILE", help="workload file; repeatable"
    )
    parser.add_argument("--test-case", default="", metavar="NAME", help="only this test case")
    parser.add_argument(
        "--workload", default="", metavar="NAME", help="only workloads of this name"
    )
    parser.add_argument(
        "--label", default="", metavar="L", help="only with these labels, e.g. +a,-b"
    )
    parser.add_argument(
        "--mode", choices=("decide", "bind"), default="decide", help="see above (%(default)s)"
    )
    parser.add_argument("--kubeconfig", default="", metavar="F", help="cluster for --mode bind")
    parser.add_argument(
        "--list", action="store_true", help="list the workloads without running them"
    )
    parser.add_argument("--seed", type=seed_number, default=0, help="seed for ties")
    parser.add_argument("--profile", action="store_true", help="also report time per stage")
    parser.add_argument(
        "--json", default="", metavar="OUT", help="write results to this file, - for stdout"
    )
    parser.add_argument("--plot", default="", metavar="OUT.svg", help="draw throughput over time")
    parser.add_argument("--append", default="", metavar="FILE", help="add a JSON line per workload")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Select, run, report."""
    if args.kubeconfig and args.mode != "bind":
        return _fail("--kubeconfig goes with --mode bind")
    try:
        labels = LabelFilter(args.label) if args.label else None
        workloads = select(map(Path, args.config), args.test_case, args.workload, labels)
    except (WorkloadError, ValueError) as error:
        return _fail(str(error))
    if args.list:
        for workload in workloads:
            print(workload.full_name, f"threshold {workload.threshold:g}", *sorted(workload.labels))
        return 0
    view = progress_view()
    results = run_on_loop(_results(workloads, args, view.show))
    view.close()
    print(report.machine_line())
    print(report.table(results))
    if args.profile:
        print("\n".join(report.facts_lines(results)))
        for result in results:
            if result.stages:
                print(report.stage_table(result))
    try:
        if args.json:
            text = json.dumps(report.document(results), indent=1)
            print(text) if args.json == "-" else Path(args.json).write_text(text, encoding="utf-8")
        if args.plot:
            Path(args.plot).write_text(report.svg(results), encoding="utf-8")
        if args.append:
            report.append(Path(args.append), results)
    except OSError as error:
        return _fail(f"cannot write {error.filename}: {error.strerror}")
    return 1 if any(result.error for result in results) else 0


async def _results(workloads: list[Workload], args: argparse.Namespace, show: Show) -> list[Result]:
    async def decide(_: Workload, prepared: Prepared) -> World:
        return DecideWorld(prepared.configuration, seed=args.seed, is_profiled=args.profile)

    async def bind(_: Workload, prepared: Prepared) -> World:
        return await BindWorld.started(prepared, kubeconfig=args.kubeconfig)

    make: Maker = bind if args.mode == "bind" else decide
    return await run_all(workloads, args.mode, make, show)


def _fail(message: str) -> int:
    print(f"asched bench: {message}", file=sys.stderr)
    return 2


class _Lines:
    """Progress lines on standard error, for pipes and logs."""

    def __init__(self) -> None:
        self._what = ""
        self._next_s = time.monotonic() + LINE_EVERY_S

    def show(self, workload: Workload, index: int, total: int, what: str, world: World) -> None:
        if what:
            self._what = f"{index + 1}/{total} {what}"
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + LINE_EVERY_S
            print(self.text(workload, world), file=sys.stderr, flush=True)

    def text(self, workload: Workload, world: World) -> str:
        pods = world.pods
        return (
            f"{workload.full_name}: {self._what}: {pods.scheduled_count} pods scheduled"
            f" of {len(pods.pods)}"
        )

    def close(self) -> None:
        """Nothing to close."""


class _Live(_Lines):
    """The same line, drawn in place, for terminals."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console

        self._status = Console(stderr=True).status("")
        self._status.start()

    def show(self, workload: Workload, index: int, total: int, what: str, world: World) -> None:
        if what:
            self._what = f"{index + 1}/{total} {what}"
        self._status.update(self.text(workload, world))

    def close(self) -> None:
        self._status.stop()


def progress_view() -> _Lines:
    """Live on a terminal where rich is installed, lines elsewhere."""
    if sys.stderr.isatty():
        try:
            return _Live()
        except ImportError:
            pass
    return _Lines()
