"""Lines of the process itself: what is shown where, in which shape, and from which verbosity on."""

import io
import json
import logging
import threading
import time
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from asched.serve.telemetry import log
from asched.serve.telemetry.flood import LINES_MAX
from asched.serve.telemetry.log import JsonFormatter, KlogFormatter

SAID = logging.getLogger("asched.x")


class Console(NamedTuple):
    out: io.StringIO
    err: io.StringIO

    def read(self) -> tuple[list[str], list[str]]:
        """The lines since the last time."""
        told = []
        for stream in self:
            told.append(stream.getvalue().splitlines())
            stream.seek(0)
            stream.truncate()
        return told[0], told[1]

    def objects(self) -> list[dict[str, Any]]:
        """Those of standard error, as JSON."""
        return [json.loads(line) for line in self.read()[1]]


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    """The streams and hooks that a process has; whatever a test sets up is taken down behind it."""
    made = Console(io.StringIO(), io.StringIO())
    monkeypatch.setattr(log, "sys", SimpleNamespace(stdout=made.out, stderr=made.err))
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    levels = {name: logging.getLogger(name).level for name in ("", "asched")}
    for name in levels:
        logging.getLogger(name).setLevel(logging.DEBUG)
    logging.captureWarnings(capture=False)
    log._current[0] = log.Verbosity(0, {})
    yield made
    logging.captureWarnings(capture=False)
    for handler in log._installed:
        logging.getLogger().removeHandler(handler)
    log._installed.clear()
    log._current[0] = log.Verbosity(0, {})
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def speak() -> None:
    """A line of each kind."""
    SAID.info("zero")
    SAID.info("one", extra={"v": 1})
    SAID.info("two", extra={"v": 2})
    SAID.info("three", extra={"v": 3})
    SAID.error("broken")
    logging.getLogger("library").info("chatter")
    logging.getLogger("library").warning("careful")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, "zero broken careful"),
        ({"verbosity": 2}, "zero one two broken careful"),
        ({"modules": {"test_log_setup": 1}}, "zero one broken careful"),
        ({"verbosity": 2, "modules": {"test_log_setup": 1}}, "zero one broken careful"),
        ({"verbosity": 2, "modules": {"loops": 5}}, "zero one two broken careful"),
    ],
)
def test_what_is_shown(given: dict[str, Any], shown: str, console: Console) -> None:
    """As `-v` and `--vmodule` say; another library is heard from warnings on."""
    log.setup(as_json=True, **given)
    speak()
    assert " ".join(line["msg"] for line in console.objects()) == shown
    assert log.verbosity() == max(
        given.get("verbosity", 0), *given.get("modules", {"": 0}).values()
    )


def test_the_verbosity_changes_while_the_process_runs(console: Console) -> None:
    log.setup(as_json=True)
    for level in (3, 1, 0):
        log.set_verbosity(level)
        assert log.verbosity() == level
        speak()
        assert [line.get("v") for line in console.objects()] == [*range(level + 1), None, 0]


@pytest.mark.parametrize("as_json", [False, True])
def test_only_errors_go_to_standard_error_where_streams_are_split(
    as_json: bool, console: Console
) -> None:
    log.setup(as_json=as_json, splits=True)
    speak()
    out, err = console.read()
    assert (len(out), len(err)) == (2, 1)
    for told, words in zip((*out, *err), ("zero", "careful", "broken"), strict=True):
        assert (json.loads(told)["msg"] if as_json else told.split("] ")[1]) == words


def test_a_second_setup_takes_the_place_of_the_first(console: Console) -> None:
    assert not log.is_json()
    log.setup(splits=True)
    log.setup(as_json=True)
    assert log.is_json()
    SAID.error("once")
    assert [line["msg"] for line in console.objects()] == ["once"]
    log.setup()
    assert not log.is_json()
    SAID.error("once")
    assert [line[0] for line in console.read()[1]] == ["E"]


def test_both_streams_together_are_bounded_by_cause(console: Console) -> None:
    log.setup(splits=True)
    for _ in range(LINES_MAX + 5):
        SAID.error("broken")
        SAID.warning("careful")
    assert [len(lines) for lines in console.read()] == [LINES_MAX] * 2


CREATED_S = 1_763_716_081.123456


def a_record(level: int = logging.INFO, **fields: Any) -> logging.LogRecord:
    record = logging.LogRecord("x", level, "/a/asched/host/loops.py", 88, "synced", (), None)
    record.created, record.process = CREATED_S, 4711
    vars(record).update(fields)
    return record


