"""The lines of a recording: JSON, readable without asched.

    {"format": 1, ...}                             the head: parameters of the machine
    {"list": n, "resource": "Pod", "objects": []}  part of the n-th list among the next turn's facts
    {"at": s, "went_on": n, "resumed": b, "facts": [...], "effects": [...]}    a turn of the machine
    {"turns": n}                                   the end of a recording that was closed

Facts and effects are lists that begin with the name of their class. Objects have only the fields
that a scheduler reads: no environment, no commands, no secrets.

Bounds  LIST_PART objects per line.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from asched import names
from asched.core.cluster import facts
from asched.core.cluster.facts import Fact, Gone, Listed, Seen
from asched.core.cycle.orders import Reconfigured
from asched.core.framework.effects import (
    AskExtender,
    Bind,
    CallPlugin,
    Create,
    Delete,
    Effect,
    EmitEvent,
    Patch,
    Whole,
    Wholes,
)
from asched.core.framework.status import Status
from asched.core.model.kinds import Kind

FORMAT: Final = 1
LIST_PART: Final = 256


class RecordingHead(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parameters of a machine and of its process. `plugins` are those of users: (name, origin,
    digest of the content).
    """

    format: int
    configuration: dict[str, Any]
    gates: dict[str, bool]
    began: str
    version: str
    python: str
    numpy: str
    machine: str
    plugins: tuple[tuple[str, str, str], ...] = ()
    seed: int = 0
    bindings_max: int = 0
    max_in_unschedulable_s: float = 0.0
    advises: bool = False
    #: Names were replaced irreversibly.
    anonymous: bool = False


class _FactsLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part of a turn's line that is encoded before the turn."""

    at: float
    idle: bool = False
    facts: list[Any] = []


class _EffectLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part that is encoded after the turn."""

    went_on: int = 0
    resumed: bool = False
    effects: list[Any] = []


class EndLine(msgspec.Struct, frozen=True):
    turns: int


class Turn(NamedTuple):
    """A turn of the machine: its facts and its effects."""

    at_s: float
    is_active: bool
    went_on: int
    facts: list[Fact]
    effects: list[Effect]
    resumed: bool = False


# --- to bytes ------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """Encode what msgspec cannot: references to whole objects, NumPy numbers, functions."""
    if isinstance(value, Whole):
        return ["Whole", value.kind.resource, value.key]
    if isinstance(value, Wholes):
        return ["Wholes", value.kind.resource, value.keys]
    if hasattr(value, "item"):
        return value.item()
    return f"({type(value).__name__})"


_encoder: Final = msgspec.json.Encoder(enc_hook=_plain)


def head_line(head: RecordingHead) -> bytes:
    return _encoder.encode(head)


def end_line(turns: int) -> bytes:
    return _encoder.encode(EndLine(turns))


def turn_lines(turn: Turn) -> Iterator[bytes]:
    """The lines of a turn; long lists come in lines of their own before it."""
    if has_lists(turn.facts):
        for number, fact in enumerate(turn.facts):
            if isinstance(fact, Listed):
                yield from _list_lines(number, fact)
    first = facts_part(turn.at_s, turn.facts, is_active=turn.is_active)
    yield turn_line(first, asked_part(turn.effects, turn.went_on, resumed=turn.resumed))


def has_lists(received: Iterable[Fact]) -> bool:
    """Whether the turn has lines before its own."""
    return Listed in map(type, received)


def facts_part(at_s: float, received: Iterable[Fact], *, is_active: bool) -> bytes:
    encoded = [
        ("Seen", fact.kind.resource, fact.obj)
        if type(fact) is Seen  # most facts; a call for each would be measurable
        else ("Bound", fact.effect_id)
        if type(fact) is facts.Bound
        else _of_fact(fact, number)
        for number, fact in enumerate(received)
    ]
    return _encoder.encode(_FactsLine(at_s, not is_active, encoded))


def asked_part(effects: Iterable[Effect], went_on: int, *, resumed: bool = False) -> bytes:
    return _encoder.encode(_EffectLine(went_on, resumed, _of_effects(effects)))


def turn_line(first: bytes, asked: bytes) -> bytes:
    """Join both parts, which are JSON objects."""
    return first if asked == b"{}" else first[:-1] + b"," + asked[1:]


def _list_lines(number: int, fact: Listed) -> Iterator[bytes]:
    objects, resource = fact.objects, fact.kind.resource
    for start in range(0, len(objects), LIST_PART):
        part = objects[start : start + LIST_PART]
        yield _encoder.encode({"list": number, "resource": resource, "objects": part})


def effects_bytes(effects: Iterable[Effect]) -> bytes:
    """Effects as encoded in a turn's line."""
    return _encoder.encode(_of_effects(effects))


def _of_fact(fact: Fact, number: int) -> Any:
    kind = type(fact)
    if kind is Gone:
        return ("Gone", fact.kind.resource, fact.obj)  # type: ignore[attr-defined]
    if kind is Listed:
        spoken = fact.kind  # type: ignore[attr-defined]
        part = fact.part, fact.has_more, spoken.group_version  # type: ignore[attr-defined]
        return ("Listed", spoken.resource, number, *part)
    if kind is facts.Returned:
        return ("Returned", fact.effect_id, *_of_value(fact.value))  # type: ignore[attr-defined]
    if kind is facts.Raised:
        error = fact.error  # type: ignore[attr-defined]
        return ("Raised", fact.effect_id, type(error).__name__, str(error))  # type: ignore[attr-defined]
    if kind is Reconfigured:
        return ("Reconfigured", fact.document, fact.edition)  # type: ignore[attr-defined]
    return (kind.__name__, *msgspec.structs.astuple(fact))


def _of_value(value: Any) -> tuple[Any, ...]:
    if isinstance(value, Status):
        return ("Status", int(value.code), value.reasons, value.plugin)
    try:
        _strict.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return ("NotKept", type(value).__name__)
    return ("value", value)


_strict: Final = msgspec.json.Encoder()


def _of_effects(effects: Iterable[Effect]) -> list[Any]:
    return [
        ("Bind", effect.id, effect.operation, effect.pod, effect.node)
        if type(effect) is Bind
        else _of_effect(effect)
        for effect in effects
        if type(effect) is not EmitEvent or effect.reason != names.EVENT_SCHEDULED
    ]


def _of_effect(effect: Effect) -> Any:
    kind = type(effect)
    if kind in _REWRITTEN:
        fields = msgspec.structs.asdict(effect)
        return (kind.__name__, {name: _named(value) for name, value in fields.items()})
    return (kind.__name__, effect)


#: Effects with fields that are not plain data.
_REWRITTEN: Final = frozenset((Patch, Create, Delete, AskExtender, CallPlugin))


def _named(value: Any) -> Any:
    if isinstance(value, Kind):
        return value.resource
    return getattr(value, "url_prefix", value)  # of an extender only the prefix, no certificates
