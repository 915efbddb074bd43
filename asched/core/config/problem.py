"""A fault of a configuration: the stage that found it, its location, kube-scheduler's message.

Rules   `text` is the whole line kube-scheduler prints; `path` leads to the location in the
        document, so that the reader of the file can add line and column; `hint` is our own and
        never part of `text`. All faults are reported at once. `as_upstream` gives the output of
        kube-scheduler, which stops earlier in some stages.
Source  k8s.io/apimachinery/pkg/util/validation/field (v1.36), recordings of kube-scheduler 1.36.2
"""

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, IntEnum
from math import inf
from typing import Any, Final

import msgspec

#: Minimum similarity of a known name to be suggested.
LIKENESS: Final = 0.6
#: Characters with an escape of their own in Go's %q.
_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    **dict(zip("\a\b\f\n\r\t\v", (f"\\{letter}" for letter in "abfnrtv"), strict=True)),
}


class StartStage(Enum):
    """The stages of kube-scheduler's start-up that find faults, in order."""

    LOAD = "load"
    VALIDATE = "validate"
    CONSTRUCT = "construct"
    ELECT = "elect"


class Severity(IntEnum):
    """How Go's decoder continues after a fault: strict faults accumulate, others hide the rest."""

    STRICT = 0
    SAVED = 1
    ABORT = 2


class Key(str):
    """A path element printed in brackets, as the key of a map."""

    __slots__ = ()


class NamedString(str):
    """A value of a named string type, which Go prints as JSON."""

    __slots__ = ()


#: A text in place of an index means the list's last entry of that name.
Path = tuple[str | int, ...]


class Problem(msgspec.Struct, frozen=True):
    """One fault; `nested` marks faults in plugin args, found after the document itself."""

    stage: StartStage
    text: str
    path: Path = ()
    hint: str = ""
    severity: Severity = Severity.STRICT
    nested: bool = False


def did_you_mean(name: str, known: Iterable[str], letters_max: float = inf) -> str:
    """A hint that names the closest known spelling in any letter case, or nothing. `letters_max`:
    the letters of both names that the other does not have; a wrong letter counts twice.
    """
    spelled = {candidate.lower(): candidate for candidate in sorted(known, reverse=True)}
    for close in difflib.get_close_matches(name.lower(), sorted(spelled), n=1, cutoff=LIKENESS):
        ratio = difflib.SequenceMatcher(None, close, name.lower()).ratio()
        if round((1 - ratio) * (len(close) + len(name))) <= letters_max:
            return f"did you mean {quoted(spelled[close])}?"
    return ""


def path_text(path: Path) -> str:
    """The path as upstream prints it: `profiles[0].plugins.score`."""
    parts: list[str] = []
    for element in path:
        if isinstance(element, int) or type(element) is Key:
            parts.append(f"[{element}]")
        else:
            parts.append(f".{element}" if parts else str(element))
    return "".join(parts)


def quoted(text: str) -> str:
    """A string as Go's %q writes it: invisible characters are escaped."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(letter: str) -> str:
    code = ord(letter)
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _value_text(value: Any) -> str:
    is_plain = isinstance(value, str) and type(value) is not NamedString
    return quoted(value) if is_plain else go_json(value)


def go_json(value: Any) -> str:
    """Compact JSON as Go writes it, with HTML's characters escaped; keys keep their order."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _problem(path: Path, body: str) -> Problem:
    where = path_text(path)
    return Problem(StartStage.VALIDATE, f"{where}: {body}" if where else body, path)


def invalid(path: Path, value: Any, detail: str) -> Problem:
    return _problem(path, f"Invalid value: {_value_text(value)}: {detail}")


def required(path: Path, detail: str = "") -> Problem:
    return _problem(path, f"Required value: {detail}" if detail else "Required value")


def forbidden(path: Path, detail: str) -> Problem:
    return _problem(path, f"Forbidden: {detail}")


def duplicate(path: Path, value: Any) -> Problem:
    return _problem(path, f"Duplicate value: {_value_text(value)}")


def not_supported(path: Path, value: str, supported: Sequence[str]) -> Problem:
    """All of upstream's enumerations are named types, whose values print as JSON."""
    listed = ", ".join(quoted(name) for name in supported)
    return _problem(
        path, f"Unsupported value: {_value_text(NamedString(value))}: supported values: {listed}"
    )


STRICT_PREFIX: Final = "strict decoding error: "


def as_upstream(problems: Iterable[Problem]) -> tuple[str, ...]:
    """The texts that kube-scheduler prints for these problems, given in the order found.

    Only the first stage counts. While loading, a wrong type hides everything else; building stops
    at the first fault; validation reports all of them.
    """
    found = list(problems)
    if not found:
        return ()
    first = [problem for problem in found if problem.stage is found[0].stage]
    if first[0].stage is StartStage.LOAD:
        for nested in (False, True):
            hard = [p for p in first if p.nested is nested and p.severity is not Severity.STRICT]
            if hard:
                # In args the first faulty entry stops decoding; within one text, an error of a
                # field's own parser precedes a stored type error.
                worst = hard[0] if nested else max(hard, key=lambda problem: problem.severity)
                return (worst.text,)
        return tuple(_joined(first))
    if first[0].stage is StartStage.VALIDATE:
        return tuple(dict.fromkeys(problem.text for problem in first))
    return (first[0].text,)


def _joined(faults: Sequence[Problem]) -> Iterator[str]:
    """Strict faults: each of the document separately, those of one plugin's args in one text."""
    texts: dict[Path, str] = {}
    faults = list({(problem.path[:4], problem.text): problem for problem in faults}.values())
    for number, problem in enumerate(faults):
        if not problem.nested:
            texts[(number,)] = problem.text
            continue
        # profiles, number, pluginConfig, number
        where = problem.path[:4]
        *_, text = problem.text.split(STRICT_PREFIX, 2)
        texts[where] = f"{texts[where]}, {text}" if where in texts else problem.text
    yield from texts.values()


def message(texts: Sequence[str]) -> str:
    """Several messages as one, as Kubernetes prints an aggregate."""
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
