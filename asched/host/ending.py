"""Shutdown signals: the first SIGINT or SIGTERM stops a process cleanly, the second at once.

`process.schedule` may run a scheduler several times. A signal ends all runs: one that arrives
between two runs, while the next one connects, must not be lost.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from asched.host.termination import end_at_once
from asched.kube.tasks import ended

R = TypeVar("R")

log = logging.getLogger("asched.host")


class EndRequestedError(Exception):
    """A signal arrived before there was anything to stop."""


class Ending:
    """Handles the signals of the running loop, from its creation on."""

    def __init__(self) -> None:
        self._requested = asyncio.Event()
        self._stop: Callable[[], None] = lambda: None
        stop_on_signals(self._ask)

    @property
    def is_requested(self) -> bool:
        return self._requested.is_set()

    def listen(self, stop: Callable[[], None]) -> None:
        """Call `stop` on a signal; at once if a signal has arrived already."""
        self._stop = stop
        if self.is_requested:
            stop()

    async def unless_ended(self, work: Coroutine[Any, Any, R]) -> R:
        """The result of a long operation before there is anything to stop. Raises EndRequestedError
        on a signal, and cancels the operation.
        """
        task, requested = asyncio.ensure_future(work), asyncio.ensure_future(self._requested.wait())
        try:
            await asyncio.wait((task, requested), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise EndRequestedError
            return task.result()
        finally:
            await ended((task, requested))

    def _ask(self) -> None:
        self._requested.set()
        self._stop()


def stop_on_signals(
    stop: Callable[[], None], numbers: Sequence[int] = (signal.SIGINT, signal.SIGTERM)
) -> None:
    """The first of these signals calls `stop` in the running loop, the second ends the process at
    once.
    """
    loop = asyncio.get_running_loop()

    def once(number: int) -> None:
        log.info("stopping", extra={"signal": signal.Signals(number).name})
        loop.remove_signal_handler(number)
        signal.signal(number, end_at_once)
        stop()

    for number in numbers:
        loop.add_signal_handler(number, once, number)
