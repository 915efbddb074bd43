"""Times of the API: RFC 3339 to seconds since the epoch, and back."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

NS_PER_SECOND: Final = 1_000_000_000


def rfc3339(now_s: float) -> str:
    """Seconds since the epoch as the API writes times: UTC, whole seconds."""
    return f"{_second(int(now_s))}Z"


def micro_time(at_ns: int) -> str:
    """Nanoseconds since the epoch as a metav1.MicroTime: UTC with exactly six digits, which the
    server requires.
    """
    seconds, rest_ns = divmod(at_ns, NS_PER_SECOND)
    return f"{_second(seconds)}.{rest_ns // 1000:06d}Z"


@lru_cache(maxsize=64)
def _second(whole_s: int) -> str:
    """Cached: called thousands of times within the same second."""
    return datetime.fromtimestamp(whole_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def microseconds(text: str) -> int:
    """An API time as microseconds since the epoch. Raises ValueError if it is invalid."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time {text!r} names no time zone")
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def seconds(text: str | None, otherwise: float) -> float:
    """An API time in seconds since 1970; `otherwise` if there is none, or an invalid one."""
    try:
        return microseconds(text or "") / 1e6
    except ValueError:
        return otherwise


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
