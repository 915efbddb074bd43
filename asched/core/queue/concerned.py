"""Indexes that find the classes of a group which a change can concern, by keys.

    the sought keys of a class             a registration derives them from one of its pods
    the offered keys of a change           the same registration derives them from the objects
    a key in common, or no sought keys     the hints of the class are called
    no key in common                       the class is skipped

An index is built when it is first used. Afterwards a change that concerns no class costs one
look-up for each registration. Most changes are of this kind: while one pod waits for its spread,
many other pods are created, placed and deleted.

Bounds  KEYS_MAX keys for a class and a registration; the hints of a class with more keys are always
        called. An index is dropped with its group.

Due classes: unschedulable pods that a change may help, until a dry run shows whether they fit.

    a hint says that a change may help a class        the class is due
    its first pod would be popped next                a dry run of this pod
      it fits, or only an attempt can find out        it is tried, and its class stays due
      it would be rejected by the same plugins        the class is not due any more

    only an extra event may help a class              the same, but a pod for which a PostFilter
                                                      plugin might make room is not tried

So freed room is offered to one pod after the other, in the order of the queue, until no waiting pod
fits any more. Freed room causes no unnecessary attempt, however many pods wait for it. A pod that
fits is never left behind: its class stays due until a dry run rejects it, and a later change makes
the class due again.

Bounds  a class is due at most once.
Source  our own; kube-scheduler tries all these pods
"""

from collections.abc import Callable, Collection, Generator, Hashable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from asched.core.cluster.changes import Change
from asched.core.framework.points import Concerns
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.queue.queued import Heap, QueuedPod, Worth, is_backing_off

if TYPE_CHECKING:
    from asched.core.queue.unschedulable import EquivalenceClass, Order

#: A guess: terms and labels of a pod are a handful.
KEYS_MAX: Final = 64

Keys = Collection[Hashable] | None
_number: Final = attrgetter("number")


class Offers(dict[Callable[..., Keys], Keys]):
    """The keys that one change offers by a function of a registration, derived once for all
    groups.
    """

    def __init__(self, change: Change) -> None:
        super().__init__()
        self._change = change

    def __missing__(self, derive: Callable[..., Keys]) -> Keys:
        found = self[derive] = _keys(derive, self._change.old, self._change.new)
        return found


class ConcernIndexes:
    """The indexes of one group."""

    __slots__ = ("_indexes",)

    def __init__(self) -> None:
        self._indexes: dict[Callable[[Pod], Keys], _Index] = {}

    def add(self, equals: "EquivalenceClass", example: QueuedPod) -> None:
        """Index a class that was added to the group."""
        for index in self._indexes.values():
            index.add(equals, example)

    def discard(self, equals: "EquivalenceClass") -> None:
        """Remove a class that left the group."""
        for index in self._indexes.values():
            index.discard(equals)

    def may_have(self, concerns: Concerns, offered: Collection[Hashable]) -> bool:
        """Whether a change with these offered keys may concern a class; True without an index.
        Raises TypeError if the keys are not hashable.
        """
        index = self._indexes.get(concerns.sought)
        return index is None or bool(index.anyway) or not index.by_key.keys().isdisjoint(offered)

    def among(
        self,
        classes: "Mapping[Hashable, EquivalenceClass]",
        concerns: Collection[Concerns],
        offers: Offers,
    ) -> "Generator[tuple[()], None, Collection[EquivalenceClass]]":
        """Return the classes of the group that the change can concern, in the group's order. Yields
        after each class that is indexed.
        """
        found: dict[EquivalenceClass, None] = {}
        for concern in concerns:
            offered = offers[concern.offered]
            if offered is None:
                return tuple(classes.values())
            index = self._indexes.get(concern.sought)
            if index is None:
                index = self._indexes[concern.sought] = _Index(concern)
                for equals in tuple(classes.values()):
                    if len(equals):  # all of its pods may have left meanwhile
                        index.add(equals, next(iter(equals)))
                    yield ()
            if offered or index.anyway:
                found.update(index.candidates(offered))
        return sorted(found, key=_number) if found else ()


