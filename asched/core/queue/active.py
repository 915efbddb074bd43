"""What an active queue is: the order in which pods that may be tried are taken.

The default is a heap by the profile's queue sort (`lane.py`). A QueueSort plugin may bring another
(`active_queue`), which then sees every pod that comes, goes or changes its key: shares per
namespace, say. All profiles share one; the first one's counts, as its sort key does. What a user
brings stands behind a guard (`guarded_queue.py`).
"""

from collections.abc import Callable
from typing import Any, Protocol

from asched.core.queue.queued import QueuedPod


class ActiveQueue(Protocol):
    """Whoever takes a pod in sets `queued.lane` to itself, whoever lets it go sets it to None."""

    def __len__(self) -> int: ...

    def push(self, queued: QueuedPod, key: Any) -> None:
        """Take in a pod that stands nowhere; `key` is the queue sort's."""

    def discard(self, queued: QueuedPod) -> None:
        """Let a pod go that stands here. One whose key changed is discarded and pushed again."""

    def head(self) -> QueuedPod | None:
        """Who would be taken now; stays."""

    def pop(self) -> QueuedPod | None:
        """Who is taken now; leaves."""

    def empty(self) -> list[QueuedPod]:
        """Everybody leaves, in the order in which they would have been taken."""

    def in_order(self) -> list[QueuedPod]:
        """Everybody, as they would be taken if nothing changed; for listings."""


#: Makes an empty one.
MakeQueue = Callable[[], ActiveQueue]
