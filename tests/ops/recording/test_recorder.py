"""Recording costs the loop a note, and its troubles are its own."""

import errno
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from asched.core.framework.effects import Bind
from asched.core.model.kinds import NODE, POD
from asched.core.state.facts import Fact, Listed, Seen
from asched.ops.recording import recorder as recording
from asched.ops.recording.file import RecordingFile, numbered
from asched.ops.recording.lines import FactReader
from asched.ops.recording.recorder import Recorder
from asched_lab.replay.reading import RecordedTurn, Recording
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


def test_a_machine_that_may_not_decide_is_told_so_again(tmp_path: Path) -> None:
    tape = Tape(tmp_path)
    tape.recorder._machine.is_active = False
    tape.turn(*sights(5))
    tape.recorder.close()

    assert [turn.is_active for turn in Recording(tape.path)] == [False]


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


def test_a_full_disk_ends_the_recording_with_one_line_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """1. The head is written. 2. The disk is full. 3. Pods are placed as before."""
    tape = Tape(tmp_path)
    monkeypatch.setattr(os, "write", full_after(os.write, calls=0))

    with caplog.at_level(logging.ERROR, "asched.recording"):
        bound = [tape.turn(*sights(5))]
        assert tape.has_ended.wait(HANG_S)
        bound += [tape.turn(*(ours(a_pod(f"late-{n}")) for n in range(4)))]
        tape.recorder.close()

    assert bound == [5, 4]
    assert tape.ended == ["No space left on device"]
    assert len(caplog.messages) == 1
    assert "ended after 1 turns: No space left on device" in caplog.messages[0]
    assert not tape.recorder.is_recording
    assert len(tape.recorder._notes) == 0, "nothing is kept for nobody"


def full_after(write, calls):  # type: ignore[no-untyped-def]
    left = [calls]

    def writes(fd, data):  # type: ignore[no-untyped-def]
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data)

    return writes


def test_a_disk_that_stands_still_ends_it_before_memory_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread hangs in a write; the loop goes on, and lets go of what it had noted."""
    stands, goes_on = threading.Event(), threading.Event()

    def hangs(*_: object) -> None:
        stands.set()
        goes_on.wait(HANG_S)

    monkeypatch.setattr(recording, "NOTES_MAX", 50)
    tape = Tape(tmp_path)
    monkeypatch.setattr(tape.recorder._file, "add", hangs)
    tape.turn()
    assert stands.wait(HANG_S)

    assert tape.turn(*sights(40)) == 40
    assert tape.ended == ["the disk does not keep up"]
    assert len(tape.recorder._notes) == 0
    assert tape.turn(ours(a_pod("late"))) == 1
    goes_on.set()
    tape.recorder.close()


def test_it_ends_at_its_bound_and_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "REST_S", 0.001)
    tape = Tape(tmp_path, bytes_max=6_000)
    turns = 0
    while not tape.has_ended.is_set():
        turns += 1
        tape.turn(ours(a_pod(f"p{turns}")))
        tape.has_ended.wait(0.001)
    tape.recorder.close()

    found = list(Recording(tape.path))

    assert tape.ended == ["it has reached its 6000 bytes"]
    assert 0 < len(found) < turns
    assert tape.path.stat().st_size <= 6_000


@pytest.mark.parametrize("half", ["told_part", "asked_part"])
def test_a_bug_of_ours_costs_the_recording_and_no_pod(
    half: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = Tape(tmp_path)
    monkeypatch.setattr(recording, half, lambda *_, **__: 1 / 0)

    assert tape.turn(*sights(5)) == 5
    assert tape.has_ended.wait(HANG_S)
    assert tape.ended == ["ZeroDivisionError: division by zero"]
    assert tape.turn(ours(a_pod("late"))) == 1


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


def keys_of(turn: RecordedTurn) -> list[str]:
    """Of the pods that it was told."""
    found = []
    for raw in turn.facts:
        fact = FactReader().fact(raw, turn.lists)
        assert isinstance(fact, Seen | Listed)
        found += [fact.obj.key] if isinstance(fact, Seen) else [pod.key for pod in fact.objects]
    return found


def test_turns_with_lists_and_without_come_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "REST_S", 0.001)
    tape = Tape(tmp_path)
    told: list[list[str]] = []
    for number in range(60):
        pods = [a_pod(f"p{number}-{k}").build() for k in range(number % 4)]
        told.append([pod.key for pod in pods])
        if number % 7 == 3:
            tape.turn(Listed(POD, tuple(pods)))
        else:
            tape.turn(*(Seen(POD, pod) for pod in pods))
        if number % 10 == 9:
            tape.has_ended.wait(0.003)  # the thread has its turn
    tape.recorder.close()

    turns = list(Recording(tape.path))

    assert [turn.at_s for turn in turns] == [1001.0 + number for number in range(60)]
    assert [keys_of(turn) for turn in turns] == told


def test_the_loop_waits_for_no_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All writing is the thread's."""
    tape = Tape(tmp_path)
    writers: set[int] = set()
    write = RecordingFile._write

    def noted(self: RecordingFile, packed: bytes) -> None:
        writers.add(threading.get_ident())
        write(self, packed)

    monkeypatch.setattr(RecordingFile, "_write", noted)
    for number in range(200):
        tape.turn(ours(a_pod(f"p{number}")))
    tape.recorder.close()

    assert writers == {tape.recorder._thread.ident}
