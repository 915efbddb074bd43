"""Concerned: which classes of a group a change can concern at all, by what their pods seek.

    each class of a group seeks keys       by what a registration says of one of its pods
    a change offers keys                   by the same registration
    the two have one in common             the class is asked its hints, like all that seek no keys
    they have none                         nobody looks at the class

Whatever is indexed is indexed when it is asked for first. Then a change that concerns nobody costs
a look-up for each of the registrations, as most do: where one pod waits for its spread, each pod of
others comes, is placed and goes.

Bounds  KEYS_MAX keys for a class and a registration; who seeks more is always asked. An index goes
        with its group.
"""

from collections.abc import Callable, Collection, Generator, Hashable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from asched.core.framework.points import Concerns
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.queue.queued import QueuedPod
from asched.core.state.changes import Change

if TYPE_CHECKING:
    from asched.core.queue.unschedulable import EquivalenceClass

#: A guess: terms and labels of a pod are a handful.
KEYS_MAX: Final = 64

Keys = Collection[Hashable] | None
_number: Final = attrgetter("number")


class Offers:
    """What one change offers, worked out once for all groups."""

    __slots__ = ("_change", "_offered")

    def __init__(self, change: Change) -> None:
        self._change = change
        self._offered: dict[Callable[..., Keys], Keys] = {}

    def of(self, concerns: Concerns) -> Keys:
        known = self._offered
        if concerns.offered not in known:
            known[concerns.offered] = _asked(concerns.offered, self._change.old, self._change.new)
        return known[concerns.offered]


class Concerned:
    """The indexes of one group."""

    __slots__ = ("_indexes",)

    def __init__(self) -> None:
        self._indexes: dict[Callable[[Pod], Keys], _Index] = {}

    def add(self, equals: "EquivalenceClass", example: QueuedPod) -> None:
        """A class joined the group."""
        for index in self._indexes.values():
            index.add(equals, example)

    def discard(self, equals: "EquivalenceClass") -> None:
        """A class left the group."""
        for index in self._indexes.values():
            index.discard(equals)

    def may_have(self, concerns: Concerns, offered: Collection[Hashable]) -> bool:
        """Whether a change that offers this may concern a class, as far as that is known. Raises
        TypeError if these are no keys.
        """
        index = self._indexes.get(concerns.sought)
        return index is None or bool(index.anyway) or not index.by_key.keys().isdisjoint(offered)

    def among(
        self,
        classes: "Mapping[Hashable, EquivalenceClass]",
        concerns: Collection[Concerns],
        offers: Offers,
    ) -> "Generator[tuple[()], None, Collection[EquivalenceClass]]":
        """Of the group's classes those that the change can concern, in the same order; after a step
        for each that has to be indexed.
        """
        found: dict[EquivalenceClass, None] = {}
        for one in concerns:
            offered = offers.of(one)
            if offered is None:
                return tuple(classes.values())
            index = self._indexes.get(one.sought)
            if index is None:
                index = self._indexes[one.sought] = _Index(one)
                for equals in tuple(classes.values()):
                    if len(equals):  # none of them went meanwhile
                        index.add(equals, next(iter(equals)))
                    yield ()
            if offered or index.anyway:
                found.update(index.candidates(offered))
        return sorted(found, key=_number) if found else ()


class _Index:
    """Classes by what they seek, after one registration."""

    __slots__ = ("_is_of_gang", "_keys", "_sought", "anyway", "by_key")

    def __init__(self, concerns: Concerns) -> None:
        self._sought, self._is_of_gang = concerns.sought, concerns.is_of_gang
        self.by_key: dict[Hashable, dict[EquivalenceClass, None]] = {}
        self.anyway: dict[EquivalenceClass, None] = {}
        self._keys: dict[EquivalenceClass, Collection[Hashable]] = {}

    def add(self, equals: "EquivalenceClass", example: QueuedPod) -> None:
        # A gang has pods of many classes; what the first of them seeks says nothing of the others.
        is_mixed = example.gang and not self._is_of_gang
        sought = None if is_mixed else _asked(self._sought, example.pod)
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


def _asked(tells: Callable[..., Keys], *about: object) -> Keys:
    """None if it raises, or says what are no keys: the hint is asked, and what that raises told."""
    try:
        keys = tells(*about)
        return frozenset(keys) if keys else keys
    except MISTAKES:
        return None
