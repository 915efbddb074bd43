"""Recording costs the loop a note, and its troubles are its own."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from asched.core.framework.effects import Bind
from asched.core.model.kinds import NODE
from asched.core.state.facts import Fact, Seen
from asched.ops.recording.file import numbered
from asched.ops.recording.recorder import Recorder
from asched_lab.replay.reading import Recording
from tests.builders import a_node, a_pod
from tests.ops.recording.recorded import a_head, a_machine, ours
from tests.patience import HANG_S

BYTES_MAX = 1 << 24


def sights(count: int) -> list[Fact]:
    node = a_node("n1").allocatable(cpu="1000", memory="1000Gi", pods="1000").build()
    return [Seen(NODE, node), *(ours(a_pod(f"p{n}")) for n in range(count))]


class Tape:
    """A machine that is recorded to a file of its own."""

    def __init__(self, folder: Path, bytes_max: int = BYTES_MAX) -> None:
        self.path = folder / "recording"
        machine = a_machine(counter_s=lambda: 0.0)
        self.ended: list[str] = []
        self.has_ended = threading.Event()
        self.recorder = Recorder(
            machine, a_head(machine), self.path, bytes_max, stopped=self._stopped
        )
        self.now_s = 1000.0

    def _stopped(self, why: str) -> None:
        self.ended.append(why)
        self.has_ended.set()

    def turn(self, *facts: Fact) -> int:
        """How many bindings the machine asks for."""
        self.now_s += 1.0
        effects = self.recorder.handle(list(facts), self.now_s)
        return sum(isinstance(effect, Bind) for effect in effects)


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
from tests.ops.recording.test_recorder import Tape, sights

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
    assert "ends in the middle" in found.trouble


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
