"""/debug/pprof/*: profiles of the process, with Python's tools.

The paths are upstream's; the content is not in pprof's format: `profile` samples all threads and
returns collapsed stacks (input for flame graphs), `goroutine` lists the tasks of the event loop,
`heap` counts objects by type.

Bounds  one profile at a time, SECONDS_MAX long, a sample every SAMPLE_S.
"""

import asyncio
import gc
import sys
from collections import Counter
from threading import Event
from time import monotonic
from types import FrameType
from typing import Final

from asched.serve.pages import NOSNIFF, Page, PageRequest, text

PREFIX: Final = "/debug/pprof"
SECONDS_DEFAULT: Final = 30.0
SECONDS_MAX: Final = 120.0
SAMPLE_S: Final = 0.005
TYPES_MAX: Final = 100
PROFILES: Final = {
    "goroutine": "tasks of the event loop with their stacks",
    "heap": "live objects by type",
    "profile": "samples of all threads as collapsed stacks; seconds=N",
}


class Profiling:
    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def page(self, asked: PageRequest) -> Page:
        name = asked.path.removeprefix(PREFIX).strip("/")
        if not name:
            return _index()
        if name == "goroutine":
            return text(tasks(), nosniff=True)
        if name == "heap":
            return text(await asyncio.to_thread(objects), nosniff=True)
        if name == "profile":
            return await self._profile(asked)
        return text("Unknown profile\n", 404, nosniff=True)

    async def _profile(self, asked: PageRequest) -> Page:
        try:
            seconds = float(asked.query.get("seconds", (str(SECONDS_DEFAULT),))[0])
        except ValueError:
            seconds = 0.0
        if not seconds > 0:  # as net/http/pprof; also for NaN
            seconds = SECONDS_DEFAULT
        if self._lock.locked():
            return text("Could not enable CPU profiling: cpu profiling already in use\n", 500)
        over = Event()
        async with self._lock:
            try:
                seconds = min(max(seconds, SAMPLE_S), SECONDS_MAX)
                stacks = await asyncio.to_thread(sample, seconds, over)
            finally:
                over.set()  # the client may have disconnected
        return Page(stacks.encode(), 200, "application/octet-stream", NOSNIFF)


def _index() -> Page:
    # Absolute paths: the page is also served without a final slash.
    rows = "".join(
        f'<li><a href="{PREFIX}/{name}">{name}</a>: {what}</li>' for name, what in PROFILES.items()
    )
    body = f"<html><head><title>{PREFIX}/</title></head><body><ul>{rows}</ul></body></html>\n"
    return Page(body.encode(), 200, "text/html; charset=utf-8", NOSNIFF)


def tasks() -> str:
    """The tasks of the running loop, one stack each."""
    lines = []
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        lines.append(task.get_name())
        lines.extend(
            f"    {frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}"
            for frame in task.get_stack()
        )
    return "\n".join([f"goroutine profile: total {len(asyncio.all_tasks())}", *lines, ""])


def objects() -> str:
    """Tracked objects by type, most frequent first."""
    counts = Counter(type(found).__qualname__ for found in gc.get_objects())
    lines = [f"{count:10d} {name}" for name, count in counts.most_common(TYPES_MAX)]
    return "\n".join([f"heap profile: {counts.total()} tracked objects", *lines, ""])


def sample(seconds: float, over: Event) -> str:
    """Collapsed stacks of all threads but this one: `outer;inner count`."""
    own = sys._getframe()  # noqa: SLF001 - the interpreter's own profiling interface
    stacks: Counter[str] = Counter()
    until_s = monotonic() + seconds
    while monotonic() < until_s and not over.wait(SAMPLE_S):
        for frame in sys._current_frames().values():  # noqa: SLF001
            if frame is own:
                continue
            names = []
            at: FrameType | None = frame
            while at is not None:
                names.append(f"{at.f_globals.get('__name__', '?')}.{at.f_code.co_name}")
                at = at.f_back
            stacks[";".join(reversed(names))] += 1
    return "\n".join(f"{stack} {count}" for stack, count in stacks.most_common()) + "\n"
