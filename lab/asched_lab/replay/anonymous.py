"""Write a recording under pseudonyms that leads to the same decisions.

    collect names ─> choose pseudonyms ─> run a rebuilt machine on the renamed facts ─> write
                                          its decisions must equal those of the original

The file has the facts and effects of that run, so it replays exactly; the comparison reports
whether it still shows what the original shows.
"""

from collections import deque
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from asched.core.config.pools import DEFAULT_POOL
from asched.host.user_plugins.catalogue import Catalogue
from asched.names import POOL_LABEL
from asched.ops.recording.lines import LIST_PART, RecordingHead, effects_bytes, end_line, head_line
from asched.ops.recording.recorder import RecordingFile
from asched_lab.replay.lines import (
    PartLine,
    RecordedTurn,
    Recording,
    RequestedEffect,
    TurnLine,
    asked_for,
    read_part,
)
from asched_lab.replay.pseudonyms import Pseudonyms
from asched_lab.replay.rebuilt import Rebuilt

_any: Final = msgspec.json.Decoder()
_encode: Final = msgspec.json.encode
#: Only the original's size bounds the file: pseudonyms are hardly longer than names.
BYTES_MAX: Final = 1 << 62


class Anonymized(NamedTuple):
    """`differs`: the first turn that decides differently from the original, with the old and the
    new decision; None if no turn does.
    """

    turns: int
    names: int
    differs: tuple[int, str, str] | None


def anonymize(recording: Recording, out: Path, catalogue: Catalogue) -> Anonymized:
    """Raises UnusableRecordingError, and OSError if it cannot be written."""
    names = Pseudonyms()
    for turn in recording:
        for raw in turn.facts:
            _fact_in(raw, names, notes=True)
        for number, objects in turn.lists.items():
            resource = _resource(turn, number)
            for raw in objects:
                names.note(read_part(_any.decode, raw), resource)
    _head(recording.head, names, notes=True)
    names.settle()
    head = _head(recording.head, names, notes=False)
    rebuilt = Rebuilt(head, catalogue)
    file = RecordingFile(out, BYTES_MAX)
    try:
        done = _replayed(recording, rebuilt, names, file, head)
    except BaseException:
        file.give_up()
        out.unlink(missing_ok=True)
        raise
    file.close()
    return done


def _replayed(
    recording: Recording,
    rebuilt: Rebuilt,
    names: Pseudonyms,
    file: RecordingFile,
    head: RecordingHead,
) -> Anonymized:
    differs: tuple[int, str, str] | None = None
    file.add(head_line(head))
    for turn in recording:
        renamed = turn._replace(
            facts=[_raw(_fact_in(raw, names, notes=False)) for raw in turn.facts],
            lists={
                number: [_renamed(raw, _resource(turn, number), names) for raw in objects]
                for number, objects in turn.lists.items()
            },
        )
        effects = effects_bytes(rebuilt.turn(renamed))
        for line in _lines(renamed, effects):
            file.add(line)
        then, now = asked_for(turn.effects), asked_for(effects)
        if differs is None:
            differs = _difference(turn, then, now, names)
            _learn(then, now, names)
    file.add(end_line(recording.turns))
    return Anonymized(recording.turns, len(names), differs)


def _lines(turn: RecordedTurn, effects: bytes) -> Iterator[bytes]:
    for number, objects in turn.lists.items():
        resource = _resource(turn, number)
        for start in range(0, len(objects), LIST_PART):
            part = list(objects[start : start + LIST_PART])
            yield _encode(PartLine(number, resource, part))
    yield _encode(
        TurnLine(
            at=turn.at_s,
            idle=not turn.is_active,
            went_on=turn.went_on,
            resumed=turn.resumed,
            facts=turn.facts,
            effects=msgspec.Raw(effects),
        )
    )


def _resource(turn: RecordedTurn, number: int) -> str:
    """The kind of a list, which a fact of the turn names. Raises UnreadableLineError."""
    return read_part(lambda fact: str(_any.decode(fact)[1]), turn.facts[number])


def _renamed(raw: msgspec.Raw, resource: str, names: Pseudonyms) -> msgspec.Raw:
    """An object under pseudonyms. Raises UnreadableLineError."""
    return read_part(lambda obj: _raw(names.walked(_any.decode(obj), resource)), raw)


def _difference(
    turn: RecordedTurn, then: list[RequestedEffect], now: list[RequestedEffect], names: Pseudonyms
) -> tuple[int, str, str] | None:
    """Compare requests by object, and bindings by node, in order; messages are not compared."""
    ours = [(_compare_key(request, None), request) for request in now if not _is_message(request)]
    theirs = [
        (_compare_key(request, names), request) for request in then if not _is_message(request)
    ]
    for old, new in zip_longest(theirs, ours):
        if old is None or new is None or old[0] != new[0]:
            first, second = (side[1].words() if side else "nothing" for side in (old, new))
            return turn.number, first, second
    return None


def _is_message(request: RequestedEffect) -> bool:
    """A condition or an event. A pod with a condition from before the recording gets it once more,
    since the pseudonyms change its text.
    """
    if request.name == "PatchPodStatus":
        return not request.effect_id and request.what.get("nominated_node_name") is None
    return request.name == "EmitEvent"


def _learn(then: list[RequestedEffect], now: list[RequestedEffect], names: Pseudonyms) -> None:
    """Learn the messages of both machines, paired by object."""
    ours: dict[tuple[Any, ...], deque[RequestedEffect]] = {}
    for request in now:
        ours.setdefault(_compare_key(request, None), deque()).append(request)
    for request in then:
        waiting = ours.get(_compare_key(request, names))
        if waiting:
            names.learn(request.what, waiting.popleft().what)


