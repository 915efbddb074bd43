"""The only spawner: every task has a name, is kept, and is missed when it dies.

`in_thread` is for what would hold the loop up: an import, another event loop. `Unawaited` does the
same for whatever a loop does in threads by itself, or by `asyncio.to_thread`.

Bounds  THREADS_MAX of an executor's calls at once.

A task that ends by an exception stops the process with that exception: all state comes back from a
list, so stopping is cheap and going on half-blind is not.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar

R = TypeVar("R")

THREADS_MAX: Final = 8


def in_thread(name: str, work: Callable[[], R]) -> "asyncio.Future[R]":
    """Do this in a thread whose end the process does not wait for, unlike the loop's executor's.

    Whatever it raises is the future's exception, SystemExit too.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[R] = loop.create_future()

    def live() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - handed on to whoever waits
            tell_loop(loop, _end, done, error, None)
        else:
            tell_loop(loop, _end, done, None, result)

    threading.Thread(target=live, name=name, daemon=True).start()
    return done


class Unawaited(ThreadPoolExecutor):
    """A loop's executor whose calls nobody waits for at the end: a name server that does not
    answer, a profile for which a minute is left. Who has lost the lease is gone at once.
    """

    def __init__(self) -> None:
        super().__init__()  # starts no thread of its own
        self._turns = threading.BoundedSemaphore(THREADS_MAX)

    def submit(self, call: Callable[..., R], /, *arguments: Any, **named: Any) -> "Future[R]":
        done: Future[R] = Future()

        def live() -> None:
            with self._turns:
                if not done.set_running_or_notify_cancel():
                    return
                try:
                    result = call(*arguments, **named)
                except BaseException as error:  # noqa: BLE001 - handed on to whoever waits
                    done.set_exception(error)
                else:
                    done.set_result(result)

        threading.Thread(target=live, name="executor", daemon=True).start()
        return done

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """There is nothing to wait for."""


def tell_loop(
    loop: asyncio.AbstractEventLoop, call: Callable[..., object], *arguments: Any
) -> None:
    """Have another thread's loop make a call; one that has ended needs to hear nothing."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *arguments)


def _end(done: "asyncio.Future[Any]", error: BaseException | None, result: Any) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)


class Tasks:
    """The tasks of one host. `failed` resolves with the first exception any of them ended by."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self.failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    def spawn(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine beside the others."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not self.failed.done():
            self.failed.set_result(error)

    def has(self, name: str) -> bool:
        """Whether a task of this name runs."""
        return any(task.get_name() == name for task in self._tasks)

    async def cancel(self, *names: str) -> None:
        """End the tasks of these names, and wait for them."""
        named = [task for task in self._tasks if task.get_name() in names]
        for task in named:
            task.cancel()
        await asyncio.gather(*named, return_exceptions=True)

    async def cancel_all(self) -> None:
        """End whatever still runs, and wait for it."""
        pending = list(self._tasks)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
