"""Queued keys, handled a few at a time on the event loop.

Changes for simulated kubelets and controllers are queued here, so that a burst of writes is
answered before they react. A key that waits already is not queued twice.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from asched_lab.apiserver.context import Context
from asched_lab.apiserver.resources import Resource
from asched_lab.apiserver.store import Change, Key

#: Objects handled before the loop runs other tasks. A guess: about 5 ms of work.
BATCH: Final = 64
Item = tuple[Resource, Key]


class Batches:
    """A queue of objects, filled by the store's changes."""

    def __init__(self, ctx: Context, handle: Callable[[Resource, Key], None]) -> None:
        self._ctx = ctx
        self._handle = handle
        self._queue: deque[Item] = deque()
        self._queued: set[Item] = set()
        self._timers: dict[Any, asyncio.TimerHandle] = {}
        self._listening: list[tuple[Resource, Callable[[Change], None]]] = []

    def listen(self, res: Resource, on_change: Callable[[Resource, Change], None]) -> None:
        """Call `on_change` for each change of a kind until `stop`."""

        def listener(change: Change) -> None:
            on_change(res, change)

        self._ctx.store.table(res.storage).listeners.append(listener)
        self._listening.append((res, listener))

    def add(self, res: Resource, key: Key) -> None:
        """Queue an object. Must be called on the event loop."""
        if (res, key) not in self._queued:
            self._queued.add((res, key))
            self._queue.append((res, key))
            self._later((), 0.0, self._work)

    def add_later(self, res: Resource, key: Key, after_s: float) -> None:
        """Queue an object in `after_s` seconds, unless it waits already."""
        self._later((res, key), after_s, self.add, res, key)

    def stop(self) -> None:
        for res, listener in self._listening:
            self._ctx.store.table(res.storage).listeners.remove(listener)
        for timer in self._timers.values():
            timer.cancel()
        self._listening.clear()
        self._timers.clear()
        self._queue.clear()
        self._queued.clear()

    def _later(self, name: Any, after_s: float, call: Callable[..., None], *args: Any) -> None:
        """Set the timer called `name` if it is not set."""
        if name in self._timers:
            return

        def due() -> None:
            del self._timers[name]
            call(*args)

        self._timers[name] = asyncio.get_running_loop().call_later(after_s, due)

    def _work(self) -> None:
        for _ in range(min(BATCH, len(self._queue))):
            item = self._queue.popleft()
            self._queued.discard(item)
            self._handle(*item)
        if self._queue:
            self._later((), 0.0, self._work)
