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
"""

from collections.abc import Callable, Collection, Generator, Hashable, Mapping
from operator import attrgetter
from typing import Final

from asched.core.cluster.changes import Change
from asched.core.framework.registrations import Concerns
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.queue.equivalence import EquivalenceClass
from asched.core.queue.queued import QueuedPod

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
        keys = self[derive] = _keys(derive, self._change.old, self._change.new)
        return keys


class ConcernIndexes:
    """The indexes of one group."""

    __slots__ = ("_indexes",)

    def __init__(self) -> None:
        self._indexes: dict[Callable[[Pod], Keys], _Index] = {}

    def add(self, equals: EquivalenceClass, example: QueuedPod) -> None:
        """Index a class that was added to the group."""
        for index in self._indexes.values():
            index.add(equals, example)

    def discard(self, equals: EquivalenceClass) -> None:
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
        classes: Mapping[Hashable, EquivalenceClass],
        concerns: Collection[Concerns],
        offers: Offers,
    ) -> Generator[tuple[()], None, Collection[EquivalenceClass]]:
        """Return the classes of the group that the change can concern, in the group's order. Yields
        after each class that is indexed.
        """
        concerned: dict[EquivalenceClass, None] = {}
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
                concerned.update(index.candidates(offered))
        return sorted(concerned, key=_number) if concerned else ()


class _Index:
    """Classes by the keys that one registration derives."""

    __slots__ = ("_is_of_gang", "_keys", "_sought", "anyway", "by_key")

    def __init__(self, concerns: Concerns) -> None:
        self._sought, self._is_of_gang = concerns.sought, concerns.is_of_gang
        self.by_key: dict[Hashable, dict[EquivalenceClass, None]] = {}
        self.anyway: dict[EquivalenceClass, None] = {}
        self._keys: dict[EquivalenceClass, Collection[Hashable]] = {}

    def add(self, equals: EquivalenceClass, example: QueuedPod) -> None:
        # A gang has pods of many classes, so the keys of one pod do not hold for the other pods.
        is_mixed = example.gang and not self._is_of_gang
        sought = None if is_mixed else _keys(self._sought, example.pod)
        if sought is None or len(sought) > KEYS_MAX:
            self.anyway[equals] = None
            return
        self._keys[equals] = sought
        for key in sought:
            self.by_key.setdefault(key, {})[equals] = None

    def discard(self, equals: EquivalenceClass) -> None:
        self.anyway.pop(equals, None)
        for key in set(self._keys.pop(equals, ())):
            alike = self.by_key[key]
            del alike[equals]
            if not alike:
                del self.by_key[key]

    def candidates(self, offered: Collection[Hashable]) -> dict[EquivalenceClass, None]:
        concerned = dict(self.anyway)
        for key in offered:
            concerned.update(self.by_key.get(key, _NONE))
        return concerned


_NONE: Final[dict[EquivalenceClass, None]] = {}


def _keys(derive: Callable[..., Keys], *objects: object) -> Keys:
    """Derive keys. None if that raises or returns no keys: then the hint is called, which reports
    an error of its own.
    """
    try:
        keys = derive(*objects)
        return frozenset(keys) if keys else keys
    except MISTAKES:
        return None
