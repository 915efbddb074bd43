"""Concerned: which classes of a group a change can concern at all, by what their pods seek.

    each class of a group seeks keys       by what a registration says of one of its pods
    a change offers keys                   by the same registration
    the two have one in common             the class is asked its hints, like all that seek no keys
    they have none                         nobody looks at the class

Whatever is indexed is indexed when it is asked for first, and for groups of many classes only, or
of those behind a gate: a handful is asked as quickly as it is looked up, unless the change offers
nothing at all, as most do. But each pod of a gang that comes would ask all before it.

Bounds  KEYS_MAX keys for a class and a registration; who seeks more is always asked. An index goes
        with its group.
"""

from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from asched.core.framework.points import Concerns
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.queue.queued import QueuedPod
from asched.core.state.changes import Change

if TYPE_CHECKING:
    from asched.core.queue.unschedulable import Equals

#: Fewer classes than this are all asked. A guess.
CLASSES_MIN: Final = 8
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
            known[concerns.offered] = asked(concerns.offered, self._change.old, self._change.new)
        return known[concerns.offered]

    def something(self, concerns: Iterable[Concerns]) -> bool:
        """Whether it may concern anybody who seeks keys."""
        for one in concerns:
            offered = self.of(one)
            if offered is None or offered:
                return True
        return False


class Concerned:
    """The indexes of one group."""

    __slots__ = ("_indexes",)

    def __init__(self) -> None:
        self._indexes: dict[Callable[[Pod], Keys], _Index] = {}

    def add(self, equals: "Equals", example: QueuedPod) -> None:
        """A class joined the group."""
        for index in self._indexes.values():
            index.add(equals, example)

    def discard(self, equals: "Equals") -> None:
        """A class left the group."""
        for index in self._indexes.values():
            index.discard(equals)

    def asks_nobody(self, concerns: Iterable[Concerns]) -> bool:
        """Whether it is known already that a change which offers nothing concerns no class."""
        for one in concerns:
            index = self._indexes.get(one.sought)
            if not one.is_of_gang and (index is None or index.anyway):
                return False
        return True

    def among(
        self,
        classes: "Mapping[Hashable, Equals]",
        concerns: Collection[Concerns],
        offers: Offers,
    ) -> "Generator[tuple[()], None, Collection[Equals]]":
        """Of the group's classes those that the change can concern, in the same order; after a step
        for each that has to be indexed.
        """
        found: dict[Equals, None] = {}
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

    __slots__ = ("_by_key", "_is_of_gang", "_keys", "_sought", "anyway")

    def __init__(self, concerns: Concerns) -> None:
        self._sought, self._is_of_gang = concerns.sought, concerns.is_of_gang
        self._by_key: dict[Hashable, dict[Equals, None]] = {}
        self.anyway: dict[Equals, None] = {}
        self._keys: dict[Equals, Collection[Hashable]] = {}

    def add(self, equals: "Equals", example: QueuedPod) -> None:
        # A gang has pods of many classes; what the first of them seeks says nothing of the others.
        is_mixed = example.gang and not self._is_of_gang
        sought = None if is_mixed else asked(self._sought, example.pod)
        if sought is None or len(sought) > KEYS_MAX:
            self.anyway[equals] = None
            return
        self._keys[equals] = sought
        for key in sought:
            self._by_key.setdefault(key, {})[equals] = None

    def discard(self, equals: "Equals") -> None:
        self.anyway.pop(equals, None)
        for key in set(self._keys.pop(equals, ())):
            alike = self._by_key[key]
            del alike[equals]
            if not alike:
                del self._by_key[key]

    def candidates(self, offered: Collection[Hashable]) -> "dict[Equals, None]":
        found = dict(self.anyway)
        for key in offered:
            found.update(self._by_key.get(key, _NONE))
        return found


_NONE: "Final[dict[Equals, None]]" = {}


def asked(tells: Callable[..., Keys], *about: object) -> Keys:
    """What `sought` or `offered` says; None if it raises."""
    try:
        return tells(*about)
    except MISTAKES:  # its hint is asked, and what that raises is told
        return None
