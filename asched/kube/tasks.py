"""Start tasks: each has a name, is referenced, and its failure stops the process.

`in_thread` is for work that would block the loop: an import, another event loop. `Unawaited` serves
calls of the loop itself and of `asyncio.to_thread`.

A task that ends by an exception stops the process with that exception: a restart rebuilds all state
from lists, while a process without one of its tasks would work on outdated state.

Bounds  THREADS_MAX concurrent calls of an executor.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

R = TypeVar("R")

THREADS_MAX: Final = 8
AT_ONCE: Final = contextlib.nullcontext()


def begin_thread(
    name: str, work: Callable[[], R], turn: contextlib.AbstractContextManager[object] = AT_ONCE
) -> "Future[R]":
    """Run this in a daemon thread, within `turn`: the end of the process does not wait for it.

    Every exception, SystemExit too, is set on the future.
    """
    done: Future[R] = Future()

    def run() -> None:
        with turn:
            if not done.set_running_or_notify_cancel():
                return
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - set on the future
                done.set_exception(error)
            else:
                done.set_result(result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return done


def in_thread(name: str, work: Callable[[], R]) -> "asyncio.Future[R]":
    """As `begin_thread`, with a future of the running loop."""
    return asyncio.wrap_future(begin_thread(name, work))


class Unawaited(ThreadPoolExecutor):
    """A loop's executor whose calls are not awaited at the end: a name server without an answer, a
    profile that takes another minute. A process that lost the lease ends at once.
    """

    def __init__(self) -> None:
        super().__init__()  # starts no thread
        self._turns = threading.BoundedSemaphore(THREADS_MAX)

    def submit(self, call: Callable[..., R], /, *arguments: Any, **named: Any) -> "Future[R]":
        return begin_thread("executor", partial(call, *arguments, **named), self._turns)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for nothing."""


def tell_loop(
    loop: asyncio.AbstractEventLoop, call: Callable[..., object], *arguments: Any
) -> None:
    """Call a function in another thread's loop; ignored if that loop has ended."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *arguments)


async def ended(futures: Iterable["asyncio.Future[Any]"]) -> None:
    """Cancel these, and wait for their ends, whatever they are."""
    cancelled = list(futures)
    for future in cancelled:
        future.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)


class Tasks:
    """The tasks of one host. `failed` resolves with the first exception of a task."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self.failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    def spawn(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
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
        await ended(task for task in self._tasks if task.get_name() in names)

    async def cancel_all(self) -> None:
        """Cancel all tasks and wait for them."""
        await ended(self._tasks)
