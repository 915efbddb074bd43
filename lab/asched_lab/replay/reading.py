"""Read a recording: its head, then turn after turn, up to the last readable line."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from asched.ops.recording.lines import FORMAT, EndLine, RecordingHead
from asched_lab.replay.lines import (
    Lists,
    PartLine,
    RecordingReader,
    TurnLine,
    UnreadableLineError,
    UnusableRecordingError,
    read_line,
)


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
