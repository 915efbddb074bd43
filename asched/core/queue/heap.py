"""A heap that deletes lazily, for waiting pods and for due classes.

A removed entry is stale, and dropped when it reaches the head. Entries with equal keys keep the
order in which they were added.

Bounds  stale entries outnumber the live ones by STALE_MIN at most.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush, merge
from itertools import count
from typing import Any, Final, Generic, Protocol, TypeVar

T = TypeVar("T")

#: Below this many stale entries a rebuild costs more than it saves (a guess; a rebuild is linear).
STALE_MIN: Final = 64
#: Entries sorted in one step: 50 µs. A hundred thousand at once would take 100 ms.
SORTED_AT_ONCE: Final = 32
#: Budget steps for such a step, and for a pod that is checked.
SORT_STEPS: Final = 6.0
CHECK_STEPS: Final = 0.3


class Waiter(Protocol):
    """An entry of a heap, with a reference to the heap and its ticket there."""

    heap: Any
    ticket: int


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
        """Add an entry that is in no heap. Smaller keys go first."""
        assert queued.heap is None, f"{queued} is in a heap already"
        queued.heap = self
        queued.ticket = ticket = next(self._tickets)
        self.live += 1
        heappush(self._heap, (key, ticket, queued))

    def discard(self, queued: W) -> None:
        assert queued.heap is self, f"{queued} is not in this heap"
        queued.heap = None
        self.live -= 1
        if len(self._heap) > 2 * self.live + STALE_MIN:
            self._heap = [entry for entry in self._heap if self._is_live(entry)]
            heapify(self._heap)

    def head(self) -> W | None:
        heap = self._heap
        while heap:
            _, ticket, queued = heap[0]
            if queued.heap is self and queued.ticket == ticket:  # as `_is_live`, for every pod
                return queued
            heappop(heap)
        return None

    def pop(self) -> W | None:
        queued = self.head()
        if queued is not None:
            heappop(self._heap)
            queued.heap = None
            self.live -= 1
        return queued

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
        return entry[2].heap is self and entry[2].ticket == entry[1]


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
