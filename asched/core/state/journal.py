"""What was before each change of the cluster: enough to tell how things were at a decision.

    position ──decision──> ... changes ... ──> now      going back from now, change by change, gives
                                                        what the decision saw

A step says what an object was before: of a pod also on which node it counted, of an object the
version of ours if one stood in for it. Waiting pods, promises to them and held room are no part of
it. Suppositions leave nothing.

Bounds  STEPS_MAX steps, and BYTES_MAX of objects that nobody else holds any more; the oldest go. A
        pod counts by the key of its class, which holds all of its spec, others by their JSON.
"""

from collections import deque
from collections.abc import Iterator
from itertools import islice, starmap
from typing import Any, Final, NamedTuple

import msgspec

from asched.core.model.kinds import NODE, POD, Kind
from asched.core.model.meta import Record
from asched.core.model.node import Node
from asched.core.state.pods import PodInfo

#: The last 100,000 attempts where each pod comes and goes: 90 bytes each.
STEPS_MAX: Final = 1 << 18
#: As much as histories are given.
BYTES_MAX: Final = 64 << 20

_encode: Final = msgspec.msgpack.Encoder().encode


class Step(NamedTuple):
    """`before`: the object until then, None if there was none; `node`: where a pod counted."""

    kind: Kind
    key: str
    before: Any
    node: str
    size: int


class Journal:
    """Steps by position, which only grows."""

    __slots__ = ("_bytes", "_steps", "_steps_max", "end")

    def __init__(self, steps_max: int = STEPS_MAX) -> None:
        self._steps: deque[tuple[Kind, str, Any, str, int]] = deque()
        self._steps_max = steps_max
        self._bytes = 0
        #: where the next step goes
        self.end = 0

    def note(
        self, kind: Kind, key: str, before: Record | None, node: str = "", size: int = -1
    ) -> None:
        """`size` of `before` in bytes, where it is known."""
        if size < 0:
            size = 0 if before is None else len(_encode(before))
        steps = self._steps
        steps.append((kind, key, before, node, size))
        self.end += 1
        self._bytes += size
        while len(steps) > self._steps_max or self._bytes > BYTES_MAX:
            self._bytes -= steps.popleft()[4]

    def pod_comes(self, uid: str) -> None:
        """A pod is about to count that counted nowhere: the step of every decision."""
        steps = self._steps
        steps.append((POD, uid, None, "", 0))
        self.end += 1
        if len(steps) > self._steps_max:
            self._bytes -= steps.popleft()[4]

    def pod_moves(self, info: PodInfo) -> None:
        """A pod is about to count elsewhere, otherwise, or nowhere."""
        self.note(POD, info.pod.uid, info.pod, info.node_name, len(info.cls.key))

    def node_seen(self, old: Node | None, node: Node) -> None:
        """A node is about to be this one; a heartbeat changes nothing."""
        if old is None or (old.spec, old.status, old.labels) != (
            node.spec,
            node.status,
            node.labels,
        ):
            self.note(NODE, node.name, old)

    def back_to(self, end: int) -> None:
        """Forget what was noted since, and undone."""
        while self.end > end and self._steps:
            self._bytes -= self._steps.pop()[4]
            self.end -= 1

    def remembers(self, position: int) -> bool:
        """Whether everything since a position is kept."""
        return position >= self.end - len(self._steps)

    def since(self, position: int) -> Iterator[Step]:
        """The steps since a position, the newest first; those that come meanwhile are not among
        them.
        """
        return starmap(Step, list(islice(reversed(self._steps), self.end - position)))
