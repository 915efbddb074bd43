"""Lists that come in parts: what may be seen at once, and what has to wait for the end.

Pods without a node wait, because they are to be seen in the order in which they were made; and
nothing is gone before the last part is known.
"""

from collections.abc import Container, Iterable
from typing import Any

from asched.core.model.kinds import POD, Kind
from asched.core.state.facts import Listed


class _Begun:
    """A list whose end is not known: keys that were seen, and pods that wait."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.waiting: dict[str, Any] = {}


class ListParts:
    """The lists under way, by kind."""

    def __init__(self) -> None:
        self._begun: dict[Kind, _Begun] = {}

    def take(self, fact: Listed) -> tuple[dict[str, Any], Container[str] | None]:
        """Objects to be seen now, by key; and, with the last part, the keys that are not gone."""
        kind = fact.kind
        objects: Iterable[Any] = fact.objects
        listed = {obj.metadata.key: obj for obj in objects}
        begun = self._begun.pop(kind, None)
        if begun is None or not fact.part:
            if not fact.has_more:
                return listed, listed.keys()
            begun = _Begun()
        waiting = begun.waiting
        if not fact.has_more:
            return {**waiting, **listed}, begun.seen | waiting.keys() | listed.keys()
        self._begun[kind] = begun
        for key, obj in list(listed.items()):
            if kind is POD and not obj.spec.node_name:
                waiting[key] = listed.pop(key)
            else:
                waiting.pop(key, None)
        begun.seen.update(listed)
        return listed, None
