"""Thousands of pods on an embedded API server, placed by the real scheduler, a process of its own.

Exit status: 0 if every pod that can be placed is placed and nothing is broken, 1 if not, 2 for
usage.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from asched import names
from asched.cli.arguments import add_plugin_flags, node_count, pod_count, seed_number
from asched.cli.commands import LAB_COMMANDS
from asched.host.configuration.file import ConfigError, UnreadableFileError, load_config
from asched.host.event_loop import run_on_loop
from asched.host.user_plugins.catalogue import PluginLoadError, discover
from asched_lab.sim.demo import Demo, Progress, SchedulerDiedError, Summary

#: Plain progress lines, seconds apart.
LINE_EVERY_S: Final = 1.0
#: Columns of the whole `describe`; a wider terminal also gets a bar.
TEXT_COLUMNS: Final = 80
BAR_COLUMNS_MIN: Final = 10
BAR_COLUMNS_MAX: Final = 40


class View(Protocol):
    def show(self, progress: Progress) -> None: ...

    def close(self) -> None: ...


def make_view() -> View:
    """A live one where a terminal can move its cursor and rich is installed."""
    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        try:
            return LiveView()
        except ImportError:
            pass
    return LinesView()


def say(what: str) -> None:
    """Print a line about a step of the set-up."""
    print(f"{what} ...", flush=True)


class LateView:
    """Starts with the first progress: until then the set-up prints its steps."""

    def __init__(self) -> None:
        self._view: View | None = None

    @property
    def is_live(self) -> bool:
        return isinstance(self._view, LiveView)

    def show(self, progress: Progress) -> None:
        if self._view is None:
            self._view = make_view()
        self._view.show(progress)

    def close(self) -> None:
        if self._view is not None:
            self._view.close()


class LinesView:
    """One line a second, for pipes and logs."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def show(self, progress: Progress) -> None:
        if progress.seconds >= self._next_s:
            self._next_s = progress.seconds + LINE_EVERY_S
            print(describe(progress), flush=True)

    def close(self) -> None:
        """Nothing to close."""


class LiveView:
    """The figures, and a bar where there is room for one. Raises ImportError without rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bars

        console = Console()
        self._width = console.width
        columns = bar_columns(console.width)
        bar = (BarColumn(columns),) if columns else ()
        self._bars = Bars(*bar, TextColumn("{task.description}"), console=console)
        self._task = self._bars.add_task("", total=1)
        self._live = Live(self._bars, console=console, refresh_per_second=10)
        self._live.start()

    def show(self, progress: Progress) -> None:
        self._bars.update(
            self._task,
            total=progress.pods,
            completed=progress.bound + progress.refused,
            description=describe(progress, self._width),
        )

    def close(self) -> None:
        self._live.stop()


def bar_columns(width: int) -> int:
    """How long the bar may be beside the figures; 0 for none."""
    room = min(width - TEXT_COLUMNS, BAR_COLUMNS_MAX)
    return room if room >= BAR_COLUMNS_MIN else 0


def describe(progress: Progress, columns: int = TEXT_COLUMNS) -> str:
    """One line of progress, cut to the most important figures on a narrow terminal."""
    bound, waiting, refused = progress.bound, progress.waiting, progress.refused
    waits = f"p50 {progress.wait_p50_s:.1f} s p99 {progress.wait_p99_s:.1f} s"
    counts = f"{bound:6d} bound {waiting:6d} waiting {refused:5d} unfit"
    lines = (
        f"{counts}  {progress.rate:5.0f}/s  waited {waits}",
        f"{bound} bound {waiting} waiting {refused} unfit {progress.rate:.0f}/s {waits}",
        f"{bound} of {progress.pods} bound, p99 {progress.wait_p99_s:.1f} s",
        f"{bound} p99 {progress.wait_p99_s:.1f} s",
    )
    return next((line for line in lines if len(line) <= columns), lines[-1])


NODES: Final = 1000
PODS: Final = 5000
REASONS_SHOWN: Final = 8
#: Reasons begin in this column.
INDENT: Final = 10


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("demo", help=LAB_COMMANDS["demo"], description=__doc__)
    add = parser.add_argument
    add(
        "--nodes",
        type=node_count,
        default=NODES,
        metavar="N",
        help="how many (%(default)s)",
    )
    add("--pods", type=pod_count, default=PODS, metavar="M", help="how many (%(default)s)")
    add("--seed", type=seed_number, default=0, help="seed of the generated pods (%(default)s)")
    add("--json", action="store_true", help="print one JSON line last")
    add("--keep", action="store_true", help="leave server and scheduler running until Ctrl-C")
    add("--ui", action="store_true", help="show it in a browser, too; runs until Ctrl-C")
    add("--log", type=Path, metavar="FILE", help="write the scheduler's log here")
    add("--config", metavar="FILE", help="the scheduler's configuration; it must serve asched")
    add_plugin_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the demo on an event loop of its own."""
    faults = _faults(args)
    for line in faults:
        print(f"asched demo: {line}", file=sys.stderr)
    return 2 if faults else run_on_loop(_demo(args))


