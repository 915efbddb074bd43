"""Changes: what a fact altered, in the terms of the queue (upstream: cluster events).

A change is a resource and an action. One fact can cause several: a node update causes one for each
aspect that differs, in a fixed order, and none for a heartbeat.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/events.go,
pkg/scheduler/eventhandlers.go

Logs of changes in order, so that readers need not compare everything.

Readers keep a cursor and read the entries after it. The version of the logged data is the log's
`end`: equal ends mean no change. A cursor before the first entry, -2, is never valid.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import IntFlag
from itertools import islice
from typing import Final, Generic, NamedTuple, TypeVar

from msgspec import Struct

from asched.core.model.kinds import NODE, POD
from asched.core.model.meta import Record
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.quantity import parse

E = TypeVar("E")


class Action(IntFlag):
    """Bits of an action; their numeric order is part of matching."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8188
    ALL = 8191

    #: An enum's hash is a Python function, and every change is looked up by its action.
    __hash__ = int.__hash__


#: As upstream spells them, in upper camel case.
ACTION_TEXT: Final[Mapping[Action, str]] = {
    action: name.title().replace("_", "") for name, action in Action.__members__.items()
}

#: Resources of changes besides the names of kinds: pods with and without a node, and the wildcard.
ASSIGNED_POD: Final = "AssignedPod"
UNSCHEDULABLE_POD: Final = "UnschedulablePod"
WILDCARD: Final = "*"


class Trigger(NamedTuple):
    """(resource, action): what happened, or what a plugin registered for; `label` is its name in
    metrics.
    """

    resource: str
    action: Action
    custom_label: str = ""

    @property
    def label(self) -> str:
        return self.custom_label or self.resource + ACTION_TEXT.get(self.action, "")

    @property
    def is_wildcard(self) -> bool:
        return self.resource == WILDCARD and self.action == Action.ALL

    def matches(self, incoming: "Trigger") -> bool:
        """Whether an incoming trigger matches this registration."""
        same = self.resource in (WILDCARD, incoming.resource) or (
            self.resource == POD.resource and incoming.resource in (ASSIGNED_POD, UNSCHEDULABLE_POD)
        )
        return same and bool(self.action & incoming.action) and incoming.action <= self.action


