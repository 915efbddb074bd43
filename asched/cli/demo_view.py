"""How far the demo is: a line drawn in place on a terminal, a line a second elsewhere."""

import os
import sys
from typing import Final, Protocol

from asched.lab.sim.demo import Progress

#: Plain progress lines, seconds apart.
LINE_EVERY_S: Final = 1.0
#: Columns of the figures of `describe`; what a terminal has beyond them is for a bar.
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


class LinesView:
    """One line a second, for pipes and logs."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def show(self, progress: Progress) -> None:
        if progress.seconds >= self._next_s:
            self._next_s = progress.seconds + LINE_EVERY_S
            print(describe(progress), flush=True)

    def close(self) -> None:
        """Nothing to tidy."""


class LiveView:
    """The figures, and a bar where there is room for one. Raises ImportError without rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bars

        console = Console()
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
            description=describe(progress),
        )

    def close(self) -> None:
        self._live.stop()


def bar_columns(width: int) -> int:
    """How long the bar may be beside the figures; 0 for none."""
    room = min(width - TEXT_COLUMNS, BAR_COLUMNS_MAX)
    return room if room >= BAR_COLUMNS_MIN else 0


def describe(progress: Progress) -> str:
    """One line that says how far it is."""
    counts = f"{progress.bound:6d} bound {progress.waiting:6d} waiting {progress.refused:5d} unfit"
    waits = f"waited p50 {progress.wait_p50_s:.1f} s p99 {progress.wait_p99_s:.1f} s"
    return f"{counts}  {progress.rate:5.0f}/s  {waits}"
