"""Where lines go, and how much is said."""

import json
import subprocess
import sys

SCRIPT = """
import logging, sys
from asched.edge.telemetry import log
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
