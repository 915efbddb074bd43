"""Read the lines of a recording (`asched/ops/recording/lines.py` writes them)."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from asched import names
from asched.core.cluster import facts
from asched.core.cluster.facts import Fact, Gone, Listed, Seen, WallClock
from asched.core.cycle.orders import KubeletRefused, LeaderDied, QueueAmended
from asched.core.framework.effects import Effect, EmitEvent
from asched.core.framework.status import Code, Status
from asched.core.model.decode import MalformedError, parse
from asched.core.model.kinds import BY_RESOURCE, Kind
from asched.ops.recording.lines import EndLine, RecordingHead
from asched.ops.recording.recorder import GZIP

T = TypeVar("T")

READ_BYTES: Final = 1 << 18


class TurnLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn as read: facts and effects are still encoded."""

    at: float
    #: Nothing was decided: another replica led, or the first lists were not complete.
    idle: bool = False
    went_on: int = 0
    resumed: bool = False
    facts: list[msgspec.Raw] = []
    effects: msgspec.Raw = msgspec.Raw(b"[]")


class PartLine(msgspec.Struct, frozen=True):
    """Objects of the list with this number among the facts of the next turn."""

    number: int = msgspec.field(name="list")
    resource: str = ""
    objects: list[msgspec.Raw] = []


class RecordedError(Exception):
    """Replaces an exception of a plugin's coroutine; its class has the original's name."""


class NotKept:
    """Replaces a result of a coroutine that a recording cannot contain."""

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name


class UnusableRecordingError(Exception):
    """The file is not a recording, or of another version; one line."""


class UnreadableLineError(UnusableRecordingError):
    """An invalid line."""


def recorded(effects: Iterable[Effect]) -> list[Effect]:
    """All effects but events about bindings, which the bindings imply."""
    return [
        effect
        for effect in effects
        if type(effect) is not EmitEvent or effect.reason != names.EVENT_SCHEDULED
    ]


_heads: Final = msgspec.json.Decoder(RecordingHead)
_turns: Final = msgspec.json.Decoder(TurnLine)
_parts: Final = msgspec.json.Decoder(PartLine)
_ends: Final = msgspec.json.Decoder(EndLine)
_any: Final = msgspec.json.Decoder()
_PLAIN_FACTS: Final[Mapping[str, type[Fact]]] = {
    kind.__name__: kind
    for kind in (
        WallClock,
        LeaderDied,
        KubeletRefused,
        facts.Bound,
        facts.Refused,
        facts.Unknown,
        facts.Done,
        facts.Replied,
        facts.ReadPlaced,
        facts.ReadPending,
        facts.ReadGone,
        facts.TimedOut,
    )
}


#: The objects of a turn's lists, encoded, by their number among its facts.
Lists = Mapping[int, Sequence[msgspec.Raw]]


class Reload(NamedTuple):
    """A recorded `Reconfigured`: a replay builds the profiles from the document."""

    document: dict[str, Any]
    edition: tuple[tuple[str, str, str], ...]


Read = RecordingHead | TurnLine | PartLine | EndLine


def read_line(line: bytes) -> Read:
    """Decode a line. Raises UnreadableLineError."""
    if line.startswith(b'{"at"'):
        return read_part(_turns.decode, line)
    if line.startswith(b'{"list"'):
        return read_part(_parts.decode, line)
    if line.startswith(b'{"turns"'):
        return read_part(_ends.decode, line)
    return read_part(_heads.decode, line)


def read_part(decoder: Callable[[bytes], T], part: bytes | msgspec.Raw) -> T:
    """Decode a line, or a part of one. Raises UnreadableLineError."""
    encoded = bytes(part)
    try:
        return parse(decoder, encoded)
    except MalformedError as error:
        raise UnreadableLineError(f"{encoded[:80]!r}: {error}") from error


class FactReader:
    """Decodes facts about the standard kinds and those passed to `learn`."""

    def __init__(self) -> None:
        self._kinds = dict(BY_RESOURCE)
        self._sights: dict[str, msgspec.json.Decoder[Any]] = {}
        self._objects: dict[str, msgspec.json.Decoder[Any]] = {}

    def learn(self, kinds: Iterable[Kind]) -> None:
        """Add kinds that plugins watch."""
        self._kinds |= {kind.resource: kind for kind in kinds}

    def fact(self, raw: msgspec.Raw, lists: Lists) -> Fact | Reload | None:
        """A fact of a turn, with the objects of its lists; None for an unknown kind.

        Raises UnreadableLineError.
        """
        return read_part(lambda encoded: self._fact(encoded, lists), raw)

    def _fact(self, raw: bytes, lists: Lists) -> Fact | Reload | None:
        words = raw[:100].split(b'"', 4)
        if words[1] not in (b"Seen", b"Gone", b"Listed"):
            return fact_of(_any.decode(raw))
        kind = self._kinds.get(words[3].decode())
        if kind is None:
            return None
        if words[1] == b"Listed":
            # Older recordings have no version, and the oldest have no parts.
            number, *part = _any.decode(raw)[2:]
            version = part.pop() if len(part) > 2 else kind.group_version
            spoken = kind  # the same object, for identity checks
            if version != kind.group_version:
                spoken = kind._replace(group_version=version)
            decoder = self._decoder(self._objects, kind, kind.record)
            objects = tuple([decoder.decode(obj) for obj in lists.get(number, ())])
            return Listed(spoken, objects, *part)
        form = tuple[str, str, kind.record]  # type: ignore[name-defined]
        obj = self._decoder(self._sights, kind, form).decode(raw)[2]
        return (Seen if words[1] == b"Seen" else Gone)(kind, obj)

    def _decoder(
        self, known: dict[str, msgspec.json.Decoder[Any]], kind: Kind, form: Any
    ) -> msgspec.json.Decoder[Any]:
        decoder = known.get(kind.resource)
        if decoder is None:
            decoder = known[kind.resource] = msgspec.json.Decoder(form)
        return decoder


def fact_of(parts: list[Any]) -> Fact | Reload:
    """A fact other than `Seen` or `Listed`, from its decoded form."""
    name, *rest = parts
    if name == "Returned":
        return facts.Returned(rest[0], _value_of(rest[1:]))
    if name == "Raised":
        effect_id, class_name, text = rest
        raised = type(class_name, (RecordedError,), {})(text)
        return facts.Raised(effect_id, raised)
    if name == "Reconfigured":
        return Reload(rest[0], tuple((a, b, c) for a, b, c in rest[1]))
    if name == "QueueAmended":
        return QueueAmended(tuple(rest[0]))
    return _PLAIN_FACTS[name](*rest)


def _value_of(parts: list[Any]) -> Any:
    if parts[0] == "Status":
        return Status(Code(parts[1]), tuple(parts[2]), parts[3])
    return parts[1] if parts[0] == "value" else NotKept(parts[1])


class RecordingReader:
    """The lines of a recording. After the last one `is_whole` says whether it was closed, and
    `problem` why it ended otherwise.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.is_whole = False
        self.problem = ""

    def __iter__(self) -> Iterator[bytes]:
        """Raises OSError if the file cannot be opened."""
        rest = b""
        with self._path.open("rb") as file:
            unpacker = zlib.decompressobj(GZIP)
            while packed := file.read(READ_BYTES):
                try:
                    rest += unpacker.decompress(packed)
                except zlib.error as error:
                    self.problem = str(error)
                    break
                *lines, rest = rest.split(b"\n")
                yield from lines
            self.is_whole = unpacker.eof and not rest
        if not self.is_whole and not self.problem:
            self.problem = f"it ends in the middle, with {len(rest)} bytes of a line"
