"""Recordings on disk: gzip, so that `zcat` reads them, in frames that are whole when written.

    FILE      the life that is recorded, or the last one
    FILE.1    the one before, ... FILE.3: whoever begins moves them on and drops the last

Whatever was written before a crash can be read up to the last frame. A recording has a bound; one
that is full ends there, since its beginning is what makes the rest worth anything.

Bounds  bytes_max a file, FILES_KEPT of earlier lives; FRAME_BYTES of lines are packed at a time.
"""

import errno
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

#: Earlier lives beside the one that is written: a process that dies again and again drops no more
#: than this.
FILES_KEPT: Final = 3
#: The loop waits for Python's lock once for each.
FRAME_BYTES: Final = 1 << 18
READ_BYTES: Final = 1 << 18
#: Level 1 packs the lines of the decide bench to a seventeenth, 2.2 µs a pod; level 6 to a
#: twenty-second in two and a half times the time.
LEVEL: Final = 1
#: zlib's word for a gzip header and trailer.
GZIP: Final = 16 + zlib.MAX_WBITS


class FullError(OSError):
    """The recording has reached its bound."""


class RecordingFile:
    """One that is written. Raises OSError where it cannot be made or written."""

    def __init__(self, path: Path, bytes_max: int) -> None:
        self.path = path
        self.written_bytes = 0
        self._bytes_max = bytes_max
        move_on(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        self._fd = os.open(path, flags, 0o600)  # names of everything in the cluster
        self._packer = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
        self._lines: list[bytes] = []
        self._lines_bytes = 0

    def add(self, line: bytes) -> None:
        """A line; whoever adds the last one of many flushes."""
        self._lines.append(line)
        self._lines_bytes += len(line) + 1
        if self._lines_bytes >= FRAME_BYTES:
            self._pack()

    def flush(self) -> None:
        """Everything added so far can be read from here on."""
        self._pack()
        self._write(self._packer.flush(zlib.Z_SYNC_FLUSH))

    def close(self) -> None:
        """The end: afterwards a reader knows that nothing is missing."""
        try:
            self._pack()
            self._write(self._packer.flush(zlib.Z_FINISH))
        finally:
            os.close(self._fd)

    def give_up(self) -> None:
        """Leave what was written."""
        os.close(self._fd)

    def _pack(self) -> None:
        lines, self._lines, self._lines_bytes = self._lines, [], 0
        if lines:
            lines.append(b"")
            self._write(self._packer.compress(b"\n".join(lines)))

    def _write(self, packed: bytes) -> None:
        self.written_bytes += len(packed)
        if self.written_bytes > self._bytes_max:
            raise FullError(errno.EFBIG, f"it has reached its {self._bytes_max} bytes")
        view = memoryview(packed)
        while view:
            view = view[os.write(self._fd, view) :]


def move_on(path: Path) -> None:
    """FILE becomes FILE.1 and so on, the oldest goes."""
    for number in range(FILES_KEPT, 0, -1):
        younger = path if number == 1 else numbered(path, number - 1)
        if younger.exists():
            younger.replace(numbered(path, number))


def numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


class RecordingReader:
    """The lines of a recording. `is_whole`: after the last one, whether it was closed; `trouble`
    says what ended it otherwise.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.is_whole = False
        self.trouble = ""

    def __iter__(self) -> Iterator[bytes]:
        """Raises OSError if the file cannot be opened."""
        rest = b""
        with self._path.open("rb") as file:
            unpacker = zlib.decompressobj(GZIP)
            while packed := file.read(READ_BYTES):
                try:
                    rest += unpacker.decompress(packed)
                except zlib.error as error:
                    self.trouble = str(error)
                    break
                *lines, rest = rest.split(b"\n")
                yield from lines
            self.is_whole = unpacker.eof and not rest
        if not self.is_whole and not self.trouble:
            self.trouble = f"it ends in the middle, with {len(rest)} bytes of a line"
