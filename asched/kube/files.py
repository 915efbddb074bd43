"""Files that somebody names: read up to a bound, for one may be a device, which has no end, and of
a pipe not waited for without one: its writer may never come. Secrets are written for their owner.
"""

import errno
import os
import select
from pathlib import Path
from stat import S_ISFIFO
from typing import Final

#: Bundles of authorities have some hundred kilobytes.
BYTES_MAX: Final = 16 << 20
#: A guess: what writes to a pipe may ask a cloud first.
PIPE_WAIT_S: Final = 10.0
_PIECE_BYTES: Final = 1 << 20


def write_private(name: str | Path, content: bytes) -> Path:
    """Write a file that only its owner may read, also where there is one that others may; returns
    its absolute path. Raises OSError.
    """
    path = Path(name).resolve()
    if path.exists() and not path.is_file():  # a device or a pipe
        path.write_bytes(content)
        return path
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    # Path.open takes no opener.
    with open(fresh, "xb", opener=_for_its_owner) as stream:
        stream.write(content)
    return fresh.replace(path)


def _for_its_owner(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def file_content(path: Path | str, bytes_max: int = BYTES_MAX) -> bytes:
    """All of it. Raises OSError, with a `strerror` that says it all, also for a larger file and for
    a pipe that nobody writes to.
    """
    data = file_start(path, bytes_max + 1)
    if len(data) > bytes_max:
        raise OSError(errno.EFBIG, f"larger than {bytes_max} bytes", str(path))
    return data


def file_start(path: Path | str, size: int) -> bytes:
    """The first bytes of it, all if there are fewer. Raises OSError as above."""
    data = bytearray()
    # Path.open takes no opener.
    with open(path, "rb", buffering=0, opener=_without_waiting) as stream:
        is_pipe = S_ISFIFO(os.fstat(stream.fileno()).st_mode)
        os.set_blocking(stream.fileno(), not is_pipe)
        readable = select.poll()
        readable.register(stream)
        while len(data) < size:
            if is_pipe and not readable.poll(1000 * PIPE_WAIT_S):
                text = f"a pipe to which nobody wrote for {PIPE_WAIT_S:.0f} s"
                raise OSError(errno.ETIMEDOUT, text, str(path))
            piece = stream.read(min(_PIECE_BYTES, size - len(data)))
            if piece == b"":
                break
            data += piece or b""  # None: another reader was faster
    return bytes(data)


def file_text(path: Path | str) -> str:
    """The same of UTF-8. Raises OSError and ValueError."""
    return file_content(path).decode()


def _without_waiting(path: str, flags: int) -> int:
    """Else whoever opens a pipe waits for its writer."""
    return os.open(path, flags | os.O_NONBLOCK)
