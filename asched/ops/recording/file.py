"""Recordings on disk: gzip, readable with `zcat`, in frames that are complete when written.

    FILE      the current run, or the last one
    FILE.1    the previous one, ... FILE.3: a new recording renames them and deletes the oldest

After a crash the recording is readable up to the last frame. A full recording ends, since a replay
needs its beginning.

Bounds  bytes_max per file, FILES_KEPT of earlier runs; FRAME_BYTES of lines are packed at a time.
"""

import errno
import os
import zlib
from pathlib import Path
from typing import Final

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
