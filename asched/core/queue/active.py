"""The interface of the active queue, which orders the pods that may be tried.

The default is a heap by the profile's queue sort (`lane.py`). A QueueSort plugin may provide
another queue (`active_queue`), which then receives every pod that is added, removed or changes its
key, for example to share attempts between namespaces. All profiles use the active queue and the
sort key of the first profile. A user's queue is wrapped in a `GuardedQueue` (`guarded.py`).
"""

from collections.abc import Callable
from typing import Any, Protocol

from asched.core.queue.queued import QueuedPod


class ActiveQueue(Protocol):
    """A queue that adds a pod sets `queued.lane` to itself; on removal it sets it to None."""

    def __len__(self) -> int: ...

    def push(self, queued: QueuedPod, key: Any) -> None:
        """Add a pod that is in no queue; `key` is the queue sort's."""

    def discard(self, queued: QueuedPod) -> None:
        """Remove a pod of this queue. A pod whose key changed is discarded and pushed again."""

    def head(self) -> QueuedPod | None:
        """The pod that `pop` would return."""

    def pop(self) -> QueuedPod | None:
        """Remove and return the next pod."""

    def empty(self) -> list[QueuedPod]:
        """Remove and return all pods, in the order of `pop`."""

    def in_order(self) -> list[QueuedPod]:
        """All pods in the order of `pop`, for listings."""


#: Makes an empty active queue.
MakeQueue = Callable[[], ActiveQueue]
