"""The queue's record of a pod, the heaps that order such records, backoff, and pods in flight.

A heap deletes lazily: a removed entry is stale, and dropped when it reaches the head. Entries with
equal keys keep the order in which they were added.

The backoff after a failed attempt doubles with each failure up to a limit. Consecutive errors are
counted apart from rejections, so that errors of the API server start with a short pause. Its end
is cut to the whole second: pods of one second return together, in queue order.

Pods in flight, between pop and return, are not notified of changes. Changes are recorded in one
list with a marker at the beginning of each attempt; a pod that returns is checked against all
changes behind its marker. Changes that no marker precedes are dropped.

Bounds  stale entries outnumber the live ones by STALE_MIN at most. CHANGES_MAX changes: beyond it
        the oldest are dropped, and pods that missed them are treated as if one had helped; once
        that holds for all pods in flight, none is recorded until another attempt begins, because
        paused attempts may be in flight for seconds.
Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/kube-scheduler/framework/types.go
        (QueuedPodInfo), pkg/scheduler/backend/queue/active_queue.go, backoff_queue.go
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from enum import IntEnum
from heapq import heapify, heappop, heappush, merge
from itertools import count
from math import floor
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from asched.core.cluster.changes import Change
from asched.core.cluster.pod_groups import group_key
from asched.core.model.pod import Pod

if TYPE_CHECKING:
    from asched.core.queue.unschedulable import RejectorGroup

NO_NAMES: frozenset[str] = frozenset()


class Worth(IntEnum):
    """What to do with a pod after a change; the greatest value wins. IF_IT_FITS: a dry run decides,
    and it is tried after its backoff.
    """

    SKIP = 0
    IF_IT_FITS = 1
    AFTER_BACKOFF = 2
    IMMEDIATELY = 3


class QueuedPod:
    """The record of a pod in the queue or in flight. Only the queue and dry runs write it.

    timestamp_s       when it last entered the queue: order, start of backoff and of the wait
    arrival           serial number of its entry: the order among pods with equal timestamps
    initial_attempt_s when it first became active; time behind gates does not count
    backoff_until_s   whole second up to which it backs off; None for a pod without a failure, and
                      in flight
    rejected_by       plugins that rejected the last attempt, and the one that gates it
    pending_on        plugins that returned Pending: a change of theirs skips the backoff
    gated_by          the plugin that gates it, or ""
    pause_s           the shortest backoff after its last failure
    is_patient        it had a place and was rejected later: its backoff is never cut short
    is_promised       its last attempt found room that victims have to leave first, or that may be
                      made later: it returns after its backoff
    was_early         the last attempt at its group was made before the end of its backoff
    woken_by          label of the change that woke it last
    was_flushed       it was tried again only because it had waited too long
    class_key         equal for pods for which all hints return the same; None shares nothing
    gang              key of the group that it is tried with, or ""
    needs             requirements of its class on a node, with their version; None until computed
    """

    __slots__ = (
        "arrival",
        "attempts",
        "backoff_until_s",
        "class_key",
        "consecutive_errors",
        "gang",
        "gated_by",
        "group",
        "initial_attempt_s",
        "is_patient",
        "is_promised",
        "key",
        "lane",
        "needs",
        "pause_s",
        "pending_on",
        "pod",
        "rejected_by",
        "ticket",
        "timestamp_s",
        "unschedulable_count",
        "was_early",
        "was_flushed",
        "woken_by",
    )

    def __init__(self, pod: Pod, now_s: float) -> None:
        self.pod = pod
        self.key = pod.key
        self.class_key: Hashable | None = None
        self.gang = ""
        self.timestamp_s = now_s
        self.arrival = 0
        self.attempts = 0
        self.unschedulable_count = 0
        self.consecutive_errors = 0
        self.initial_attempt_s: float | None = None
        self.backoff_until_s: float | None = None
        self.rejected_by = NO_NAMES
        self.pending_on = NO_NAMES
        self.gated_by = ""
        self.pause_s = 0.0
        self.is_patient = self.is_promised = False
        self.was_flushed = self.was_early = False
        self.woken_by = ""
        self.needs: tuple[Hashable, Any] | None = None
        # Its place: in a heap with a ticket, or unschedulable in a group (where a heap orders equal
        # pods); neither while in flight.
        self.lane: PodHeap | None = None
        self.ticket = 0
        self.group: RejectorGroup | None = None

    @property
    def rejectors(self) -> frozenset[str]:
        """All plugins whose hints are called."""
        return self.rejected_by | self.pending_on if self.pending_on else self.rejected_by

    @property
    def may_be_early(self) -> bool:
        """Whether freed room ends the backoff of a rejected pod of a group: once, until its backoff
        has ended, because a dry run of a group does not check all rules.
        """
        is_held = self.is_patient or self.is_promised or self.pause_s > 0
        return bool(self.rejectors) and not (is_held or self.was_early)

    @property
    def stands_apart(self) -> bool:
        """Whether the pod's attempts may differ from those of other pods of its class."""
        pod = self.pod
        return (
            self.is_patient
            or self.is_promised
            or bool(pod.status.nominated_node_name)
            or (not self.gang and bool(group_key(pod)))
        )

    @property
    def is_gated(self) -> bool:
        return bool(self.gated_by)

    def __repr__(self) -> str:
        return f"QueuedPod({self.key}, attempts={self.attempts})"