class _Index:
    """Classes by the keys that one registration derives."""

    __slots__ = ("_is_of_gang", "_keys", "_sought", "anyway", "by_key")

    def __init__(self, concerns: Concerns) -> None:
        self._sought, self._is_of_gang = concerns.sought, concerns.is_of_gang
        self.by_key: dict[Hashable, dict[EquivalenceClass, None]] = {}
        self.anyway: dict[EquivalenceClass, None] = {}
        self._keys: dict[EquivalenceClass, Collection[Hashable]] = {}

    def add(self, equals: "EquivalenceClass", example: QueuedPod) -> None:
        # A gang has pods of many classes, so the keys of one pod do not hold for the other pods.
        is_mixed = example.gang and not self._is_of_gang
        sought = None if is_mixed else _keys(self._sought, example.pod)
        if sought is None or len(sought) > KEYS_MAX:
            self.anyway[equals] = None
            return
        self._keys[equals] = sought
        for key in sought:
            self.by_key.setdefault(key, {})[equals] = None

    def discard(self, equals: "EquivalenceClass") -> None:
        self.anyway.pop(equals, None)
        for key in set(self._keys.pop(equals, ())):
            alike = self.by_key[key]
            del alike[equals]
            if not alike:
                del self.by_key[key]

    def candidates(self, offered: Collection[Hashable]) -> "dict[EquivalenceClass, None]":
        found = dict(self.anyway)
        for key in offered:
            found.update(self.by_key.get(key, _NONE))
        return found


_NONE: "Final[dict[EquivalenceClass, None]]" = {}


def _keys(derive: Callable[..., Keys], *objects: object) -> Keys:
    """Derive keys. None if that raises or returns no keys: then the hint is called, which reports
    an error of its own.
    """
    try:
        keys = derive(*objects)
        return frozenset(keys) if keys else keys
    except MISTAKES:
        return None


#: Dry runs for one pop (5 to 10 ms); classes that are still due then wait for the next turn.
LOOKS_MAX: Final = 32
#: Budget steps for a class that becomes due, or a pod that moves.
WAKE_STEPS: Final = 1.0


class DueReason(NamedTuple):
    """The worth of the change, and its label."""

    worth: Worth
    label: str


class Due:
    """Due classes in the order in which their first pods would be popped."""

    def __init__(self, order: "Order") -> None:
        self._order = order
        self._ready: Heap[EquivalenceClass] = Heap()
        self._backing_off: Heap[EquivalenceClass] = Heap()
        #: classes without a dry run before the end of their backoff
        self._patient: Heap[EquivalenceClass] = Heap()
        #: classes whose first pod may have changed
        self._moved: dict[EquivalenceClass, None] = {}

    def __len__(self) -> int:
        return self._ready.live + self._backing_off.live + self._patient.live + len(self._moved)

    def __iter__(self) -> "Iterator[EquivalenceClass]":
        yield from self._moved
        yield from self._ready.in_order()
        yield from self._backing_off.in_order()
        yield from self._patient.in_order()

    def add(self, equals: "EquivalenceClass", reason: DueReason) -> None:
        if equals.due is None or reason.worth > equals.due.worth:
            equals.due = reason
        equals.look_again()
        equals.is_patient = False
        self.moved(equals)

    def moved(self, equals: "EquivalenceClass") -> None:
        """Note that a pod of a due class was added or removed."""
        if equals.lane is not None:
            equals.lane.discard(equals)
        self._moved[equals] = None

    def drop(self, equals: "EquivalenceClass") -> None:
        """Note that a class is not due any more."""
        if equals.lane is not None:
            equals.lane.discard(equals)
        self._moved.pop(equals, None)
        equals.due = None

    def first(self, now_s: float) -> "EquivalenceClass | None":
        """The class with the first pod of all due pods without backoff."""
        self.file(now_s)
        return self._ready.head()

    def first_backing_off(self, now_s: float) -> "EquivalenceClass | None":
        """Of classes whose pods all back off, the class whose backoff ends first."""
        self.file(now_s)
        return self._backing_off.head()

    def next_deadline_s(self) -> float | None:
        """The end of the first backoff among filed classes, in seconds; None without backoff."""
        ends_s = []
        for heap in (self._backing_off, self._patient):
            equals = heap.head()
            first = equals.first(0.0) if equals is not None else None
            if first is not None and first.backoff_until_s is not None:
                ends_s.append(first.backoff_until_s + 1)
        return min(ends_s, default=None)

    def file(self, now_s: float) -> None:
        """Move each class to the heap that its first pod belongs to now."""
        for heap in (self._backing_off, self._patient):
            while (equals := heap.head()) is not None:
                first = equals.first(now_s)
                if first is not None and is_backing_off(first, now_s):
                    break
                self.moved(equals)
        for equals in self._moved:
            assert equals.due is not None
            first = equals.first(now_s)
            if first is None:
                equals.due = None
            elif equals.due.worth is not Worth.IMMEDIATELY and is_backing_off(first, now_s):
                is_patient = first.gang and (equals.is_patient or not first.may_be_early)
                heap = self._patient if is_patient else self._backing_off
                heap.push(equals, (first.backoff_until_s, self._order(first)))
            else:
                self._ready.push(equals, self._order(first))
        self._moved.clear()
