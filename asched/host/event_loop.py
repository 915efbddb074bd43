"""The event loop of a command."""

import asyncio
import signal
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from asched.host.ending import stop_on_signals
from asched.kube.tasks import Unawaited
from asched.serve.telemetry.log import loop_failed

R = TypeVar("R")


def run_on_loop(work: Coroutine[Any, Any, R]) -> R:
    """The result of work on uvloop if installed, else on asyncio's own loop; errors of the loop are
    logged. A SIGTERM cancels work that does not listen itself; then SystemExit is raised.
    """
    run = asyncio.run
    with suppress(ImportError):
        import uvloop

        run = uvloop.run

    is_requested = False

    async def logged() -> R:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        loop.set_exception_handler(loop_failed)
        loop.set_default_executor(Unawaited())

        def end() -> None:
            nonlocal is_requested
            is_requested = True
            if task is not None:
                task.cancel()

        if threading.current_thread() is threading.main_thread():  # no other receives signals
            stop_on_signals(end, (signal.SIGTERM,))
        return await work

    before = signal.getsignal(signal.SIGTERM)
    try:
        return run(logged())
    except asyncio.CancelledError:
        if not is_requested:
            raise
    finally:
        signal.signal(signal.SIGTERM, before)
    raise SystemExit(128 + signal.SIGTERM)
