"""Limit warnings and errors by cause, so that one pod, node or client cannot fill the log.

A cause is the place in the code with the plugin and the exception of the message; or the `cause`
named by the caller, where many messages have one reason (each kind that cannot be followed): then
one line is enough. The first line after a pause has the number of dropped ones (`leftOut`).

Bounds  LINES_MAX lines of one cause in WINDOW_S, CAUSES_MAX causes are stored.
"""

import logging
from typing import Final

import msgspec

from asched.core.model.lru import Lru

LINES_MAX: Final = 50
WINDOW_S: Final = 60.0
CAUSES_MAX: Final = 1_000


class _Spoken(msgspec.Struct):
    """Messages of one cause since `since_s`."""

    since_s: float
    lines: int = 0
    left_out: int = 0


class Flood(logging.Filter):
    """Drops lines of a cause beyond its limit. The clock is the times of the records."""

    def __init__(self) -> None:
        super().__init__()
        self._causes: Lru[tuple[object, ...], _Spoken] = Lru(CAUSES_MAX)

    def filter(self, record: logging.LogRecord) -> bool:
        named = getattr(record, "cause", "")
        if not named and record.levelno < logging.WARNING:
            return True
        cause: tuple[object, ...] = (named,)
        if not named:
            kind = record.exc_info[0] if record.exc_info else None
            cause = record.pathname, record.lineno, kind, getattr(record, "plugin", "")
        spoken = self._causes.get(cause) or _Spoken(record.created)
        self._causes.put(cause, spoken)
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