def _faults(args: argparse.Namespace) -> list[str]:
    """Errors that would stop the scheduler, found before anything is started."""
    try:
        plugins = discover(args.plugin, args.plugin_dir)
        loaded = load_config(args.config, known=plugins.known) if args.config else None
        if loaded is not None:
            plugins.check_args(loaded, args.config)
        if args.log is not None:
            args.log.open("ab").close()
    except (PluginLoadError, UnreadableFileError) as error:
        return [str(error)]
    except ConfigError as error:
        return [str(located) for located in error.errors]
    except OSError as error:
        return [f"cannot write --log {args.log}: {error.strerror}"]
    served = [profile.scheduler_name for profile in loaded.profiles] if loaded else []
    if loaded is not None and names.OUR_SCHEDULER_NAME not in served:
        wanted = names.OUR_SCHEDULER_NAME
        fault = f"{args.config} serves {', '.join(served)}, but the demo's pods name {wanted}"
        return [f"{fault}; add a profile with schedulerName: {wanted}"]
    return []


async def _demo(args: argparse.Namespace) -> int:
    try:
        demo = Demo(
            nodes=args.nodes,
            pods=args.pods,
            seed=args.seed,
            scheduler_flags=_scheduler_flags(args),
            log=args.log,
            serves_pages=args.keep or args.ui,
        )
    except OSError as error:  # no temporary folder, as in a container whose root is read-only
        print(f"asched demo: {error}; name a writable one with TMPDIR", file=sys.stderr)
        return 1
    view = LateView()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    shown = AsyncExitStack()
    if args.ui:
        await shown.enter_async_context(_in_a_browser(demo))
    work = asyncio.ensure_future(demo.run(say, view.show))
    waits = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((work, waits), return_when=asyncio.FIRST_COMPLETED)
        view.close()
        if not work.done():
            work.cancel()
            print("asched demo: interrupted", file=sys.stderr)
            return 130
        summary = work.result()
        _print_summary(summary, shutil.get_terminal_size().columns if view.is_live else 0)
        if args.json:
            print(json.dumps(summary.as_json()), flush=True)
        if args.keep or args.ui:
            _print_next_commands(demo, summary)
            await waits
        return 0 if summary.is_good else 1  # noqa: TRY300 - the way out, beside the other ways out
    except SchedulerDiedError as error:
        print(f"asched demo: {error}", file=sys.stderr)
        return 1
    finally:
        view.close()
        waits.cancel()
        await shown.aclose()
        await demo.stop()


@asynccontextmanager
async def _in_a_browser(demo: Demo) -> AsyncIterator[None]:
    from asched.cli.forwarder import Forwarder  # aiohttp, needed for --ui only
    from asched.cli.pages import NamedServer

    forwarder = Forwarder(NamedServer.here(demo.pages))
    url = await forwarder.start(0)
    print(f"watch it in a browser: {url}", flush=True)
    try:
        yield
    finally:
        await forwarder.close()


def _scheduler_flags(args: argparse.Namespace) -> list[str]:
    """The flags passed on to `asched run`."""
    flags = [f"--plugin={which}" for which in args.plugin]
    flags += [f"--config={args.config}"] if args.config else []
    return flags + ([f"--plugin-dir={args.plugin_dir}"] if args.plugin_dir else [])


def _print_summary(summary: Summary, columns: int) -> None:
    """Print figures and reasons; on a terminal reasons are folded to its width."""
    print(
        f"\n{summary.bound} of {summary.pods} pods bound to {summary.nodes} nodes in"
        f" {summary.seconds:.1f} s ({summary.pods_per_second:.0f} a second once under way)"
    )
    left = sum(summary.reasons.values())
    if left:
        print(f"{left} {'is' if left == 1 else 'are'} not:")
        for reason, pods in summary.reasons.most_common(REASONS_SHOWN):
            first, *rest = folded(reason, columns)
            print(f"  {pods:6d}  {first}")
            for line in rest:
                print(" " * INDENT + line)
    for title, lines in (("broken", summary.broken), ("could have been placed", summary.forgotten)):
        for line in lines[:5]:
            print(f"{title}: {line}", file=sys.stderr)
    if summary.is_good:
        print("nothing overcommitted, every pod that can be placed is placed", flush=True)


def folded(reason: str, columns: int) -> list[str]:
    """Lines that leave room for the indent; one line if there are no columns."""
    if not reason or columns <= 2 * INDENT:
        return [reason]
    return textwrap.wrap(reason, columns - INDENT, break_on_hyphens=False)


def _print_next_commands(demo: Demo, summary: Summary) -> None:
    print("\nserver and scheduler run until Ctrl-C; explore with")
    print(f"  export KUBECONFIG={demo.kubeconfig}")
    print("  kubectl get pods --all-namespaces --output wide")
    pod = summary.example or "NAMESPACE/POD"
    print(f"  asched explain {pod}", flush=True)
