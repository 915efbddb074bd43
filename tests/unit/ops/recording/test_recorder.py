"""Recording costs the loop a note, and its troubles are its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from asched.ops.recording.recorder import Recorder, numbered
from asched_lab.replay.lines import Recording
from tests.support import HANG_S
from tests.unit.ops.recording.recorded import a_head, a_machine
from tests.unit.ops.recording.streams import BYTES_MAX, Tape, sights


def test_everything_is_there_once_it_is_closed(tmp_path: Path) -> None:
    tape = Tape(tmp_path)
    assert tape.turn(*sights(5)) == 5
    assert tape.turn() == 0
    tape.recorder.close()

    turns = list(Recording(tape.path))

    assert [len(turn.facts) for turn in turns] == [6, 0]
    assert [turn.at_s for turn in turns] == [1001.0, 1002.0]
    assert all(turn.is_active for turn in turns)


#: A process that ends itself hard as soon as something of a turn was flushed.
CRASHES = """
import os, sys, threading
from pathlib import Path
from tests.unit.ops.recording.streams import Tape, sights

tape = Tape(Path(sys.argv[1]))
file, flush = tape.recorder._file, tape.recorder._file.flush

def flushed():
    flush()
    if tape.recorder._done:
        os._exit(7)

file.flush = flushed
tape.turn(*sights(5))
threading.Event().wait()
"""


def test_a_crash_leaves_what_the_thread_had_written(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", CRASHES, str(tmp_path)], check=False, timeout=HANG_S
    )
    assert child.returncode == 7

    found = Recording(tmp_path / "recording")

    assert [len(turn.facts) for turn in found] == [6]
    assert "ends in the middle" in found.cut_off


def test_a_file_that_cannot_be_is_told_at_once(tmp_path: Path) -> None:
    machine = a_machine()

    with pytest.raises(FileNotFoundError):
        Recorder(machine, a_head(machine), tmp_path / "no" / "such", BYTES_MAX)


def test_each_life_has_its_file(tmp_path: Path) -> None:
    for pods in (1, 2):
        tape = Tape(tmp_path)
        tape.turn(*sights(pods))
        tape.recorder.close()

    facts = [
        [len(turn.facts) for turn in Recording(path)]
        for path in (tape.path, numbered(tape.path, 1))
    ]
    assert facts == [[3], [2]]