SCHEDULE_ATTEMPT_FAILURE: Final = Trigger(WILDCARD, Action.ALL, "ScheduleAttemptFailure")
BACKOFF_COMPLETE: Final = Trigger(WILDCARD, Action.ALL, "BackoffComplete")
POP_FROM_BACKOFF_Q: Final = Trigger(WILDCARD, Action.ALL, "PopFromBackoffQ")
FORCE_ACTIVATE: Final = Trigger(WILDCARD, Action.ALL, "ForceActivate")
UNSCHEDULABLE_TIMEOUT: Final = Trigger(WILDCARD, Action.ALL, "UnschedulableTimeout")
ASSIGNED_POD_ADD: Final = Trigger(ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE: Final = Trigger(ASSIGNED_POD, Action.DELETE)
UNSCHEDULABLE_POD_ADD: Final = Trigger(UNSCHEDULABLE_POD, Action.ADD)
UNSCHEDULABLE_POD_UPDATE: Final = Trigger(UNSCHEDULABLE_POD, Action.UPDATE)
NODE_ADD: Final = Trigger(NODE.resource, Action.ADD)
#: A promise to a waiting pod was withdrawn or moved to another time.
RESERVATION_MOVED: Final = Trigger("Reservation", Action.DELETE)


class Change(Struct, frozen=True, gc=False):
    """One trigger with the versions of the object: None where it did not exist, or is not passed
    on.
    """

    trigger: Trigger
    old: Record | None = None
    new: Record | None = None
    #: Only pods of at most this priority are concerned (a withdrawn nomination); None for all.
    priority_at_most: int | None = None
    #: Upstream has no such change: it is treated as an extra event.
    only_if_fits: bool = False
    #: `old` is one of several equal pods that left: other nodes than its own have room, too.
    is_of_many: bool = False


def node_actions(old: Node, new: Node) -> list[Action]:
    """The aspects in which two versions of a node differ, in upstream's order; none for a
    heartbeat.
    """
    actions = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        actions.append(Action.UPDATE_NODE_TAINT)
    if _amounts(old.status.allocatable) != _amounts(new.status.allocatable):
        actions.append(Action.UPDATE_NODE_ALLOCATABLE)
    if (old.metadata.labels or {}) != (new.metadata.labels or {}):
        actions.append(Action.UPDATE_NODE_LABEL)
    if (old.spec.taints or ()) != (new.spec.taints or ()):
        actions.append(Action.UPDATE_NODE_TAINT)
    if _conditions(old) != _conditions(new):
        actions.append(Action.UPDATE_NODE_CONDITION)
    if (old.metadata.annotations or {}) != (new.metadata.annotations or {}):
        actions.append(Action.UPDATE_NODE_ANNOTATION)
    if (old.status.declared_features or ()) != (new.status.declared_features or ()):
        actions.append(Action.UPDATE_NODE_DECLARED_FEATURE)
    return actions


def _amounts(resources: Mapping[str, str | int | float] | None) -> dict[str, object]:
    return {name: parse(amount) for name, amount in (resources or {}).items()}


def _conditions(node: Node) -> dict[str, str]:
    return {c.type: c.status for c in node.status.conditions or ()}


def pod_actions(old: Pod, new: Pod, scaled_down: bool) -> list[Action]:
    """The aspects in which two versions of a pod differ; `[UPDATE]` without any.

    `scaled_down` says whether any request of the pod decreased (see `model/requests.py`).
    """
    actions = []
    if (old.metadata.labels or {}) != (new.metadata.labels or {}):
        actions.append(Action.UPDATE_POD_LABEL)
    if scaled_down:
        actions.append(Action.UPDATE_POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(old.spec.tolerations or ()) != len(new.spec.tolerations or ()):
        actions.append(Action.UPDATE_POD_TOLERATION)
    if (old.status.resource_claim_statuses or ()) != (new.status.resource_claim_statuses or ()):
        actions.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return actions or [Action.UPDATE]


#: Entries stored before the older half is dropped (readers then start again). A guess: 64 Ki
#: decisions between two reads of one reader.
LOG_ENTRIES_MAX: Final = 1 << 16


class ChangeLog(Generic[E]):
    """Entries of one kind; the oldest are dropped."""

    __slots__ = ("_base", "_entries", "_entries_max", "end")

    def __init__(self, entries_max: int | None = None) -> None:
        self._entries_max = entries_max or LOG_ENTRIES_MAX
        self._base = 0
        self._entries: list[E] = []
        #: grows with every entry; read-only
        self.end = 0

    def append(self, entry: E) -> None:
        self._entries.append(entry)
        self.end += 1
        if len(self._entries) > self._entries_max:
            cut = self._entries_max // 2
            del self._entries[:cut]
            self._base += cut

    def forget(self) -> None:
        """Make all cursors invalid: every reader starts again."""
        self._base = self.end = self.end + 2  # not by one, as for an entry
        self._entries.clear()

    def since(self, cursor: int) -> Sequence[E] | None:
        """The entries after the cursor; None if these have been dropped."""
        return self._entries[cursor - self._base :] if cursor >= self._base else None


class Reader(Generic[E]):
    """A reader with its own cursor."""

    __slots__ = ("_cursor", "_log")

    def __init__(self, log: ChangeLog[E]) -> None:
        self._log = log
        self._cursor = -1

    def unread(self) -> Sequence[E] | None:
        """The entries since the last call; None if unknown, as in the first call."""
        cursor, self._cursor = self._cursor, self._log.end
        return self._log.since(cursor)


class RowLog:
    """(row, aspects) of rows that changed; aspects are those of `nodes.Aspect`, as plain integers
    (combining enum members is slow).

    Of equal entries only the newest is kept: a class of pods that has waited long has missed
    thousands of changes, mostly of the same rows, and most readers read other aspects.
    """

    __slots__ = ("_base", "_ends", "_rows_max", "end", "last")

    def __init__(self, rows_max: int | None = None) -> None:
        self._rows_max = rows_max or LOG_ENTRIES_MAX
        self._base = 0
        #: aspects -> row -> `end` after its newest entry, the newest last
        self._ends: dict[int, dict[int, int]] = defaultdict(dict)
        #: grows with every entry; read-only
        self.end = 0
        #: the newest entry: all that a reader with the cursor `end` - 1 has missed
        self.last = (-1, 0)

    def add(self, row: int, aspects: int) -> None:
        self.last = (row, aspects)
        self.end += 1
        ends = self._ends[aspects]
        if row in ends:  # a new entry comes last
            del ends[row]
        ends[row] = self.end
        if len(ends) > self._rows_max:
            for oldest in list(islice(ends, self._rows_max // 2)):
                self._base = max(self._base, ends.pop(oldest))

    def forget(self) -> None:
        """Make all cursors invalid: every reader starts again."""
        self._base = self.end = self.end + 2  # not by one, as for an entry
        self._ends.clear()

    def rows(self, cursor: int, aspects: int) -> tuple[int, ...] | None:
        """Rows that changed in one of the aspects since the cursor; None if unknown. Calls nothing:
        each pod takes a dozen.
        """
        if cursor < self._base:
            return None
        found = dict[int, None]()
        for touched in self._ends:
            if touched & aspects:
                ends = self._ends[touched]
                for row in reversed(ends):
                    if ends[row] <= cursor:
                        break
                    found[row] = None
        return tuple(found)

    def touched(self, cursor: int) -> int | None:
        """All aspects in which any row changed since the cursor; None if unknown."""
        if cursor < self._base:
            return None
        found = 0
        for aspects, ends in self._ends.items():
            if ends[next(reversed(ends))] > cursor:
                found |= aspects
        return found


class ObjectLog(ChangeLog[tuple[str, str]]):
    """(resource, key) of every object that appeared, changed, was assumed or was deleted."""

    __slots__ = ()

    def add(self, resource: str, key: str) -> None:
        self.append((resource, key))
