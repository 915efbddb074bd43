"""Pods in flight, between pop and return, and the changes that they miss.

Pods in flight are not notified of changes. Changes are recorded in one list with a marker at the
beginning of each attempt; a pod that returns is checked against all changes behind its marker.
Changes that no marker precedes are dropped.

Bounds  CHANGES_MAX changes: beyond it the oldest are dropped, and pods that missed them are treated
        as if one had helped; once that holds for all pods in flight, none is recorded until another
        attempt begins, because paused attempts may be in flight for seconds.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/queue/active_queue.go
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from itertools import count
from typing import Final

from asched.core.cluster.changes import Change
from asched.core.queue.queued import QueuedPod

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
