"""A lane: waiting pods in the order in which they will be popped.

A heap with lazy deletion: a removed entry is marked as stale, and dropped when it reaches the head.
Pods with equal keys keep the order in which they were added.

Bounds  stale entries never outnumber the live ones by more than STALE_MIN.

Backoff: the pause between a failed attempt and the next.

The pause doubles with each failure up to a limit. Consecutive errors are counted separately from
rejections, so that errors of the API server start with a short pause, and rejections continue with
theirs. The end of a pause is cut to the whole second: pods of one second return together, in queue
order.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/queue/backoff_queue.go
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush, merge
from itertools import count
from math import floor
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from asched.core.queue.queued import QueuedPod

#: Below this many stale entries a rebuild costs more than it saves (a guess; a rebuild is linear).
STALE_MIN: Final = 64
#: Entries sorted in one step: 50 µs. A hundred thousand at once would take 100 ms.
SORTED_AT_ONCE: Final = 32


class Waiter(Protocol):
    """An entry of a heap, with a reference to the heap and its ticket there."""

    lane: Any
    ticket: int


T = TypeVar("T")
W = TypeVar("W", bound=Waiter)


class Heap(Generic[W]):
    def __init__(self) -> None:
        self._heap: list[tuple[Any, int, W]] = []
        self._tickets = count(1)
        #: number of entries that are not stale
        self.live = 0

    def __len__(self) -> int:
        return self.live

    def push(self, queued: W, key: Any) -> None:
        """Add an entry that is in no lane. Smaller keys go first."""
        assert queued.lane is None, f"{queued} is in a lane already"
        queued.lane = self
        queued.ticket = ticket = next(self._tickets)
        self.live += 1
        heappush(self._heap, (key, ticket, queued))

    def discard(self, queued: W) -> None:
        assert queued.lane is self, f"{queued} is not in this lane"
        queued.lane = None
        self.live -= 1
        if len(self._heap) > 2 * self.live + STALE_MIN:
            self._heap = [entry for entry in self._heap if self._is_live(entry)]
            heapify(self._heap)

    def head(self) -> W | None:
        heap = self._heap
        while heap:
            if self._is_live(heap[0]):
                return heap[0][2]
            heappop(heap)
        return None

    def pop(self) -> W | None:
        queued = self.head()
        if queued is not None:
            heappop(self._heap)
            queued.lane = None
            self.live -= 1
        return queued

    def empty(self) -> list[W]:
        """Remove and return all entries, in the order of `pop`."""
        removed = self.in_order()
        self._heap.clear()
        self.live = 0
        for queued in removed:
            queued.lane = None
        return removed

    def in_order(self) -> list[W]:
        """All entries in the order of `pop`; for listings, not for the hot path."""
        return [queued for queued in self.in_order_by_steps() if queued is not None]

    def in_order_by_steps(self) -> Iterator[W | None]:
        """Yield the same one by one, without entries that are removed meanwhile."""
        for entry in sorted_by_steps(tuple(self._heap), _order, self._is_live):
            if entry is None:
                yield None
            elif self._is_live(entry):
                yield entry[2]

    def _is_live(self, entry: tuple[Any, int, W]) -> bool:
        return entry[2].lane is self and entry[2].ticket == entry[1]


class PodHeap(Heap[QueuedPod]):
    """A heap of pods."""


def sorted_by_steps(
    many: Sequence[T], key: Callable[[T], Any], which: Callable[[T], bool]
) -> Iterator[T | None]:
    """Yield the items for which `which` is true, sorted by key; None for a step that only sorts."""
    parts: list[list[T]] = []
    for start in range(0, len(many), SORTED_AT_ONCE):
        parts.append(sorted(filter(which, many[start : start + SORTED_AT_ONCE]), key=key))
        yield None
    yield from merge(*parts, key=key)


def _order(entry: tuple[Any, int, Any]) -> tuple[Any, int]:
    return entry[:2]


#: podInitialBackoffSeconds and podMaxBackoffSeconds unless configured.
INITIAL_BACKOFF_S: Final = 1.0
MAX_BACKOFF_S: Final = 10.0
#: 2 ** 62 initial pauses exceed any limit; beyond it only floats would overflow.
DOUBLINGS_MAX: Final = 62


class BackoffTimes(NamedTuple):
    initial_s: float = INITIAL_BACKOFF_S
    max_s: float = MAX_BACKOFF_S

    def duration_s(self, failures: int) -> float:
        """The pause after this number of failures. A limit of 0 switches backoff off."""
        if failures <= 0:
            return 0.0
        return min(self.initial_s * 2.0 ** min(failures - 1, DOUBLINGS_MAX), self.max_s)

    def until_s(self, queued: QueuedPod) -> float | None:
        """The whole second up to which the pod backs off; None without backoff."""
        pause_s = self.duration_s(queued.consecutive_errors or queued.unschedulable_count)
        pause_s = max(pause_s, queued.pause_s)
        return float(floor(queued.timestamp_s + pause_s)) if pause_s > 0 else None


def is_backing_off(queued: QueuedPod, now_s: float) -> bool:
    """Whether the pod backs off, up to the end of the second in which its pause ends."""
    return queued.backoff_until_s is not None and queued.backoff_until_s >= floor(now_s)
