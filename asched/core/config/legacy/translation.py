"""Translation of an older version: the v1 document, and a note for each entry.

Rules   no entry is dropped silently: each entry of the old form is kept, changed (the same meaning
        in another form), or unsupported (without effect); an entry that would change which nodes a
        pod may use is rejected as a problem instead.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any

import msgspec
from msgspec.structs import replace

from asched.core.config.problem import Path, Problem, path_text
from asched.core.config.v1 import KubeSchedulerProfile


class Fate(Enum):
    """Result for one entry."""

    KEPT = "kept"
    CHANGED = "changed"
    UNSUPPORTED = "unsupported"


class Note(msgspec.Struct, frozen=True):
    """One entry of the old form and its result."""

    fate: Fate
    path: Path
    text: str

    def __str__(self) -> str:
        return f"{path_text(self.path)}: {self.text}" if self.path else self.text


class Translation(msgspec.Struct):
    """The v1 document equivalent to an old form; unusable if there are problems."""

    form: str
    document: dict[str, Any] = msgspec.field(default_factory=dict)
    notes: list[Note] = msgspec.field(default_factory=list)
    problems: list[Problem] = msgspec.field(default_factory=list)
    always_check_all_filters: bool = False

    def kept(self, path: Path, text: str = "as it was") -> None:
        self.notes.append(Note(Fate.KEPT, path, text))

    def changed(self, path: Path, text: str) -> None:
        self.notes.append(Note(Fate.CHANGED, path, text))

    def unsupported(self, path: Path, text: str) -> None:
        self.notes.append(Note(Fate.UNSUPPORTED, path, text))

    def refuse(self, path: Path, text: str, hint: str = "") -> None:
        self.problems.append(Problem(text, path, hint))

    @property
    def notes_for_run(self) -> tuple[str, ...]:
        """Messages that a process with the old form logs once."""
        head = f"{self.form} is read as v1; `asched config migrate` writes it down"
        lost = [note for note in self.notes if note.fate is Fate.UNSUPPORTED]
        return (head, *(f"unsupported: {note}" for note in lost))

    def mark(self, profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
        """The profile with the flags for which v1 has no field."""
        return replace(profile, always_check_all_filters=self.always_check_all_filters)


def named(entries: Any) -> Sequence[tuple[int, dict[str, Any]]]:
    """The mappings of a list with their positions; other items are left for decoding to report."""
    if not isinstance(entries, list):
        return ()
    return [(i, dict(entry)) for i, entry in enumerate(entries) if isinstance(entry, dict)]
