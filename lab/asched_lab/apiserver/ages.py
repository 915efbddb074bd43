"""Ages of objects, also in the short form that kubectl prints."""

import calendar
import time


def age(moment: str | None, now_s: float) -> str:
    """The age, as kubectl prints it: `5s`, `3m20s`, `2h`, `4d`."""
    if not moment:
        return "<unknown>"
    return duration(int(max(0, now_s - seconds(moment))))


def seconds(moment: str) -> int:
    """A timestamp of an object in whole seconds since the epoch."""
    return calendar.timegm(time.strptime(moment[:19], "%Y-%m-%dT%H:%M:%S"))


def duration(seconds: int) -> str:
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        rest = seconds % 60
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        rest = minutes % 60
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        rest = hours % 24
        return f"{days}d{rest}h" if rest else f"{days}d"
    return f"{days}d" if days < 730 else f"{days // 365}y"
