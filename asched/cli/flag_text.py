"""Flags as text again: every flag with the value it has, as /flagz shows them.

Lists stand in brackets, times have units, as Go prints them.
"""

from collections.abc import Mapping
from typing import Any

from asched.cli.flag_table import ALL, Flag
from asched.core.config.duration import render
from asched.core.model.timestamp import NS_PER_SECOND


def flag_texts(given: Mapping[str, Any]) -> dict[str, str]:
    """Name to text; flags that are refused are left out."""
    return {
        flag.name: _text(flag, given[flag.key]) if flag.key in given else _default(flag)
        for flag in ALL
        if not flag.refused
    }


def _default(flag: Flag) -> str:
    if flag.kind in ("strings", "int32Slice", "namedCertKey", "stringToString"):
        return f"[{flag.default}]"
    return flag.default


def _text(flag: Flag, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if flag.kind == "duration":
        return render(round(value * NS_PER_SECOND))
    if flag.kind == "durationNs":
        return render(value)
    if isinstance(value, Mapping):
        return ",".join(f"{key}={one}" for key, one in value.items())
    if isinstance(value, tuple):
        return f"[{','.join(_item(item) for item in value)}]"
    return str(value)


def _item(item: Any) -> str:
    if not isinstance(item, tuple):
        return str(item)
    *parts, last = item
    names = ",".join(last) if isinstance(last, tuple) else str(last)
    return ",".join(map(str, parts)) + (f":{names}" if names else "")