HEAD = time.strftime("%m%d %H:%M:%S", time.localtime(CREATED_S)) + ".123456    4711 loops.py:88] "


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (a_record(), f"I{HEAD}synced"),
        (a_record(v=4), f"I{HEAD}synced"),
        (a_record(logging.DEBUG), f"I{HEAD}synced"),
        (a_record(logging.WARNING), f"W{HEAD}synced"),
        (a_record(logging.ERROR), f"E{HEAD}synced"),
        (a_record(logging.CRITICAL), f"F{HEAD}synced"),
        (a_record(nodes=3, name_of="a b"), f'I{HEAD}"synced" nodes=3 name_of="a b"'),
        (a_record(names=["a"], how={"b": 1}), f'I{HEAD}"synced" names=["a"] how={{"b":1}}'),
        (a_record(pair=("a", None)), f'I{HEAD}"synced" pair=["a",null]'),
        (a_record(cause="left out", taskName="t", message="m"), f"I{HEAD}synced"),
        (a_record(msg="one\ntwo\n\n"), f"I{HEAD}one\n\ttwo"),
        (a_record(err=ValueError("no")), f'I{HEAD}"synced" err="no"'),
        (a_record(text="a\nb\n\n"), f'I{HEAD}"synced" text=<\n\ta\n\tb\n >'),
        (a_record(name_of="a\x1bb"), f'I{HEAD}"synced" name_of="a\\u001bb"'),
        (a_record(msg="a\x1b\u202eb"), f"I{HEAD}a\\x1b\\u202eb"),
        (a_record(msg="é\x1b"), f"I{HEAD}é\\x1b"),
        (a_record(msg="a %s", args=("b",)), f"I{HEAD}a b"),
    ],
)
def test_klogs_line(record: logging.LogRecord, expected: str) -> None:
    """klog's textlogger: L mmdd hh:mm:ss.uuuuuu threadid file:line] msg, and values as JSON."""
    assert KlogFormatter().format(record) == expected


JSON_HEAD = {"ts": 1_763_716_081_123.456, "caller": "host/loops.py:88", "msg": "synced"}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (a_record(), {**JSON_HEAD, "v": 0}),
        (a_record(v=4, nodes=3), {**JSON_HEAD, "v": 4, "nodes": 3}),
        (a_record(logging.WARNING), {**JSON_HEAD, "v": 0}),
        (a_record(logging.ERROR, names=("a", "b")), {**JSON_HEAD, "names": ["a", "b"]}),
        (a_record(logging.ERROR, err=KeyError()), {**JSON_HEAD, "err": "KeyError"}),
        (a_record(created=5.0), {**JSON_HEAD, "ts": 5000.0, "v": 0}),
    ],
)
def test_an_object_a_line(record: logging.LogRecord, expected: dict[str, Any]) -> None:
    """Upstream's zap encoder: `ts` in milliseconds, and `v` unless it is an error."""
    assert json.loads(JsonFormatter().format(record)) == expected


def test_times_are_cut_to_what_is_shown_of_them() -> None:
    """Microseconds in text, whatever comes behind them; and of milliseconds three digits."""
    late = a_record(created=int(CREATED_S) + 0.9999998)
    assert KlogFormatter().format(late).split(" ")[1].endswith(":01.999999")
    assert json.loads(JsonFormatter().format(a_record(created=5.0001236)))["ts"] == 5000.124


def test_exceptions_are_told_with_where_they_came_from() -> None:
    try:
        int("no")
    except ValueError as error:
        record = a_record(logging.ERROR, exc_info=(ValueError, error, error.__traceback__))
    told = json.loads(JsonFormatter().format(record))["err"]
    assert told.startswith("Traceback")
    assert told.endswith("ValueError: invalid literal for int() with base 10: 'no'")
    line = KlogFormatter().format(record)
    assert line.startswith(f'E{HEAD}"synced" err=<\n\tTraceback')
    assert line.endswith("base 10: 'no'\n >")


class Stopped(KeyboardInterrupt):
    """By a signal."""


def test_what_the_interpreter_would_say_is_logged(console: Console) -> None:
    log.setup(as_json=True)
    log.speak_for_python()

    error, hooks = ValueError("oh"), log.sys
    hooks.excepthook(ValueError, error, None)
    for kind in (KeyboardInterrupt, Stopped):
        hooks.excepthook(kind, kind(), None)
    thread = threading.Thread(target=lambda: 1 // 0)
    thread.start()
    thread.join()
    for words, about in ((None, "x"), ("in a finalizer", "y")):
        told = SimpleNamespace(exc_value=error, err_msg=words, object=about)
        hooks.unraisablehook(told)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("careful", stacklevel=1)

    lines = console.objects()
    assert [line["msg"] for line in lines[:4]] == [
        "The process ends by an exception",
        "A thread ended by an exception",
        "An exception was ignored",
        "An exception was ignored",
    ]
    assert [line["err"].splitlines()[-1] for line in lines[:4]] == [
        "ValueError: oh",
        "ZeroDivisionError: integer division or modulo by zero",
        "ValueError: oh",
        "ValueError: oh",
    ]
    assert [(line["what"], line["object"]) for line in lines[2:4]] == [
        ("", "'x'"),
        ("in a finalizer", "'y'"),
    ]
    assert "careful" in lines[4]["msg"]
    assert len(lines) == 5


@pytest.mark.parametrize(
    ("error", "is_race"),
    [
        (ConnectionResetError("reset"), True),
        (RuntimeError("unable to perform; the handler is closed"), True),
        (RuntimeError("something else"), False),
        (ValueError("the handler is closed"), False),
        (None, False),
    ],
)
def test_connections_that_close_under_the_loop_are_no_error(
    error: Exception | None, is_race: bool, console: Console
) -> None:
    log.setup(as_json=True)
    context = {"message": "it happened", "exception": error}
    log.loop_failed(None, context)
    lines = console.objects()
    assert len(lines) == (not is_race)
    assert [line["what"] for line in lines] == ["it happened"] * len(lines)
    if error is not None and not is_race:
        assert str(error) in lines[0]["err"]
    log.set_verbosity(4)
    log.loop_failed(None, {"exception": error})
    (line,) = console.objects()
    assert (line.get("v"), line["what"]) == (4 if is_race else None, "")
    if is_race:
        assert line["err"] == str(error)
    log.set_verbosity(3)
    log.loop_failed(None, context)
    assert len(console.objects()) == (not is_race)
