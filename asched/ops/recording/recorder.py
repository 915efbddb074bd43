"""Record the machine's facts and effects while it runs: gzip files, readable with `zcat`.

    turns ─> Recorder.handle ─> machine            each turn is encoded at once
                    └── lines ─> thread: compressed and written

    FILE      the current run, or the last one
    FILE.1    the previous one, ... FILE.3: a new recording renames them and deletes the oldest

Facts are encoded just before the machine reads them, which brings their objects into the cache: in
a thread, which delays the loop as much, encoding takes three times as long. Long lists, which
arrive before anything is decided, are encoded in the thread. If the disk is too slow or full, the
recording ends with one log line, what was written stays readable, and scheduling continues. After a
crash it is readable up to the last frame. A full recording ends, since a replay needs its
beginning.

Bounds  NOTES_MAX facts and effects waiting to be written; CLOSE_S for the rest at the end;
        bytes_max per file, FILES_KEPT of earlier runs; FRAME_BYTES of lines are packed at a time.
"""

import errno
import logging
import os
import platform
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from asched.core.cluster.facts import Fact
from asched.core.config.text import deciding
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.cycle.machine import Machine
from asched.core.framework.effects import Effect
from asched.core.queue.queue import MAX_IN_UNSCHEDULABLE_S
from asched.ops.recording.lines import (
    FORMAT,
    RecordingHead,
    Turn,
    asked_part,
    end_line,
    facts_part,
    has_lists,
    head_line,
    turn_line,
    turn_lines,
)

#: Earlier runs besides the current one, so that a process that crashes repeatedly keeps the first
#: crashes.
FILES_KEPT: Final = 3
#: The loop waits for the interpreter lock once per frame.
FRAME_BYTES: Final = 1 << 18
#: Level 1 packs the lines of the decide bench to a seventeenth, 2.2 µs per pod; level 6 to a
#: twenty-second in two and a half times the time.
LEVEL: Final = 1
#: zlib's parameter for a gzip header and trailer.
GZIP: Final = 16 + zlib.MAX_WBITS


class FullError(OSError):
    """The recording has reached its maximum size."""


