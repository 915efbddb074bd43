"""Active queues of users' plugins, made safe to wait in.

Beside the plugin's queue stands a heap of the same pods, by the queue sort's key. As soon as the
plugin raises, or gives out somebody who does not wait, the heap is what counts, until the profiles
are loaded again: a plugin's bug costs its own order and no pod a turn.

Bounds  one entry for each pod that waits.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, TypeVar

from asched.core.framework.status import MISTAKES
from asched.core.queue.active import ActiveQueue
from asched.core.queue.lane import Heap
from asched.core.queue.observer import QueueObserver
from asched.core.queue.queued import QueuedPod

T = TypeVar("T")


class _Stand:
    """A pod in the heap: its own `lane` is the queue that it stands in."""

    __slots__ = ("lane", "queued", "ticket")

    def __init__(self, queued: QueuedPod) -> None:
        self.lane: Any = None
        self.ticket = 0
        self.queued = queued


class GuardedQueue:
    """An `ActiveQueue` that stands before the one that `make` makes."""

    def __init__(
        self, plugin: str, make: Callable[[], ActiveQueue], observer: QueueObserver
    ) -> None:
        self._plugin = plugin
        self._observer = observer
        self._stands: dict[QueuedPod, _Stand] = {}
        self._heap: Heap[_Stand] = Heap()
        self._own: ActiveQueue | None = None  # None once it has failed
        try:
            self._own = make()
        except MISTAKES as error:  # whatever a user's class raises
            self._report(error)

    def __len__(self) -> int:
        return len(self._stands)

    def push(self, queued: QueuedPod, key: Any) -> None:
        stand = self._stands[queued] = _Stand(queued)
        self._heap.push(stand, key)
        self._ask(lambda own: own.push(queued, key), lambda: None)
        queued.lane = self

    def discard(self, queued: QueuedPod) -> None:
        queued.lane = self._own  # as it left it
        self._ask(lambda own: own.discard(queued), lambda: None)
        self._left(queued)

    def head(self) -> QueuedPod | None:
        return self._given_out(lambda own: own.head())

    def pop(self) -> QueuedPod | None:
        if (head := self.head()) is not None:
            head.lane = self._own
        queued = self._given_out(lambda own: own.pop())
        if head is not None:
            head.lane = self
        if queued is not None:
            self._left(queued)
        return queued

    def empty(self) -> list[QueuedPod]:
        for queued in self._stands:
            queued.lane = self._own
        left = self._all_of(lambda own: own.empty())
        for queued in left:
            self._left(queued)
        return left

    def in_order(self) -> list[QueuedPod]:
        return self._all_of(lambda own: own.in_order())

    def _ask(self, question: Callable[[ActiveQueue], T], otherwise: Callable[[], T]) -> T:
        if self._own is not None:
            try:
                return question(self._own)
            except MISTAKES as error:  # as above
                self._report(error)
        return otherwise()

    def _given_out(self, question: Callable[[ActiveQueue], QueuedPod | None]) -> QueuedPod | None:
        """Somebody who waits, or nobody."""

        def ask(own: ActiveQueue) -> QueuedPod | None:
            queued = question(own)
            if queued is not None and queued not in self._stands:
                raise LookupError(f"{queued!r} does not wait")
            return queued

        return self._ask(ask, self._first)

    def _first(self) -> QueuedPod | None:
        stand = self._heap.head()
        return None if stand is None else stand.queued

    def _all_of(self, question: Callable[[ActiveQueue], Iterable[QueuedPod]]) -> list[QueuedPod]:
        """Everybody, in the plugin's order as far as it tells of them."""

        def ask(own: ActiveQueue) -> dict[QueuedPod, None]:
            some = islice(question(own), len(self._stands))
            return dict.fromkeys(one for one in some if one in self._stands)

        told = self._ask(ask, dict[QueuedPod, None])
        ours = (stand.queued for stand in self._heap.in_order())
        return [*told, *(one for one in ours if one not in told)]

    def _left(self, queued: QueuedPod) -> None:
        queued.lane = None
        self._heap.discard(self._stands.pop(queued))

    def _report(self, error: BaseException) -> None:
        self._own = None
        self._observer.plugin_raised(self._plugin, "activeQueue", error)


class Guarded:
    """Makes them; equal if plugin and queue are, so that a reload keeps what waits in order."""

    def __init__(
        self, plugin: str, make: Callable[[], ActiveQueue], observer: QueueObserver
    ) -> None:
        self._made_of = plugin, make
        self._observer = observer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guarded) and self._made_of == other._made_of

    def __hash__(self) -> int:
        return hash(self._made_of)

    def __call__(self) -> GuardedQueue:
        return GuardedQueue(*self._made_of, self._observer)
