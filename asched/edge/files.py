"""Files that somebody names: read up to a bound, for one may be a device, which has no end."""

import errno
from pathlib import Path
from typing import Final

#: Bundles of authorities have some hundred kilobytes.
BYTES_MAX: Final = 16 << 20


def file_content(path: Path | str, bytes_max: int = BYTES_MAX) -> bytes:
    """All of it. Raises OSError, with a `strerror` that says it all, also for a larger file."""
    with Path(path).open("rb") as stream:
        data = stream.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise OSError(errno.EFBIG, f"larger than {bytes_max} bytes", str(path))
    return data


def file_text(path: Path | str) -> str:
    """The same of UTF-8. Raises OSError and ValueError."""
    return file_content(path).decode()
