"""Progress of the demo: a line drawn in place on a terminal, a line a second elsewhere."""

import os
import sys
from typing import Final, Protocol

from asched_lab.sim.demo import Progress

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
