"""Log lines in kube-scheduler's two formats: klog text, and JSON for `--logging-format=json`.

    I1121 09:08:01.123456   4711 loops.py:88] "synced" nodes=1000
    {"ts":1763716081123.456,"caller":"host/loops.py:88","msg":"synced","v":0,"nodes":1000}

A call has a short constant message, and everything that varies in `extra`. The verbosity (`-v`) is
`extra={"v": 4}`; lines above the configured one are dropped before they are formatted, and so are
lines of a cause that has had too many (`flood.py`).

Lines of libraries, and what Python and the event loop would write to standard error themselves, use
the same format, so that a JSON log stays one.

Values and messages may be of objects, which may contain any text: `extras` and `_message` cut them,
at one spot for both formats. A record with `extra={"whole": True}` is not cut: the configuration,
and what an administrator asks for.

Bounds  VALUE_MAX characters of a value, MESSAGE_MAX of a message, TRACE_MAX of a traceback.
Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/component-base/logs, and recorded output
"""

import logging
import sys
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final

import orjson

from asched.serve.telemetry.flood import Flood

VALUE_MAX: Final = 1_024
#: An error may name many faults of a configuration.
MESSAGE_MAX: Final = 8_192
TRACE_MAX: Final = 16_384

process_log = logging.getLogger("asched.process")

#: Attributes of every record; all others come from `extra`.
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "v",
    "taskName",
    "cause",
    "whole",
}
_LETTERS: Final = {"WARNING": "W", "ERROR": "E", "CRITICAL": "F"}


def extras(record: logging.LogRecord) -> dict[str, Any]:
    """The values added to the message, cut unless the record is whole. An exception without a text
    is shown by its name.
    """
    is_whole = getattr(record, "whole", False)
    return {
        key: value if is_whole else _cut_value(value)
        for key, value in (
            (
                key,
                (str(value) or type(value).__name__) if isinstance(value, BaseException) else value,
            )
            for key, value in vars(record).items()
            if key not in _STANDARD
        )
    }


def _cut_value(value: Any) -> Any:
    if isinstance(value, (bool, int, float)) or value is None:
        return value
    if isinstance(value, str):
        return cut(value, VALUE_MAX)
    text = _json(value) if isinstance(value, (dict, list, tuple)) else str(value)
    return value if len(text) <= VALUE_MAX else cut(text, VALUE_MAX)


def cut(text: str, length: int) -> str:
    """A text of at most this many characters, and how many it had."""
    return text if len(text) <= length else f"{text[:length]}... ({len(text)} characters)"


def _message(record: logging.LogRecord) -> str:
    text = record.getMessage()
    return text if getattr(record, "whole", False) else cut(text, MESSAGE_MAX)


class KlogFormatter(logging.Formatter):
    """klog's text: severity, time, process, source, then the message and its values."""

    def format(self, record: logging.LogRecord) -> str:
        letter = _LETTERS.get(record.levelname, "I")
        stamp = time.strftime("%m%d %H:%M:%S", time.localtime(record.created))
        micros = int(record.created % 1 * 1_000_000)
        values = extras(record)
        message = _message(record).rstrip().replace("\n", "\n\t")
        if record.exc_info:
            values["err"] = cut(self.formatException(record.exc_info), TRACE_MAX)
        text = f'"{message}"' if values else message
        shown = "".join(f" {key}={_shown(value)}" for key, value in values.items())
        source = f"{record.filename}:{record.lineno}"
        line = f"{letter}{stamp}.{micros:06d} {record.process:7d} {source}] {text}{shown}"
        return line if line.isprintable() else "".join(map(_visible, line))


class JsonFormatter(logging.Formatter):
    """One JSON object per line: `ts` in milliseconds, `caller`, `msg`, `v` or `err`, then the
    values.
    """

    def format(self, record: logging.LogRecord) -> str:
        folder = record.pathname.rsplit("/", 2)[-2:]
        line: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{'/'.join(folder)}:{record.lineno}",
            "msg": _message(record),
        }
        if record.levelno < logging.ERROR:
            line["v"] = getattr(record, "v", 0)
        if record.exc_info:
            line["err"] = cut(self.formatException(record.exc_info), TRACE_MAX)
        line.update(extras(record))
        return _json(line)