class RecordingFile:
    """A recording being written. Raises OSError if it cannot be created or written."""

    def __init__(self, path: Path, bytes_max: int) -> None:
        self.path = path
        self.written_bytes = 0
        self._bytes_max = bytes_max
        move_on(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        self._fd = os.open(path, flags, 0o600)  # the file contains names of all objects
        self._packer = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
        self._lines: list[bytes] = []
        self._lines_bytes = 0

    def add(self, line: bytes) -> None:
        """Add a line; call `flush` after the last of several."""
        self._lines.append(line)
        self._lines_bytes += len(line) + 1
        if self._lines_bytes >= FRAME_BYTES:
            self._pack()

    def flush(self) -> None:
        """Write everything added so far, so that it can be read."""
        self._pack()
        self._write(self._packer.flush(zlib.Z_SYNC_FLUSH))

    def close(self) -> None:
        """Close the recording; a reader then knows that it is complete."""
        try:
            self._pack()
            self._write(self._packer.flush(zlib.Z_FINISH))
        finally:
            os.close(self._fd)

    def give_up(self) -> None:
        """Close the file as it is."""
        os.close(self._fd)

    def _pack(self) -> None:
        lines, self._lines, self._lines_bytes = self._lines, [], 0
        if lines:
            lines.append(b"")
            self._write(self._packer.compress(b"\n".join(lines)))

    def _write(self, packed: bytes) -> None:
        self.written_bytes += len(packed)
        if self.written_bytes > self._bytes_max:
            raise FullError(errno.EFBIG, f"it has reached its maximum of {self._bytes_max} bytes")
        view = memoryview(packed)
        while view:
            view = view[os.write(self._fd, view) :]


def move_on(path: Path) -> None:
    """Rename FILE to FILE.1 and so on; the oldest is deleted."""
    for number in range(FILES_KEPT, 0, -1):
        younger = path if number == 1 else numbered(path, number - 1)
        if younger.exists():
            younger.replace(numbered(path, number))


def numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


log = logging.getLogger("asched.recording")

#: Ten seconds of the fastest cluster measured (2,000 bindings per second, five facts and effects
#: each): some 100 MB, reached only if the disk hangs.
NOTES_MAX: Final = 100_000
#: Pause of the thread between two writes; a crash loses at most this much.
REST_S: Final = 0.25
CLOSE_S: Final = 5.0


#: (name, origin, digest of the content) of users' plugins
Plugins = tuple[tuple[str, str, str], ...]


class Here(NamedTuple):
    """What affects decisions besides the configuration: versions, and users' plugins."""

    version: str
    python: str
    numpy: str
    plugins: Plugins


def here(plugins: Plugins = ()) -> Here:
    """The values of this process."""
    return Here(_version(), platform.python_version(), np.__version__, plugins)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # 20 ms, rarely needed

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
    """The parameters from which a replay builds the same machine."""
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
    """The two parts of a turn's line, or the turn if it has lists, and the number of its facts and
    effects.
    """

    said: tuple[bytes, bytes] | Turn
    size: int


class Recorder:
    """Passes facts to a machine and records them. `stopped` is called once with the reason if the
    recording ends early.
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
        """Raises OSError if the file cannot be created."""
        self._machine = machine
        self._stopped = stopped
        self._file = RecordingFile(path, bytes_max)
        self._notes: deque[_Note] = deque()
        #: facts and effects noted, and written: each counter belongs to one thread
        self._noted = self._done = 0
        self._turns = 0
        #: CPU time of the thread, in seconds
        self.thread_s = 0.0
        #: why the recording has ended; set by either thread
        self._ended = ""
        self._closing = threading.Event()
        self._file.add(head_line(head))
        self._file.flush()
        self._thread = threading.Thread(
            target=self._write_until_closed, name="recording", daemon=True
        )
        self._thread.start()

    @property
    def written_bytes(self) -> int:
        return self._file.written_bytes

    def handle(self, facts: list[Fact], now_s: float) -> list[Effect]:
        """Run and record a turn of the machine."""
        machine = self._machine
        is_active, first = machine.is_active, b""
        if not (self._ended or has_lists(facts)):
            try:
                first = facts_part(now_s, facts, is_active=is_active)
            except Exception as error:  # noqa: BLE001 - a bug here must only end the recording
                self._end(f"{type(error).__name__}: {error}")
        effects = machine.handle(facts, now_s)
        if not self._ended:
            limit = machine.limit
            turn = Turn(now_s, is_active, limit.went_on, facts, effects, limit.resumed)
            self._note(first, turn)
        return effects

    def _note(self, first: bytes, turn: Turn) -> None:
        """`first` is empty for a turn with lists."""
        count = 1 + len(turn.facts) + len(turn.effects)
        try:
            said: Turn | tuple[bytes, bytes] = turn
            if first:
                said = first, asked_part(turn.effects, turn.went_on, resumed=turn.resumed)
            self._notes.append(_Note(said, count))
        except Exception as error:  # noqa: BLE001 - a bug here must only end the recording
            self._end(f"{type(error).__name__}: {error}")
            return
        self._noted += count
        if self._noted - self._done > NOTES_MAX:
            self._end("the disk is too slow")

    def close(self) -> None:
        """Write the remaining notes, for CLOSE_S at most."""
        self._closing.set()
        self._thread.join(CLOSE_S)

    def _end(self, why: str) -> None:
        if not self._ended:
            self._ended = why
            self._notes.clear()  # the thread may be taking one
            path, turns = self._file.path, self._turns
            log.error("recording to %s ended after %d turns: %s", path, turns, why)
            self._stopped(why)

    # --- in the thread ---------------------------------------------------------------------------

    def _write_until_closed(self) -> None:
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
        except Exception as error:  # noqa: BLE001 - a bug here must only end the recording
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
