"""Long lists that arrive in parts.

Pods without a node wait for the last part, so that they can be applied in the order of their
creation; what a list does not contain is deleted once its last part is known.

Bounds  LOOKED_AT_ONCE objects in a step: a hundred thousand take 30 ms.
"""

from collections.abc import Container, Generator, Iterator, Mapping
from typing import Any, Final

from asched.core.cluster.facts import Listed
from asched.core.model.kinds import POD, Kind

#: About as long as applying one object.
LOOKED_AT_ONCE: Final = 128


class _Begun:
    """An unfinished list: keys received, and pods that wait."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.waiting: dict[str, Any] = {}


class ListParts:
    """The unfinished lists, by kind."""

    def __init__(self) -> None:
        self._begun: dict[Kind, _Begun] = {}

    def take(
        self, fact: Listed
    ) -> Generator[None, None, tuple[dict[str, Any], Container[str] | None]]:
        """Objects to apply now, by key; and, with the last part, the keys of all existing objects.
        In steps.
        """
        kind, objects = fact.kind, fact.objects
        listed: dict[str, Any] = {}
        for start in range(0, len(objects), LOOKED_AT_ONCE):
            some: tuple[Any, ...] = objects[start : start + LOOKED_AT_ONCE]
            listed.update((obj.metadata.key, obj) for obj in some)
            yield
        begun = self._begun.pop(kind, None)
        if begun is None or not fact.part:
            if not fact.has_more:
                return listed, listed.keys()
            begun = _Begun()
        waiting, seen = begun.waiting, begun.seen
        if not fact.has_more:
            seen.update(waiting, listed)
            waiting.update(listed)
            return waiting, seen
        self._begun[kind] = begun
        for key, obj in list(listed.items()):
            if kind is POD and not obj.spec.node_name:
                waiting[key] = listed.pop(key)
            else:
                waiting.pop(key, None)
        seen.update(listed)
        return listed, None


def gone(known: Mapping[str, Any], staying: Container[str]) -> Iterator[Any]:
    """Objects that are not in a list any more; None for a step without any. The caller may drop
    each from `known` before the next.
    """
    for number, key in enumerate(tuple(known), 1):
        if key not in staying:
            yield known[key]
        elif not number % LOOKED_AT_ONCE:
            yield None
