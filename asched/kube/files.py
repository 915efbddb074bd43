"""Read files named by users, with bounds: a device has no end, and a pipe may have no writer.
Secrets are written so that only their owner can read them.
"""

import errno
import os
import select
from collections.abc import Iterable
from pathlib import Path
from stat import S_ISFIFO
from typing import Final

#: Bundles of CAs have some hundred kilobytes.
BYTES_MAX: Final = 16 << 20
#: A guess: a program that writes to the pipe may first send a request to a cloud.
PIPE_WAIT_S: Final = 10.0
_PIECE_BYTES: Final = 1 << 20


def write_private(name: str | Path, content: bytes) -> Path:
    """Write a file that only its owner may read, replacing a readable one; returns its absolute
    path. Raises OSError.
    """
    path = Path(name).resolve()
    if path.exists() and not path.is_file():  # a device or a pipe
        path.write_bytes(content)
        return path
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    # Path.open has no `opener`.
    with open(fresh, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
        stream.write(content)
    return fresh.replace(path)


def file_content(path: Path | str, bytes_max: int = BYTES_MAX) -> bytes:
    """The whole file. Raises OSError, with a complete `strerror`, also for a larger file and for a
    pipe without a writer.
    """
    data = file_start(path, bytes_max + 1)
    if len(data) > bytes_max:
        raise OSError(errno.EFBIG, f"larger than {bytes_max} bytes", str(path))
    return data


def file_start(path: Path | str, size: int) -> bytes:
    """The first bytes, all if there are fewer. Raises OSError as above."""
    data = bytearray()
    # Path.open has no `opener`.
    with open(path, "rb", buffering=0, opener=_without_waiting) as stream:
        is_pipe = S_ISFIFO(os.fstat(stream.fileno()).st_mode)
        os.set_blocking(stream.fileno(), not is_pipe)
        readable = select.poll()
        readable.register(stream)
        while len(data) < size:
            if is_pipe and not readable.poll(1000 * PIPE_WAIT_S):
                text = f"a pipe without a writer for {PIPE_WAIT_S:.0f} s"
                raise OSError(errno.ETIMEDOUT, text, str(path))
            piece = stream.read(min(_PIECE_BYTES, size - len(data)))
            if piece == b"":
                break
            data += piece or b""  # None: another reader was faster
    return bytes(data)


def named_content(path: str) -> bytes:
    """The whole file; nothing for an empty path. Raises OSError."""
    return file_content(path) if path else b""


def file_versions(files: Iterable[str]) -> dict[str, tuple[int, int, int] | None]:
    """What changes when a file is replaced or written, by its name; None without a file. Symbolic
    links are followed.
    """
    versions: dict[str, tuple[int, int, int] | None] = {}
    for file in files:
        try:
            status = Path(file).stat()
        except OSError:
            versions[file] = None
        else:
            versions[file] = status.st_mtime_ns, status.st_ino, status.st_size
    return versions


def file_text(path: Path | str) -> str:
    """The whole file as UTF-8. Raises OSError and ValueError."""
    return file_content(path).decode()


def _without_waiting(path: str, flags: int) -> int:
    """Open without waiting for a pipe's writer."""
    return os.open(path, flags | os.O_NONBLOCK)
