"""Ending: the first SIGINT or SIGTERM asks a process for an orderly end, the second does not ask.

A process may live more than once (`process.schedule`). The signal is meant for all its lives: one
that comes between two of them, while the next connects, must not get lost.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

R = TypeVar("R")

log = logging.getLogger("asched.host")


class AskedToEndError(Exception):
    """Before there was anything to be ended."""


class Ending:
    """Build it inside the loop that the signals are for."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._listens = False
        self._stop: Callable[[], None] = _nothing

    @property
    def is_asked(self) -> bool:
        return self._asked.is_set()

    def listen(self, stop: Callable[[], None]) -> None:
        """From now on a signal calls `stop`, as one that has come already does at once."""
        self._stop = stop
        if self.is_asked:
            stop()
        elif not self._listens:
            self._listens = True
            stop_on_signals(self._ask)

    async def unless_asked(self, work: Coroutine[Any, Any, R]) -> R:
        """The result of what takes long before there is anything to stop. Raises AskedToEndError,
        with the work given up.
        """
        task, asked = asyncio.ensure_future(work), asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait((task, asked), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise AskedToEndError
            return task.result()
        finally:
            for one in (task, asked):
                one.cancel()
            await asyncio.gather(task, asked, return_exceptions=True)

    def _ask(self) -> None:
        self._asked.set()
        self._stop()


def stop_on_signals(stop: Callable[[], None]) -> None:
    """The first SIGINT or SIGTERM asks for an orderly end, the second does not ask."""
    loop = asyncio.get_running_loop()

    def once(number: int) -> None:
        log.info("stopping", extra={"signal": signal.Signals(number).name})
        loop.remove_signal_handler(number)
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, once, number)


def _nothing() -> None:
    """There is nothing to stop yet."""
