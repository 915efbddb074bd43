"""Recording: what the machine is told and decides, kept beside it as it happens.

    turns ─> Recorder.handle ─> machine            each turn becomes a line while it is at hand
                    └── lines ─> thread: packed, to the disk

Objects are made bytes of just before the machine reads them, which has then less to fetch: in a
thread, which holds up the loop as much, it takes three times as long. Long lists, which come when
nothing is decided yet, are left to the thread, and so is all that may wait. Where the disk does not
keep up, or refuses, recording ends with one line, what was written stays readable, and scheduling
goes on.

Bounds  NOTES_MAX facts and effects that wait to be written; CLOSE_S for the rest at the end.
"""

import logging
import platform
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from asched.core.config.text import deciding
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.cycle.machine import Machine
from asched.core.framework.effects import Effect
from asched.core.queue.queue import MAX_IN_UNSCHEDULABLE_S
from asched.core.state.facts import Fact
from asched.ops.recording.file import RecordingFile
from asched.ops.recording.lines import (
    FORMAT,
    RecordingHead,
    Turn,
    asked_part,
    end_line,
    has_lists,
    head_line,
    told_part,
    turn_line,
    turn_lines,
)

log = logging.getLogger("asched.recording")

#: Ten seconds of the fastest cluster measured (2,000 bindings a second, five facts and effects
#: each): some 100 MB that only a disk which stands still makes us hold.
NOTES_MAX: Final = 100_000
#: So long the thread leaves the loop alone; what a crash loses at most.
REST_S: Final = 0.25
CLOSE_S: Final = 5.0


#: (name, origin, what tells the content) of users' plugins
Plugins = tuple[tuple[str, str, str], ...]


class Here(NamedTuple):
    """What decides beside the configuration: versions, and users' plugins."""

    version: str
    python: str
    numpy: str
    plugins: Plugins


def here(plugins: Plugins = ()) -> Here:
    """Of this process."""
    return Here(_version(), platform.python_version(), np.__version__, plugins)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # 20 ms that few starts need

    try:
        return version("asched")
    except PackageNotFoundError:
        return "unknown"


def head_of(
    machine: Machine,
    configuration: SchedulerConfiguration,
    plugins: Plugins = (),
    max_in_unschedulable_s: float = MAX_IN_UNSCHEDULABLE_S,
) -> RecordingHead:
    """What a replay makes the same machine of."""
    now = here(plugins)
    return RecordingHead(
        format=FORMAT,
        configuration=deciding(configuration),
        gates=dict(configuration.gates),
        began=datetime.now(UTC).isoformat(timespec="seconds"),
        version=now.version,
        python=now.python,
        numpy=now.numpy,
        machine=platform.platform(),
        plugins=now.plugins,
        seed=machine.context.seed,
        bindings_max=machine.bindings_max,
        max_in_unschedulable_s=max_in_unschedulable_s,
        advises=machine.context.advises,
    )


class _Note(NamedTuple):
    """The two parts of a turn's line, or the turn, if it has lists; and how many facts and effects
    it has.
    """

    said: tuple[bytes, bytes] | Turn
    size: int


class Recorder:
    """Stands before a machine and hands on what it is told. `stopped` is called, once, with what
    ended a recording before its time.
    """

    def __init__(
        self,
        machine: Machine,
        head: RecordingHead,
        path: Path,
        bytes_max: int,
        *,
        stopped: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Raises OSError if there can be no such file."""
        self._machine = machine
        self._stopped = stopped
        self._file = RecordingFile(path, bytes_max)
        self._notes: deque[_Note] = deque()
        #: facts and effects that were noted, and that were written: one thread counts each
        self._noted = self._done = 0
        self._turns = 0
        #: processor time that the thread took, in seconds
        self.thread_s = 0.0
        #: why nothing is noted any more; either thread may say so
        self._ended = ""
        self._closing = threading.Event()
        self._file.add(head_line(head))
        self._file.flush()
        self._thread = threading.Thread(target=self._live, name="recording", daemon=True)
        self._thread.start()

    @property
    def written_bytes(self) -> int:
        return self._file.written_bytes

    def handle(self, facts: list[Fact], now_s: float) -> list[Effect]:
        """A turn of the machine."""
        machine = self._machine
        is_active, told = machine.is_active, b""
        if not (self._ended or has_lists(facts)):
            try:
                told = told_part(now_s, facts, is_active=is_active)
            except Exception as error:  # noqa: BLE001 - our bug costs the recording and no more
                self._end(f"{type(error).__name__}: {error}")
        effects = machine.handle(facts, now_s)
        if not self._ended:
            limit = machine.limit
            turn = Turn(now_s, is_active, limit.went_on, facts, effects, limit.resumed)
            self._note(told, turn)
        return effects

    def _note(self, told: bytes, turn: Turn) -> None:
        """`told` is empty for a turn that has lists."""
        count = 1 + len(turn.facts) + len(turn.effects)
        try:
            said: Turn | tuple[bytes, bytes] = turn
            if told:
                said = told, asked_part(turn.effects, turn.went_on, resumed=turn.resumed)
            self._notes.append(_Note(said, count))
        except Exception as error:  # noqa: BLE001 - our bug costs the recording and no more
            self._end(f"{type(error).__name__}: {error}")
            return
        self._noted += count
        if self._noted - self._done > NOTES_MAX:
            self._end("the disk does not keep up")

    def close(self) -> None:
        """Write what is left, for CLOSE_S at most."""
        self._closing.set()
        self._thread.join(CLOSE_S)

    def _end(self, why: str) -> None:
        if not self._ended:
            self._ended = why
            self._notes.clear()  # whoever takes one just now finds none
            path, turns = self._file.path, self._turns
            log.error("recording to %s ended after %d turns: %s", path, turns, why)
            self._stopped(why)

    # --- in the thread ---------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            while not self._closing.wait(REST_S) and not self._ended:
                self._write_notes()
                self._file.flush()
                self.thread_s = time.thread_time()
            if self._ended:
                self._file.give_up()
                return
            self._write_notes()
            self._file.add(end_line(self._turns))
            self._file.close()
            self.thread_s = time.thread_time()
            self._ended = "closed"
        except OSError as error:
            self._end(error.strerror or str(error))
        except Exception as error:  # noqa: BLE001 - our bug costs the recording and no more
            self._end(f"{type(error).__name__}: {error}")

    def _write_notes(self) -> None:
        notes, file = self._notes, self._file
        while notes:
            try:
                said, count = notes.popleft()
            except IndexError:
                return
            for line in turn_lines(said) if isinstance(said, Turn) else (turn_line(*said),):
                file.add(line)
            self._turns += 1
            self._done += count