#: Hundreds of pods may return together, each checked against all changes that it missed. A hint
#: takes some 5 µs, so a hundred pods take 50 ms at most. A pod that missed more changes is tried
#: once more, which costs less than the hints.
CHANGES_MAX: Final = 100
#: The label under which markers are counted.
POD_POPPED: Final = "PodPopped"


class InFlightPods:
    def __init__(self) -> None:
        self._markers: OrderedDict[str, tuple[int, QueuedPod]] = OrderedDict()
        self._changes: deque[tuple[int, Change]] = deque()
        self._positions = count(1)
        self._lost_position = 0
        #: every attempt in flight has missed a dropped change, or there is none
        self._is_idle = True

    def __len__(self) -> int:
        return len(self._markers)

    @property
    def counts(self) -> Counter[str]:
        """The number of recorded changes by label; markers under POD_POPPED."""
        recorded = Counter(change.trigger.label for _, change in self._changes)
        recorded[POD_POPPED] = len(self._markers)
        return recorded

    def __contains__(self, uid: str) -> bool:
        return uid in self._markers

    def pods(self) -> list[QueuedPod]:
        """The pods in flight, oldest attempt first."""
        return [queued for _, queued in self._markers.values()]

    def start(self, queued: QueuedPod) -> bool:
        """Begin an attempt; False if the pod is in flight already."""
        uid = queued.pod.metadata.uid
        if uid in self._markers:
            return False
        self._markers[uid] = (next(self._positions), queued)
        self._is_idle = False
        return True

    def record(self, change: Change) -> None:
        """Record a change if an attempt is in flight whose missed changes are all recorded."""
        if self._is_idle:
            return
        self._changes.append((next(self._positions), change))
        if len(self._changes) > CHANGES_MAX:
            self._lost_position = self._changes.popleft()[0]
            self._update_is_idle()

    def _update_is_idle(self) -> None:
        """Set `_is_idle` by the newest attempt, which has missed the fewest changes."""
        began = next(reversed(self._markers.values()))[0]
        self._is_idle = began < self._lost_position
        if self._is_idle:
            self._changes.clear()

    def changes_since(self, uid: str) -> list[Change] | None:
        """The changes since the attempt began, oldest first; None if some were dropped."""
        marker = self._markers.get(uid)
        if marker is None or marker[0] < self._lost_position:
            return None
        missed = []
        for position, change in reversed(self._changes):
            if position < marker[0]:
                break
            missed.append(change)
        missed.reverse()
        return missed

    def done(self, uid: str) -> None:
        """Note that the attempt ended, or cannot be rejected any more. Ignores unknown pods."""
        if self._markers.pop(uid, None) is None:
            return
        if not self._markers:
            self._is_idle = True
            if self._changes:
                self._changes.clear()
            return
        oldest = next(iter(self._markers.values()))[0]
        while self._changes and self._changes[0][0] < oldest:
            self._changes.popleft()
        if oldest < self._lost_position:  # else all missed changes are recorded
            self._update_is_idle()

    def entries(self) -> Iterator[QueuedPod | Change]:
        """Yield markers and changes, oldest first, for listings."""
        merged: list[tuple[int, QueuedPod | Change]] = [*self._markers.values(), *self._changes]
        for _, entry in sorted(merged, key=lambda item: item[0]):
            yield entry


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
