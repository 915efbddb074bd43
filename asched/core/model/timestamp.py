"""Times of the API: RFC 3339 texts to seconds since the epoch, and back."""

from datetime import UTC, datetime


def rfc3339(now_s: float) -> str:
    """Seconds since the epoch as the API writes times: UTC, whole seconds."""
    return datetime.fromtimestamp(int(now_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(now_s: float) -> str:
    """Seconds since the epoch as the API writes a MicroTime: UTC, six digits."""
    return datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def microseconds(text: str) -> int:
    """An API time as microseconds since the epoch. Raises ValueError if it is none."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time {text!r} names no time zone")
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
