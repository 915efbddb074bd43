"""Log lines in kube-scheduler's two shapes: klog text, and JSON for `--logging-format=json`.

    I1121 09:08:01.123456   4711 loops.py:88] "synced" nodes=1000
    {"ts":1763716081123.456,"caller":"host/loops.py:88","msg":"synced","v":0,"nodes":1000}

A call says what happened in a short constant message, and everything that varies in `extra`. The
level of verbosity (`-v`) is `extra={"v": 4}`; lines above the configured one are dropped before
they are built.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/component-base/logs, and recorded output
"""

import logging
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

import orjson

#: Attributes every record has; whatever else it carries came from `extra`.
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "v",
    "taskName",
}
_LETTERS: Final = {"WARNING": "W", "ERROR": "E", "CRITICAL": "F"}


def extras(record: logging.LogRecord) -> dict[str, Any]:
    """What the caller added to the message."""
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


class KlogFormatter(logging.Formatter):
    """klog's text: severity, time, process, source, then the message and its values."""

    def format(self, record: logging.LogRecord) -> str:
        letter = _LETTERS.get(record.levelname, "I")
        stamp = time.strftime("%m%d %H:%M:%S", time.localtime(record.created))
        micros = int(record.created % 1 * 1_000_000)
        values = extras(record)
        message = record.getMessage()
        if record.exc_info:
            values["err"] = self.formatException(record.exc_info)
        text = f'"{message}"' if values else message
        told = "".join(f" {key}={_shown(value)}" for key, value in values.items())
        source = f"{record.filename}:{record.lineno}"
        return f"{letter}{stamp}.{micros:06d} {record.process:7d} {source}] {text}{told}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `ts` in milliseconds, `caller`, `msg`, `v` or `err`, then the
    values.
    """

    def format(self, record: logging.LogRecord) -> str:
        folder = record.pathname.rsplit("/", 2)[-2:]
        line: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{'/'.join(folder)}:{record.lineno}",
            "msg": record.getMessage(),
        }
        if record.levelno < logging.ERROR:
            line["v"] = getattr(record, "v", 0)
        if record.exc_info:
            line["err"] = self.formatException(record.exc_info)
        line.update(extras(record))
        return orjson.dumps(line, default=str).decode()


class Verbosity(logging.Filter):
    """Drops lines whose `v` is above the one configured, by module where `--vmodule` says so."""

    def __init__(self, level: int, modules: Mapping[str, int]) -> None:
        super().__init__()
        self._level = level
        self._modules = modules

    @property
    def highest(self) -> int:
        """No line above this is shown anywhere."""
        return max((self._level, *self._modules.values()))

    def change(self, level: int) -> None:
        """Show more or less from now on."""
        self._level = level

    def filter(self, record: logging.LogRecord) -> bool:
        wanted: int = getattr(record, "v", 0)
        return wanted <= self._modules.get(record.module, self._level)


#: The filter that `setup` put in place.
_current: Final = [Verbosity(0, {})]


def verbosity() -> int:
    """The highest `v` that is shown. Ask before building lines that occur once per pod."""
    return _current[0].highest


def set_verbosity(level: int) -> None:
    """Change `-v` while the process runs."""
    _current[0].change(level)


def setup(
    *,
    as_json: bool = False,
    verbosity: int = 0,
    modules: Mapping[str, int] | None = None,
    splits: bool = False,
) -> None:
    """Send all lines of `asched.*` to standard error in one of the two shapes; with `splits`
    only the errors, and the rest to standard output.
    """
    _current[0] = Verbosity(verbosity, modules or {})
    handlers = [logging.StreamHandler(sys.stderr)]
    if splits:
        handlers[0].setLevel(logging.ERROR)
        handlers.append(logging.StreamHandler(sys.stdout))
        handlers[1].addFilter(lambda record: record.levelno < logging.ERROR)
    for handler in handlers:
        handler.setFormatter(JsonFormatter() if as_json else KlogFormatter())
        handler.addFilter(_current[0])
    root = logging.getLogger("asched")
    root.handlers[:] = handlers
    root.setLevel(logging.INFO)
    root.propagate = False


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return orjson.dumps(value).decode()
    if isinstance(value, (dict, list, tuple)):
        return orjson.dumps(value, default=str).decode()
    return str(value)
