"""`asched demo`: thousands of pods on an embedded API server, placed by the real scheduler.

Exit status: 0 if every pod that can be placed is placed and nothing is broken, 1 if not, 2 for
usage.
"""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asched.edge.host.process import runner
from asched.lab.sim.demo import Demo, Progress, SchedulerDiedError, Summary

#: Plain progress lines, seconds apart.
LINE_EVERY_S = 1.0


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "demo", help="place thousands of pods, and watch", description=__doc__
    )
    parser.add_argument("--nodes", type=_count, default=1000, metavar="N")
    parser.add_argument("--pods", type=_count, default=5000, metavar="M")
    parser.add_argument("--seed", type=int, default=0, help="another crowd of the same kind")
    parser.add_argument("--json", action="store_true", help="print one JSON line last")
    parser.add_argument("--keep", action="store_true", help="leave server and scheduler running")
    parser.add_argument("--log", type=Path, metavar="FILE", help="where the scheduler's log goes")
    for flag, metavar, text in (
        ("--config", "FILE", "the scheduler's configuration; it must serve asched"),
        ("--plugin", "WHICH", "module:Class or file.py of a plugin, repeatable"),
        ("--plugin-dir", "DIR", "folder of plugin files"),
    ):
        parser.add_argument(flag, action="append", default=[], metavar=metavar, help=text)
    parser.set_defaults(run=run)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def run(args: argparse.Namespace) -> int:
    """Run the demo on an event loop of its own."""
    return runner()(_demo(args))


async def _demo(args: argparse.Namespace) -> int:
    print(
        f"{args.pods} pods wait for {args.nodes} nodes; starting API server and scheduler",
        flush=True,
    )
    view = _view()
    demo = Demo(
        nodes=args.nodes,
        pods=args.pods,
        seed=args.seed,
        show=view.show,
        scheduler_flags=_scheduler_flags(args),
        log=args.log,
    )
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    work = asyncio.ensure_future(demo.run())
    waits = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((work, waits), return_when=asyncio.FIRST_COMPLETED)
        view.close()
        if not work.done():
            work.cancel()
            print("asched demo: interrupted", file=sys.stderr)
            return 130
        summary = work.result()
        _tell(summary)
        if args.json:
            print(json.dumps(summary.as_json()), flush=True)
        if args.keep:
            print(
                f"\nserver and scheduler go on until Ctrl-C; look around with\n"
                f"export KUBECONFIG={demo.kubeconfig}",
                flush=True,
            )
            await waits
        return 0 if summary.is_good else 1  # noqa: TRY300 - the way out, beside the other ways out
    except SchedulerDiedError as error:
        print(f"asched demo: {error}", file=sys.stderr)
        return 1
    finally:
        view.close()
        waits.cancel()
        await demo.stop()


def _scheduler_flags(args: argparse.Namespace) -> list[str]:
    """What is passed on to `asched run`."""
    return [
        f"--{name}={value}"
        for name in ("config", "plugin", "plugin-dir")
        for value in getattr(args, name.replace("-", "_"))
    ]


def _tell(summary: Summary) -> None:
    print(
        f"\n{summary.bound} of {summary.pods} pods bound to {summary.nodes} nodes in"
        f" {summary.seconds:.1f} s: {summary.pods_per_second:.0f} pods per second"
    )
    if summary.reasons:
        print(f"{sum(summary.reasons.values())} are not:")
        for reason, count in summary.reasons.most_common(8):
            print(f"  {count:6d}  {reason}")
    for title, lines in (("broken", summary.broken), ("could have been placed", summary.forgotten)):
        for line in lines[:5]:
            print(f"{title}: {line}", file=sys.stderr)
    if summary.is_good:
        print("nothing overcommitted, every pod that can be placed is placed", flush=True)


class _Lines:
    """One line a second, for pipes and logs."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def show(self, progress: Progress) -> None:
        if progress.seconds >= self._next_s:
            self._next_s = progress.seconds + LINE_EVERY_S
            print(describe(progress), flush=True)

    def close(self) -> None:
        """Nothing to tidy."""


class _Live:
    """A bar with figures that is drawn in place, for terminals."""

    def __init__(self) -> None:
        from rich.live import Live
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bars

        self._bars = Bars(TextColumn("bound"), BarColumn(40), TextColumn("{task.description}"))
        self._task = self._bars.add_task("", total=1)
        self._live = Live(self._bars, refresh_per_second=10)
        self._live.start()

    def show(self, progress: Progress) -> None:
        self._bars.update(
            self._task,
            total=progress.pods,
            completed=progress.bound + progress.refused,
            description=describe(progress),
        )

    def close(self) -> None:
        self._live.stop()


def describe(progress: Progress) -> str:
    """One line that says how far it is."""
    counts = f"{progress.bound:6d} bound {progress.waiting:6d} waiting {progress.refused:5d} unfit"
    waits = f"waited p50 {progress.wait_p50_s:.1f} s p99 {progress.wait_p99_s:.1f} s"
    return f"{counts}  {progress.rate:5.0f}/s  {waits}"


def _view() -> Any:
    maker: Callable[[], Any] = _Lines
    if sys.stdout.isatty():
        try:
            import rich  # noqa: F401 - only whether it is there

            maker = _Live
        except ImportError:
            pass
    return maker()
