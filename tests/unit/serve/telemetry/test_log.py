"""Where lines go, and how much is said."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from asched.serve.telemetry.log import JsonFormatter, KlogFormatter
from tests.support import ROOT

SCRIPT = """
import logging, sys
from asched.serve.telemetry import log
log.setup(as_json=sys.argv[1] == "json", splits=sys.argv[2] == "splits", verbosity=1)
said = logging.getLogger("asched.x")
said.info("quiet")
said.warning("careful")
said.info("hidden", extra={"v": 2})
said.error("broken")
"""


def said(*argv: str) -> tuple[list[str], list[str]]:
    """The lines on standard output and on standard error of a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *argv], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_split_streams_send_only_errors_to_standard_error() -> None:
    rest, errors = said("json", "splits")
    assert [json.loads(line)["msg"] for line in rest] == ["quiet", "careful"]
    assert [json.loads(line)["msg"] for line in errors] == ["broken"]
    rest, errors = said("text", "splits")
    assert [line[0] for line in rest] == ["I", "W"]
    assert [line[0] for line in errors] == ["E"]


def test_without_it_everything_goes_to_standard_error() -> None:
    rest, errors = said("text", "together")
    assert rest == []
    assert len(errors) == 3


EVERYTHING = """
import asyncio, logging, sys, threading, warnings
from asched.host.event_loop import run_on_loop
from asched.serve.telemetry import log

log.setup(as_json=sys.argv[1] == "json")
log.speak_for_python()

class Bad:
    def __del__(self):
        raise ValueError("unraisable")

def fail():
    raise ValueError("callback")

def raced():
    raise RuntimeError("unable to perform operation on <TCPTransport>; the handler is closed")

async def work():
    loop = asyncio.get_running_loop()
    loop.call_soon(fail)
    loop.call_soon(raced)
    await asyncio.sleep(0)
    return 0

run_on_loop(work())
Bad()
thread = threading.Thread(target=fail)
thread.start()
thread.join()
logging.getLogger("aiohttp.server").error("library")
logging.getLogger("aiohttp.server").info("chatter")
warnings.warn("warned")
raise ValueError("uncaught")
"""
TOLD = ("callback", "unraisable", "callback", "library", "warned", "uncaught")


def lines_of(script: str, *argv: str) -> list[str]:
    command = [sys.executable, "-c", script, *argv]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_whoever_speaks_the_stream_stays_json() -> None:
    """The loop, threads, destructors, warnings, libraries, and the end of the process itself."""
    lines = [json.loads(line) for line in lines_of(EVERYTHING, "json")]
    assert len(lines) == len(TOLD)
    for line, word in zip(lines, TOLD, strict=True):
        assert word in line["msg"] + line.get("err", "")


def test_text_has_one_head_for_each_of_them() -> None:
    heads = [line for line in lines_of(EVERYTHING, "text") if not line.startswith(("\t", " >"))]
    assert [head[0] for head in heads] == ["E", "E", "E", "E", "W", "F"]


def test_several_lines_are_klogs_block() -> None:
    record = logging.makeLogRecord({"msg": "Using component config", "config": "a: 1\nb: 2\n"})
    assert KlogFormatter().format(record).partition("] ")[2] == (
        '"Using component config" config=<\n\ta: 1\n\tb: 2\n >'
    )


STRANGE = {
    "half a letter": "/x\udcff",
    "inside": {"a": ["\ud800"]},
    "in an error": ValueError("\ud800"),
    "large": 10**30,
    "a key": {1: "x", (2,): "y"},
}


@pytest.mark.parametrize("formatter", [JsonFormatter(), KlogFormatter()])
@pytest.mark.parametrize("what", STRANGE)
def test_what_strangers_chose_is_one_line(what: str, formatter: logging.Formatter) -> None:
    """A byte that is no letter in a request's path was a traceback instead of a line."""
    given = {"msg": "said\udcfe", "levelno": logging.INFO, "what": STRANGE[what]}
    line = formatter.format(logging.makeLogRecord(given))
    assert line.encode().decode() == line
    assert "what" in (json.loads(line) if isinstance(formatter, JsonFormatter) else line)


def test_an_exception_without_words_is_told_by_its_name() -> None:
    record = logging.makeLogRecord({"msg": "m", "levelno": logging.INFO, "err": TimeoutError()})
    assert KlogFormatter().format(record).endswith('"m" err="TimeoutError"')
    assert json.loads(JsonFormatter().format(record))["err"] == "TimeoutError"


def test_nobody_puts_the_text_of_an_exception_into_a_line_by_hand() -> None:
    """It may be empty; the formatters know what to do with the exception itself."""
    for file in (ROOT / "asched").rglob("*.py"):
        assert '"err": str(' not in file.read_text(encoding="utf-8"), file


FORGED = "a\nI0101 00:00:00.000000 1 x.py:1] forged\r\x1b[2J\x85\u2028\u202e\x9b\x00"


@pytest.mark.parametrize("where", ["message", "value", "argument", "object"])
def test_nothing_of_a_name_moves_the_cursor_or_begins_a_line(where: str) -> None:
    record = logging.makeLogRecord({"levelname": "INFO", "created": 0.0, "process": 1})
    if where == "message":
        record.msg = FORGED
    elif where == "argument":
        record.msg, record.args = "pod %s", (FORGED,)
    else:
        record.name_of = FORGED if where == "value" else Path(FORGED)
    lines = KlogFormatter().format(record).split("\n")
    assert [line for line in lines[1:] if not line.startswith(("\t", " >"))] == []
    assert all(letter.isprintable() or letter == "\t" for line in lines for letter in line)
    assert "forged" in "".join(lines)
