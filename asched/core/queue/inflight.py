"""Pods in flight, and the changes they missed.

Between pop and return a pod hears nothing. What happens meanwhile is kept in one list, in which a
marker stands where each attempt began; a pod that comes back is judged by everything behind its
marker. Changes that no marker precedes are dropped.

Bounds  CHANGES_MAX changes. Beyond it the oldest go, and pods that would have needed them are
        treated as if one of them had helped. Once that is so for all of them, nothing is kept
        until another attempt begins: those that pause may stand here for seconds.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/queue/active_queue.go
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from itertools import count
from typing import Final

from asched.core.queue.queued import QueuedPod
from asched.core.state.changes import Change

#: Each pod that comes back is judged by all that it missed, and hundreds may come back together: a
#: hint takes some 5 µs, so a hundred pods take 50 ms at most. A pod that missed more is tried
#: once more, which costs less than to find out whether one of so many changes would have helped.
CHANGES_MAX: Final = 100
#: The label under which markers are counted.
POD_POPPED: Final = "PodPopped"


class InFlightPods:
    def __init__(self, changes_max: int = CHANGES_MAX) -> None:
        self._markers: OrderedDict[str, tuple[int, QueuedPod]] = OrderedDict()
        self._changes: deque[tuple[int, Change]] = deque()
        self._changes_max = changes_max
        self._positions = count(1)
        self._lost_position = 0
        #: nobody under way began behind the last change that is lost
        self._is_idle = True

    def __len__(self) -> int:
        return len(self._markers)

    @property
    def counts(self) -> Counter[str]:
        """How much of what is kept, by label; markers under POD_POPPED."""
        kept = Counter(change.trigger.label for _, change in self._changes)
        kept[POD_POPPED] = len(self._markers)
        return kept

    def __contains__(self, uid: str) -> bool:
        return uid in self._markers

    def pods(self) -> list[QueuedPod]:
        """Attempts under way, oldest first."""
        return [queued for _, queued in self._markers.values()]

    def start(self, queued: QueuedPod) -> None:
        uid = queued.pod.metadata.uid
        assert uid not in self._markers, f"{queued} is in flight already"
        self._markers[uid] = (next(self._positions), queued)
        self._is_idle = False

    def record(self, change: Change) -> None:
        """Keep a change if an attempt is under way that knows what it missed so far."""
        if self._is_idle:
            return
        self._changes.append((next(self._positions), change))
        if len(self._changes) > self._changes_max:
            self._lost_position = self._changes.popleft()[0]
            self._look_for_idleness()

    def _look_for_idleness(self) -> None:
        """The last to begin has missed least."""
        began = next(reversed(self._markers.values()))[0]
        self._is_idle = began < self._lost_position
        if self._is_idle:
            self._changes.clear()

    def changes_since(self, uid: str) -> list[Change] | None:
        """Changes since the attempt began, oldest first; None if that is not known."""
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
        """The attempt is over, or cannot be rejected any more. Unknown pods are ignored."""
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
        if oldest < self._lost_position:  # else nobody missed too much
            self._look_for_idleness()

    def entries(self) -> Iterator[QueuedPod | Change]:
        """Markers and changes in their order, oldest first; for listings."""
        merged: list[tuple[int, QueuedPod | Change]] = [*self._markers.values(), *self._changes]
        for _, entry in sorted(merged, key=lambda item: item[0]):
            yield entry
