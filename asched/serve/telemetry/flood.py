"""Limit warnings and errors by cause, so that one pod, node or client cannot fill the log.

A cause is the place in the code with the plugin and the exception of the message; or the `cause`
named by the caller, where many messages have one reason (each kind that cannot be followed): then
one line is enough. The first line after a pause has the number of dropped ones (`leftOut`).

Bounds  LINES_MAX lines of one cause in WINDOW_S, CAUSES_MAX causes are stored.
"""

import logging
from collections import OrderedDict
from typing import Final

LINES_MAX: Final = 50
WINDOW_S: Final = 60.0
CAUSES_MAX: Final = 1_000


class _Spoken:
    """Messages of one cause since `since_s`."""

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.lines = 0
        self.left_out = 0


class Flood(logging.Filter):
    """Uses the times of the records."""

    def __init__(self) -> None:
        super().__init__()
        self.causes: OrderedDict[tuple[object, ...], _Spoken] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        named = getattr(record, "cause", "")
        if not named and record.levelno < logging.WARNING:
            return True
        spoken = self._of(self._cause(record, named), record.created)
        if record.created - spoken.since_s >= WINDOW_S:
            spoken.since_s, spoken.lines = record.created, 0
            if spoken.left_out:
                record.leftOut = spoken.left_out
                spoken.left_out = 0
        if spoken.lines >= (1 if named else LINES_MAX):
            spoken.left_out += 1
            return False
        spoken.lines += 1
        return True

    def _cause(self, record: logging.LogRecord, named: str) -> tuple[object, ...]:
        if named:
            return (named,)
        kind = record.exc_info[0] if record.exc_info else None
        return record.pathname, record.lineno, kind, getattr(record, "plugin", "")

    def _of(self, cause: tuple[object, ...], now_s: float) -> _Spoken:
        spoken = self.causes.setdefault(cause, _Spoken(now_s))
        self.causes.move_to_end(cause)
        if len(self.causes) > CAUSES_MAX:
            self.causes.popitem(last=False)
        return spoken
