"""What plugins register for: changes that may help a rejected pod, with queueing hints."""

from collections.abc import Callable, Collection, Hashable
from enum import Enum
from typing import Any, NamedTuple

from asched.core.cluster.changes import Trigger
from asched.core.model.pod import Pod


class Hint(Enum):
    """The result of a queueing hint: whether a change makes another attempt worthwhile."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


#: (the waiting pod, old version, new version) -> Hint. May raise: an error counts as QUEUE.
HintFunction = Callable[[Pod, Any, Any], Hint]


class Concerns(NamedTuple):
    """Keys that decide which pods a change can concern: if the keys of a waiting pod and of a
    change have nothing in common, the hint would return SKIP and is not called.

    The keys of thousands of waiting pods are indexed, so that a change visits only the pods it
    concerns. None: undecidable by keys, the hint is called. `sought` is called once for pods that
    no hint distinguishes, `offered` once per change with its old and new version; an exception
    counts as None. A key is derived from the pod or the object itself, never from other objects.
    `is_of_gang`: all pods of a gang have the same keys, and `sought` is never None; otherwise the
    hint is always called for a gang of several kinds of pods.
    """

    sought: Callable[[Pod], Collection[Hashable] | None]
    offered: Callable[[Any, Any], Collection[Hashable] | None]
    is_of_gang: bool = False


class Registration(NamedTuple):
    """A change a plugin registers for; without a function every such change causes an attempt."""

    trigger: Trigger
    hint: HintFunction | None = None
    concerns: Concerns | None = None
