"""Start tasks: each has a name, is referenced, and its failure stops the process.

`in_thread` is for work that would block the loop: an import, another event loop. `Unawaited` serves
calls of the loop itself and of `asyncio.to_thread`.

Bounds  THREADS_MAX concurrent calls of an executor.

A task that ends by an exception stops the process with that exception: a restart rebuilds all state
from lists, while a process without one of its tasks would work on outdated state.
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
    """Run this in a daemon thread: the end of the process does not wait for it.

    Every exception, SystemExit too, is set on the future.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[R] = loop.create_future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - set on the future
            tell_loop(loop, _end, done, error, None)
        else:
            tell_loop(loop, _end, done, None, result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return done


class Unawaited(ThreadPoolExecutor):
    """A loop's executor whose calls are not awaited at the end: a name server without an answer, a
    profile that takes another minute. A process that lost the lease ends at once.
    """

    def __init__(self) -> None:
        super().__init__()  # starts no thread
        self._turns = threading.BoundedSemaphore(THREADS_MAX)

    def submit(self, call: Callable[..., R], /, *arguments: Any, **named: Any) -> "Future[R]":
        done: Future[R] = Future()

        def run() -> None:
            with self._turns:
                if not done.set_running_or_notify_cancel():
                    return
                try:
                    result = call(*arguments, **named)
                except BaseException as error:  # noqa: BLE001 - set on the future
                    done.set_exception(error)
                else:
                    done.set_result(result)

        threading.Thread(target=run, name="executor", daemon=True).start()
        return done

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for nothing."""


def tell_loop(
    loop: asyncio.AbstractEventLoop, call: Callable[..., object], *arguments: Any
) -> None:
    """Call a function in another thread's loop; ignored if that loop has ended."""
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
    """The tasks of one host. `failed` resolves with the first exception of a task."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self.failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    def spawn(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a coroutine as a task."""
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
        """Cancel all tasks and wait for them."""
        pending = list(self._tasks)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