class Verbosity(logging.Filter):
    """Drops lines whose `v` is above the configured one, by module with `--vmodule`."""

    def __init__(self, level: int, modules: Mapping[str, int]) -> None:
        super().__init__()
        self._level = level
        self._modules = modules
        self.is_json = False

    @property
    def highest(self) -> int:
        return max((self._level, *self._modules.values()))

    def change(self, level: int) -> None:
        self._level = level

    def filter(self, record: logging.LogRecord) -> bool:
        wanted: int = getattr(record, "v", 0)
        return wanted <= self._modules.get(record.module, self._level)


#: What `setup` installed.
_current: Final = [Verbosity(0, {})]
_installed: Final[list[logging.Handler]] = []


def verbosity() -> int:
    """The highest `v` that is shown. Check it before building lines that occur once per pod."""
    return _current[0].highest


def set_verbosity(level: int) -> None:
    _current[0].change(level)


def setup(
    *,
    as_json: bool = False,
    verbosity: int = 0,
    modules: Mapping[str, int] | None = None,
    splits: bool = False,
) -> None:
    """Send all lines to standard error in one of the two formats; with `splits` only errors, and
    the rest to standard output. Other libraries log from warnings on.
    """
    _current[0] = Verbosity(verbosity, modules or {})
    _current[0].is_json = as_json
    flood = Flood()
    handlers = [logging.StreamHandler(sys.stderr)]
    if splits:
        handlers[0].setLevel(logging.ERROR)
        handlers.append(logging.StreamHandler(sys.stdout))
        handlers[1].addFilter(lambda record: record.levelno < logging.ERROR)
    root = logging.getLogger()
    for old in _installed:
        root.removeHandler(old)
    _installed[:] = handlers
    for handler in handlers:
        handler.setFormatter(JsonFormatter() if as_json else KlogFormatter())
        handler.addFilter(_current[0])
        handler.addFilter(flood)
        root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("asched").setLevel(logging.INFO)


def speak_for_python() -> None:
    """Log what the interpreter would write to standard error itself, permanently."""
    logging.captureWarnings(capture=True)
    sys.excepthook = _uncaught
    sys.unraisablehook = _unraisable
    threading.excepthook = _in_thread


def is_json() -> bool:
    """Whether every line must be a JSON object."""
    return _current[0].is_json


def loop_failed(_: object, context: Mapping[str, Any]) -> None:
    """The event loop's exception handler. Connections that closed during a callback, as uvloop's
    sometimes do, are not errors.
    """
    error = context.get("exception")
    extra: dict[str, Any] = {"what": context.get("message", "")}
    is_race = isinstance(error, ConnectionError) or (
        isinstance(error, RuntimeError) and "the handler is closed" in str(error)
    )
    if is_race:
        extra |= {"v": 4, "err": error}
        process_log.info("A connection closed under the event loop", extra=extra)
        return
    process_log.error("Error in the event loop", extra=extra, exc_info=error)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    process_log.critical("The process ends by an exception", exc_info=(kind, error, trace))


def _in_thread(failure: threading.ExceptHookArgs) -> None:
    error = failure.exc_value
    process_log.error("A thread ended by an exception", exc_info=error)


def _unraisable(failure: "sys.UnraisableHookArgs") -> None:
    extra = {"what": failure.err_msg or "", "object": repr(failure.object)}
    process_log.error("An exception was ignored", extra=extra, exc_info=failure.exc_value)


def _visible(letter: str) -> str:
    """A printable form of a character of cluster data, which must not move a terminal's cursor,
    end a line or change the direction of text.
    """
    if letter.isprintable() or letter in "\n\t":
        return letter
    return letter.encode("unicode_escape").decode()


def _shown(value: Any) -> str:
    if isinstance(value, str) and "\n" in value:  # klog's block
        return "<\n\t" + value.rstrip("\n").replace("\n", "\n\t") + "\n >"
    if isinstance(value, (str, dict, list, tuple)):
        return _json(value)
    return str(value).replace("\n", "\n\t")


def _json(value: Any) -> str:
    """JSON of cluster data: half a surrogate pair, or a number beyond 64 bits, which orjson
    refuses, must not drop the line.
    """
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:
        import json

        return json.dumps(value, default=str, skipkeys=True)