def _compare_key(request: RequestedEffect, names: Pseudonyms | None) -> tuple[Any, ...]:
    nominated = request.what.get("nominated_node_name")
    uid, node = request.uid, request.node
    if names is not None:
        uid, node = names.of(uid), names.of(node)
        nominated = nominated and names.of(nominated)
    return request.name, request.effect_id, uid, node, nominated


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(_encode(value))


# --- one fact ------------------------------------------------------------------------------------


def _fact_in(raw: msgspec.Raw, names: Pseudonyms, *, notes: bool) -> list[Any]:
    """Raises UnreadableLineError."""
    return read_part(lambda encoded: _fact(_any.decode(encoded), names, notes=notes), raw)


def _fact(parts: list[Any], names: Pseudonyms, *, notes: bool) -> list[Any]:
    """A fact under pseudonyms; with `notes` only collect its names, and return it unchanged."""
    name, *rest = parts
    if notes:
        _note(name, rest, names)
        return parts
    match name:
        case "Seen" | "Gone":
            return [name, rest[0], names.walked(rest[1], rest[0])]
        case "Done":
            return [name, rest[0], names.walked(rest[1])]
        case "Refused":
            effect_id, code, message, reason = rest
            return [name, effect_id, code, names.message(message), names.term(reason)]
        case "Unknown" | "ReadPlaced":
            return [name, rest[0], names.of(rest[1])]
        case "Raised":
            return [name, rest[0], rest[1], names.of(rest[2])]
        case "Replied":
            return [name, rest[0], names.replied(rest[1])]
        case "Returned":
            return [name, rest[0], rest[1], *_returned(rest[1:], names)]
        case "Reconfigured":
            return [name, _document(rest[0], names, notes=False), _without_places(rest[1])]
        case "KubeletRefused":
            namespace, pod, uid, owner, node, reason, reporter = rest[:7]
            who = [text and names.of(text) for text in (namespace, pod, uid, owner, node)]
            return [name, *who, names.term(reason), names.of(reporter)]
        case "PoolsHeld":
            let_go, *new = rest
            versions = {_pool(pool, names): known for pool, known in let_go.items()}
            return [name, versions, *([_pool(pool, names) for pool in pools] for pools in new)]
        case "QueueAmended":
            return [name, ["/".join(map(names.of, key.split("/"))) for key in rest[0]]]
    return parts


def _note(name: str, rest: list[Any], names: Pseudonyms) -> None:
    match name:
        case "Seen" | "Gone":
            names.note(rest[1], rest[0])
        case "Done":
            names.note(rest[1])
        case "Refused":
            names.note_text(rest[2])
            names.note_text(rest[3])
        case "Unknown" | "ReadPlaced":
            names.note_text(rest[1])
        case "Raised":
            names.note_text(rest[2])
        case "Replied":
            names.note_reply(rest[1])
        case "Returned":
            names.note_reply(rest[2:])
        case "KubeletRefused":
            for text in filter(None, rest[:6]):
                names.note_text(text)
        case "Reconfigured":
            _document(rest[0], names, notes=True)


def _returned(parts: list[Any], names: Pseudonyms) -> list[Any]:
    """A status stays code and plugin."""
    form, *rest = parts
    if form == "Status":
        code, reasons, plugin = rest
        return [code, [names.of(reason) for reason in reasons], plugin]
    return rest if form == "NotKept" else [names.replied(value) for value in rest]


# --- the configuration ---------------------------------------------------------------------------


def _head(head: RecordingHead, names: Pseudonyms, *, notes: bool) -> RecordingHead:
    document = _document(head.configuration, names, notes=notes)
    return msgspec.structs.replace(
        head,
        configuration=document,
        machine="",
        plugins=tuple(_without_places(head.plugins)),
        anonymous=True,
    )


def _without_places(plugins: Any) -> list[Any]:
    """Plugins without the paths of their files."""
    return [(name, "", content) for name, _, content in plugins]


def _document(document: dict[str, Any], names: Pseudonyms, *, notes: bool) -> dict[str, Any]:
    """A configuration: labels in plugin arguments and the addresses of extenders are replaced. The
    arguments of user plugins stay unchanged, since their meaning is not known.
    """

    def changed(value: Any) -> Any:
        if notes:
            names.note(value)
            return value
        return names.walked(value)

    document = {**document, "profiles": [dict(profile) for profile in document.get("profiles", ())]}
    document.pop("leaderElection", None)
    names.keep_schedulers(profile["schedulerName"] for profile in document["profiles"])
    for profile in document["profiles"]:
        profile["pluginConfig"] = [
            {**entry, "args": {**entry["args"], **_labels(entry["args"], changed)}}
            for entry in profile.get("pluginConfig", ())
        ]
    if "pools" in document:
        # The label of a pool without a selector has the pool's name, which changes.
        document["pools"] = changed(
            [
                {**pool, "nodeSelector": pool.get("nodeSelector") or {POOL_LABEL: pool["name"]}}
                for pool in document["pools"]
            ]
        )
    if "extenders" in document:
        document["extenders"] = [
            {**extender, "urlPrefix": f"http://extender-{number}.invalid"}
            for number, extender in enumerate(document["extenders"])
        ]
    return document


def _pool(name: str, names: Pseudonyms) -> str:
    return name if name == DEFAULT_POOL else names.of(name)


def _labels(args: Any, changed: Any) -> dict[str, Any]:
    fields = ("addedAffinity", "defaultConstraints")
    return {field: changed(args[field]) for field in fields if args.get(field)}
