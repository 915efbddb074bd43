"""Read a recording: its lines, its head, turn after turn, and effects in words and by a key."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from asched import names
from asched.core.cluster import facts
from asched.core.cluster.facts import Fact, Gone, Listed, Seen, WallClock
from asched.core.cycle.orders import KubeletRefused, LeadersEnded, PoolsHeld, QueueAmended
from asched.core.framework.effects import Effect, EmitEvent
from asched.core.framework.status import Code, Status
from asched.core.model.decode import MalformedError, parse
from asched.core.model.kinds import BY_RESOURCE, Kind
from asched.ops.recording.lines import FORMAT, EndLine, RecordingHead
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
        LeadersEnded,
        PoolsHeld,
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
        self._observed: dict[str, msgspec.json.Decoder[Any]] = {}
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
        obj = self._decoder(self._observed, kind, form).decode(raw)[2]
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
    if name == "KubeletRefused":  # in older recordings with the amount that was missing
        return KubeletRefused(*rest[:7])
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


#: Fields about the time of an effect; "turn" is the operation in recordings of earlier versions.
_WHEN: Final = ("id", "operation", "turn")


class RequestedEffect(NamedTuple):
    """One effect. `key` is equal for effects of one kind on the same object; `what` has all fields
    but those of time. `effect_id` is 0 for effects without an answer.
    """

    name: str
    effect_id: int
    subject: str  # namespace/name of the pod or object it is about
    uid: str
    key: tuple[str, ...]
    what: Any

    @property
    def node(self) -> str:
        """The node of a binding."""
        return str(self.what["node"]) if self.name == "Bind" else ""

    def words(self) -> str:
        """For people."""
        what = self.what
        match self.name:
            case "Bind":
                return f"bind {self.subject} to {self.node}"
            case "EmitEvent":
                return f"event on {self.subject}: {what.get('reason')}: {what.get('note')}"
            case "PatchPodStatus" | "MarkVictim" | "NotePod":
                return f"write status of {self.subject}: {_status(what)}"
            case "DeletePod" | "Evict":
                return f"evict {self.subject}"
            case "AskExtender":
                return f"ask {what.get('extender')} to {what.get('verb')}"
            case "CallPlugin":
                return f"call plugin {what.get('plugin')}"
        return f"{self.name} {self.subject}".rstrip()


def asked_for(encoded: bytes) -> list[RequestedEffect]:
    """The effects of a turn's line. Raises UnreadableLineError."""
    return read_part(lambda effects: [_asked(effect) for effect in _any.decode(effects)], encoded)


def _asked(effect: list[Any]) -> RequestedEffect:
    name = effect[0]
    if name == "Bind":
        _, effect_id, _, pod, node = effect
        fields: dict[str, Any] = {"pod": pod, "node": node}
    else:
        fields = dict(effect[1])
        effect_id = fields.get("id", 0)
        for field in _WHEN:
            fields.pop(field, None)
    if "pod" in fields:  # its version follows from the facts, and is no part of a decision
        pod = fields["pod"]
        fields["pod"] = {name: pod[name] for name in pod if name != "resource_version"}
    about = fields.get("pod") or fields.get("regarding") or fields
    subject, uid = _name_of(about, fields), about.get("uid", "")
    key = (name, uid or subject, str(fields.get("reason") or fields.get("verb") or ""))
    return RequestedEffect(name, effect_id, subject, uid, key, fields)


def _name_of(about: dict[str, Any], fields: dict[str, Any]) -> str:
    name, namespace = about.get("name", ""), about.get("namespace", "")
    body = fields.get("body")
    if not name and isinstance(body, dict):
        pod = body.get("Pod")
        if isinstance(pod, list):  # a reference to the whole pod
            return str(pod[-1])
        metadata = body.get("metadata") or {}
        name = metadata.get("name") or metadata.get("generateName") or ""
    if not name:
        return str(fields.get("plugin", ""))
    return f"{namespace}/{name}" if namespace else str(name)


def _status(what: dict[str, Any]) -> str:
    condition, node = what.get("condition"), what.get("nominated_node_name")
    parts = []
    if condition:
        parts.append(f"{condition.get('reason')}: {condition.get('message')}")
    if node is not None:
        parts.append(f"nominated to {node}" if node else "no longer nominated")
    return "; ".join(parts) or "nothing"


class RecordedTurn(NamedTuple):
    """Facts of a turn, with the objects of lists by their number, and its effects: all of it
    encoded.
    """

    number: int
    at_s: float
    is_active: bool
    went_on: int
    facts: list[msgspec.Raw]
    lists: Lists
    effects: bytes
    resumed: bool


class Recording:
    """Raises UnusableRecordingError. `cut_off`: after the last turn, why the file has no end, empty
    if it was closed; `turns` is their number then.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cut_off = ""
        self.turns = 0
        try:
            first = next(iter(RecordingReader(path)), b"")
            head = read_line(first)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UnusableRecordingError(f"{path}: {reason}") from error
        except UnreadableLineError as error:
            raise UnusableRecordingError(f"{path} is no recording of asched") from error
        if not isinstance(head, RecordingHead):
            raise UnusableRecordingError(f"{path} is no recording of asched: it has no head")
        if head.format != FORMAT:
            raise UnusableRecordingError(
                f"{path} has format {head.format}, and this asched reads {FORMAT}: replay it with"
                f" asched {head.version}"
            )
        self.head = head

    def __iter__(self) -> Iterator[RecordedTurn]:
        reader = RecordingReader(self.path)
        lines = iter(reader)
        next(lines)
        self.turns, lists = 0, dict[int, list[msgspec.Raw]]()
        is_closed = False
        try:
            for line in lines:
                said = read_line(line)
                if isinstance(said, PartLine):
                    lists.setdefault(said.number, []).extend(said.objects)
                elif isinstance(said, TurnLine):
                    yield _turn(self.turns, said, lists)
                    lists = {}
                    self.turns += 1
                else:
                    is_closed = isinstance(said, EndLine)
        except UnreadableLineError as error:
            self.cut_off = f"a line after turn {self.turns} cannot be read: {error}"
            return
        if not is_closed:
            self.cut_off = reader.problem or "it was not closed"


def _turn(number: int, line: TurnLine, lists: Lists) -> RecordedTurn:
    is_active, effects = not line.idle, bytes(line.effects)
    facts, went_on = line.facts, line.went_on
    return RecordedTurn(number, line.at, is_active, went_on, facts, lists, effects, line.resumed)
