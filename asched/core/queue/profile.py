"""What the queue knows of a profile."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from asched.core.framework.points import Registration
from asched.core.model.pod import Pod
from asched.core.queue.active import MakeQueue
from asched.core.queue.lane import PodHeap

if TYPE_CHECKING:
    from asched.core.framework.points import PreEnqueuePlugin


class QueueProfile(msgspec.Struct, frozen=True):
    """What the queue knows of a profile: data, never a plugin by name.

    `registrations` are resolved (`hints.registered`). All profiles sort alike: the first one's key
    counts. `extra_events`: further changes, which a pod follows only if it fits at that moment:
    `blame` tells who stands against it then, None if nobody. `active_queue` makes the queue of
    those that may be tried.
    """

    sort_key: Callable[[Pod, float], Any]
    registrations: Mapping[str, Sequence[Registration]]
    pre_enqueue: Sequence["PreEnqueuePlugin"] = ()
    extra_events: Mapping[str, Sequence[Registration]] = msgspec.field(default_factory=dict)
    blame: Callable[[Pod, str], frozenset[str] | None] = lambda _pod, _left: None
    active_queue: MakeQueue = PodHeap
