"""Wrap the queue sort keys of users' plugins, so that they are safe in a heap.

A key that cannot be made or compared is replaced by the default order (priority, then time), so
that a bug of the plugin only changes the order of pods.

Wrap the active queues of users' plugins, so that no pod is lost in them.

The wrapper also stores the pods in a heap by the queue sort's key. As soon as the plugin raises, or
returns a pod that does not wait, the heap replaces it until the profiles are loaded again. So a bug
of the plugin costs its own order, but no pod its attempt.

Bounds  one entry for each waiting pod.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, TypeVar

from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.queue.observer import QueueObserver
from asched.core.queue.queued import ActiveQueue, Heap, QueuedPod

SortKey = Callable[[Pod, float], Any]


class GuardedKey:
    """A key with a substitute. Reports only its first failure, because sorting compares often."""

    __slots__ = ("_guard", "has_failed", "substitute", "value")

    def __init__(self, guard: "Guard", value: Any, substitute: tuple[int, float]) -> None:
        self._guard = guard
        self.value = value
        self.substitute = substitute
        self.has_failed = value is guard

    def __eq__(self, other: object) -> bool:
        return self._compare(other, lambda left, right: left == right)

    def __lt__(self, other: object) -> bool:
        return self._compare(other, lambda left, right: left < right)

    def __hash__(self) -> int:
        return hash(self.substitute)

    def _compare(self, other: object, rule: Callable[[Any, Any], Any]) -> bool:
        assert isinstance(other, GuardedKey)
        if not (self.has_failed or other.has_failed):
            try:
                return bool(rule(self.value, other.value))
            except MISTAKES as error:  # a user's comparison may raise anything
                self.has_failed = True
                self._guard.report(error)
        return bool(rule(self.substitute, other.substitute))


class Guard:
    """Wraps the `sort_key` of one plugin."""

    def __init__(self, plugin: str, sort_key: SortKey, observer: QueueObserver) -> None:
        self._plugin = plugin
        self._sort_key = sort_key
        self._observer = observer

    def __call__(self, pod: Pod, timestamp_s: float) -> GuardedKey:
        value: Any
        try:
            value = self._sort_key(pod, timestamp_s)
        except MISTAKES as error:  # the queue must go on
            self.report(error)
            value = self  # marks a missing key
        return GuardedKey(self, value, (-pod.priority, timestamp_s))

    def report(self, error: BaseException) -> None:
        self._observer.plugin_raised(self._plugin, "queueSort", error)


T = TypeVar("T")


class _HeapEntry:
    """A pod in the heap. The pod's own `lane` is the guarded queue, so the heap needs another."""

    __slots__ = ("lane", "queued", "ticket")

    def __init__(self, queued: QueuedPod) -> None:
        self.lane: Any = None
        self.ticket = 0
        self.queued = queued


class GuardedQueue:
    """An `ActiveQueue` that wraps the queue that `make` makes."""

    def __init__(
        self, plugin: str, make: Callable[[], ActiveQueue], observer: QueueObserver
    ) -> None:
        self._plugin = plugin
        self._observer = observer
        self._entries: dict[QueuedPod, _HeapEntry] = {}
        self._heap: Heap[_HeapEntry] = Heap()
        self._own: ActiveQueue | None = None  # None once it has failed
        try:
            self._own = make()
        except MISTAKES as error:  # a user's class may raise anything
            self._report(error)

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, queued: QueuedPod, key: Any) -> None:
        entry = self._entries[queued] = _HeapEntry(queued)
        self._heap.push(entry, key)
        self._ask(lambda own: own.push(queued, key), lambda: None)
        queued.lane = self

    def discard(self, queued: QueuedPod) -> None:
        queued.lane = self._own  # as the plugin's `push` left it
        self._ask(lambda own: own.discard(queued), lambda: None)
        self._removed(queued)

    def head(self) -> QueuedPod | None:
        return self._given_out(lambda own: own.head())

    def pop(self) -> QueuedPod | None:
        if (head := self.head()) is not None:
            head.lane = self._own
        queued = self._given_out(lambda own: own.pop())
        if head is not None:
            head.lane = self
        if queued is not None:
            self._removed(queued)
        return queued

    def empty(self) -> list[QueuedPod]:
        for queued in self._entries:
            queued.lane = self._own
        removed = self._all_of(lambda own: own.empty())
        for queued in removed:
            self._removed(queued)
        return removed

    def in_order(self) -> list[QueuedPod]:
        return self._all_of(lambda own: own.in_order())

    def _ask(self, question: Callable[[ActiveQueue], T], otherwise: Callable[[], T]) -> T:
        if self._own is not None:
            try:
                return question(self._own)
            except MISTAKES as error:
                self._report(error)
        return otherwise()

    def _given_out(self, question: Callable[[ActiveQueue], QueuedPod | None]) -> QueuedPod | None:
        """The plugin's pod, which must wait here, or else the first pod of the heap."""

        def ask(own: ActiveQueue) -> QueuedPod | None:
            queued = question(own)
            if queued is not None and queued not in self._entries:
                raise LookupError(f"{queued!r} does not wait")
            return queued

        return self._ask(ask, self._first)

    def _first(self) -> QueuedPod | None:
        entry = self._heap.head()
        return None if entry is None else entry.queued

    def _all_of(self, question: Callable[[ActiveQueue], Iterable[QueuedPod]]) -> list[QueuedPod]:
        """All pods: those that the plugin lists in its order, then the rest."""

        def ask(own: ActiveQueue) -> dict[QueuedPod, None]:
            listed = islice(question(own), len(self._entries))
            return dict.fromkeys(queued for queued in listed if queued in self._entries)

        listed = self._ask(ask, dict[QueuedPod, None])
        by_key = (entry.queued for entry in self._heap.in_order())
        return [*listed, *(queued for queued in by_key if queued not in listed)]

    def _removed(self, queued: QueuedPod) -> None:
        queued.lane = None
        self._heap.discard(self._entries.pop(queued))

    def _report(self, error: BaseException) -> None:
        self._own = None
        self._observer.plugin_raised(self._plugin, "activeQueue", error)


class GuardedQueueFactory:
    """Makes guarded queues. Equal for the same plugin and queue class, so that a reload preserves
    the plugin's order.
    """

    def __init__(
        self, plugin: str, make: Callable[[], ActiveQueue], observer: QueueObserver
    ) -> None:
        self._made_of = plugin, make
        self._observer = observer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GuardedQueueFactory) and self._made_of == other._made_of

    def __hash__(self) -> int:
        return hash(self._made_of)

    def __call__(self) -> GuardedQueue:
        return GuardedQueue(*self._made_of, self._observer)
