"""Work that the machine does once a turn beside attempts, contained.

    do ─> raises ─> reported; not done again before a pause, which doubles with each exception
       └> through: at once again

Each feature contains what is about one object by itself (it skips that object); what arrives here
is about none that is known.
"""

from collections.abc import Callable
from typing import Final

from asched.core.cycle.context import SchedulerContext
from asched.core.framework.status import MISTAKES

PAUSE_S: Final = 1.0
PAUSE_S_MAX: Final = 60.0


class Feature:
    """`work` of a part of the scheduler; `next_s` says when it has something to do by itself."""

    __slots__ = ("_context", "_next_s", "_part", "_pause_s", "_paused_until_s", "_work")

    def __init__(
        self,
        context: SchedulerContext,
        part: str,
        work: Callable[[], None],
        next_s: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._context = context
        self._part = part
        self._work = work
        self._next_s = next_s
        self._pause_s = self._paused_until_s = 0.0

    def do(self) -> None:
        if self._pause_s and self._context.now_s < self._paused_until_s:
            return
        try:
            self._work()
        except MISTAKES as raised:
            self._failed(raised)
        else:
            self._pause_s = 0.0

    def next_s(self) -> float | None:
        """In seconds of turns; None if not before something else happens."""
        if self._pause_s:
            return self._paused_until_s
        try:
            return self._next_s()
        except MISTAKES as raised:
            self._failed(raised)
            return self._paused_until_s

    def _failed(self, raised: BaseException) -> None:
        self._context.contain(raised, self._part)
        self._pause_s = min(2 * self._pause_s, PAUSE_S_MAX) if self._pause_s else PAUSE_S
        self._paused_until_s = self._context.now_s + self._pause_s
