"""An error of a configuration: its text, its path in the document, and a hint.

Rules   the path leads to the place in the document, so that the reader of the file can add line and
        column; all errors are reported at once. Texts about a value have the form that Kubernetes'
        API has: `path: Invalid value: value: what must be`.
"""

import difflib
import json
from collections.abc import Iterable, Sequence
from math import inf
from typing import Any, Final

import msgspec

#: Minimum similarity of a known name to be suggested.
LIKENESS: Final = 0.6

#: A text in place of an index means the list's last entry of that name.
Path = tuple[str | int, ...]


class Problem(msgspec.Struct, frozen=True):
    """One error; `hint` says what to write instead."""

    text: str
    path: Path = ()
    hint: str = ""


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
    """The path as Kubernetes prints it: `profiles[0].plugins.score`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def quoted(text: str) -> str:
    """A string in double quotes; invisible characters are escaped."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _value_text(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def _problem(path: Path, body: str) -> Problem:
    return Problem(f"{path_text(path)}: {body}" if path else body, path)


def invalid(path: Path, value: Any, detail: str) -> Problem:
    return _problem(path, f"Invalid value: {_value_text(value)}: {detail}")


def required(path: Path, detail: str = "") -> Problem:
    return _problem(path, f"Required value: {detail}" if detail else "Required value")


def forbidden(path: Path, detail: str) -> Problem:
    return _problem(path, f"Forbidden: {detail}")


def duplicate(path: Path, value: Any) -> Problem:
    return _problem(path, f"Duplicate value: {_value_text(value)}")


def not_supported(path: Path, value: str, supported: Sequence[str]) -> Problem:
    listed = ", ".join(quoted(name) for name in supported)
    return _problem(path, f"Unsupported value: {quoted(value)}: supported values: {listed}")
