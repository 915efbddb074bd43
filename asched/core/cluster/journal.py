"""The journal of changes: the previous versions of objects, to rebuild the state at a decision.

    position ──decision──> ... changes ... ──> now      undoing the changes from now back to the
                                                        position gives the state of the decision

A step has an object's previous version: for a pod also the node it counted on, for other objects
the assumed version if there was one. Waiting pods, promises to them and holds are not recorded, nor
are suppositions.

Bounds  STEPS_MAX steps, and BYTES_MAX of memory; the oldest are dropped. The spec of pods of one
        class is stored, and counted, once.
"""

from collections import deque
from collections.abc import Iterator
from itertools import islice, starmap
from sys import getsizeof
from typing import Any, Final, NamedTuple

from asched.core.cluster.pods import PodInfo
from asched.core.model.footprint import footprint
from asched.core.model.kinds import NODE, POD, Kind
from asched.core.model.meta import Record
from asched.core.model.node import Node
from asched.core.model.pod import Pod

STEPS_MAX: Final = 1 << 18
#: The same limit as for histories.
BYTES_MAX: Final = 64 << 20

#: Size of a step with its entry in the queue.
STEP_BYTES: Final = 100


class JournalStep(NamedTuple):
    """`before`: the previous object, or None; `node`: where a pod counted."""

    kind: Kind
    key: str
    before: Any
    node: str


class Journal:
    """Steps by position, which only grows."""

    def __init__(self, steps_max: int = STEPS_MAX) -> None:
        #: parts of a `JournalStep`, its own bytes, number of the class whose spec it refers to
        self._steps: deque[tuple[Kind, str, Any, str, int, int]] = deque()
        self._steps_max = steps_max
        #: number of a class -> (steps that refer to its spec, bytes of that)
        self._specs: dict[int, tuple[int, int]] = {}
        self._bytes = 0
        #: position of the next step
        self.end = 0

    def note(self, kind: Kind, key: str, before: Record | None, node: str = "") -> None:
        """An object is about to change, or to be deleted."""
        self._add(kind, key, before, node, STEP_BYTES + footprint(before))

    def pod_comes(self, uid: str) -> None:
        """A pod is about to be counted for the first time: the step of every decision."""
        self._add(POD, uid, None, "", STEP_BYTES)

    def pod_moves(self, info: PodInfo, record: Pod) -> None:
        """A pod is about to count elsewhere, differently, or no more. `record`: the parts that
        rules read, with the spec of its class.
        """
        number = info.cls.number
        count, size = self._specs.get(number) or (0, footprint(record.spec))
        self._specs[number] = count + 1, size
        self._bytes += 0 if count else size
        own = STEP_BYTES + getsizeof(record.spec) + footprint((record.metadata, record.status))
        self._add(POD, info.pod.uid, record, info.node_name, own, number)

    def _add(
        self, kind: Kind, key: str, before: Any, node: str, size: int, number: int = -1
    ) -> None:
        steps = self._steps
        steps.append((kind, key, before, node, size, number))
        self.end += 1
        self._bytes += size
        while self._bytes > BYTES_MAX or len(steps) > self._steps_max:
            self._dropped(*steps.popleft()[4:])

    def _dropped(self, size: int, number: int) -> None:
        self._bytes -= size
        if number >= 0:
            count, shared = self._specs[number]
            if count > 1:
                self._specs[number] = count - 1, shared
            else:
                del self._specs[number]
                self._bytes -= shared

    def node_seen(self, old: Node | None, node: Node) -> None:
        """A node is about to change; a heartbeat is not recorded."""
        if old is None or (old.spec, old.status, old.labels) != (
            node.spec,
            node.status,
            node.labels,
        ):
            self.note(NODE, node.name, old)

    def back_to(self, end: int) -> None:
        """Drop the steps after this position, which have been undone."""
        while self.end > end and self._steps:
            self._dropped(*self._steps.pop()[4:])
            self.end -= 1

    def remembers(self, position: int) -> bool:
        """Whether everything since a position is stored."""
        return position >= self.end - len(self._steps)

    def since(self, position: int) -> Iterator[JournalStep]:
        """The steps since a position, newest first; steps added meanwhile are not included."""
        steps = islice(reversed(self._steps), self.end - position)
        return starmap(JournalStep, [step[:4] for step in steps])
