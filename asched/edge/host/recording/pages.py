"""Turns to bytes, piece by piece while all that is written is at hand: what the machine is told
just before it reads it, what it asks for as it does. Later the processor would have to fetch it
again, which takes longer than the writing.

Bounds  LIST_PART objects a line; PAGE_BYTES of lines on a page.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from asched.core.framework.effects import Effect
from asched.core.state.facts import Bound, Fact, Listed, Seen
from asched.edge.host.recording.lines import Turn, encoder, is_recorded, of_effect, of_fact

LIST_PART: Final = 256
#: Some 250 bindings: it is packed at a time, and a turn that is longer has a page to itself.
PAGE_BYTES: Final = 1 << 18


class _Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first part of a turn's line."""

    at: float
    idle: bool = False
    facts: list[Any] = []


class Asked(list[Effect]):
    """A turn's effects, each made bytes of as it comes. `trouble`: what came between, our bug."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[bytes] = []
        self.trouble: Exception | None = None

    def append(self, effect: Effect) -> None:
        super().append(effect)
        if is_recorded(effect):
            try:
                self.parts.append(encoder.encode(of_effect(effect)))
            except Exception as error:  # noqa: BLE001 - it costs the recording and no more
                self.trouble = error

    def extend(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self.append(effect)


def turn_lines(turn: Turn) -> Iterator[bytes]:
    """The turn, after what of its lists is too long for it."""
    if has_lists(turn.facts):
        for number, fact in enumerate(turn.facts):
            if isinstance(fact, Listed):
                yield from _list_lines(number, fact)
    asked = Asked()
    asked.extend(turn.effects)
    told = told_part(turn.at_s, turn.facts, is_active=turn.is_active)
    yield turn_line(told, asked, turn.went_on)


def has_lists(facts: Iterable[Fact]) -> bool:
    """Whether there are lines before the turn's own."""
    return Listed in map(type, facts)


def told_part(at_s: float, facts: Sequence[Fact], *, is_active: bool) -> bytes:
    """The beginning of a turn's line."""
    told = [
        ("Seen", fact.kind.resource, fact.obj)
        if type(fact) is Seen  # most are, or answers; and to call for each would show
        else ("Bound", fact.effect_id)
        if type(fact) is Bound
        else of_fact(fact, number)
        for number, fact in enumerate(facts)
    ]
    return encoder.encode(_Told(at_s, not is_active, told))


def turn_line(told: bytes, asked: Asked, went_on: int) -> bytes:
    """The whole line, of its beginning and the effects. Raises what these ran into."""
    if asked.trouble is not None:
        raise asked.trouble
    rest = b',"effects":[%b]' % b",".join(asked.parts) if asked.parts else b""
    if went_on:
        rest += b',"went_on":%d' % went_on
    return told[:-1] + rest + b"}"


class Page:
    """Lines, one after the other, in memory that serves again: fresh memory takes longer."""

    __slots__ = ("_buffer", "bytes", "count", "turns")

    def __init__(self) -> None:
        self._buffer = bytearray(PAGE_BYTES)
        self.clear()

    def clear(self) -> None:
        if len(self._buffer) > PAGE_BYTES:
            self._buffer = bytearray(PAGE_BYTES)
        #: of its lines; turns; facts, effects and turns
        self.bytes = self.turns = self.count = 0

    def add(self, line: bytes, count: int) -> bool:
        """A turn's line with so many facts and effects; whether there was room for it."""
        start, end = self.bytes, self.bytes + len(line) + 1
        if end > len(self._buffer):
            if start:
                return False
            self._buffer = bytearray(end)
        self._buffer[start : end - 1] = line
        self._buffer[end - 1] = ord("\n")
        self.bytes = end
        self.turns += 1
        self.count += count
        return True

    def lines(self) -> bytes:
        """All of them, the last one without its end."""
        return bytes(memoryview(self._buffer)[: self.bytes - 1])


def _list_lines(number: int, fact: Listed) -> Iterator[bytes]:
    objects, resource = fact.objects, fact.kind.resource
    for start in range(0, len(objects), LIST_PART):
        part = objects[start : start + LIST_PART]
        yield encoder.encode({"list": number, "resource": resource, "objects": part})
