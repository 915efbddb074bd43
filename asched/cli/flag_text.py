"""Flags with their effective values as text, for /flagz.

Lists are in brackets and times have units, as Go prints them.

Source  String() of the values of github.com/spf13/pflag and of staging/src/k8s.io/component-base
        cli/flag and logs/api/v1; encoding/csv of Go
"""

from collections.abc import Iterable, Mapping
from typing import Any

from asched.cli.flag_table import ALL, Flag
from asched.core.config.duration import render
from asched.core.model.timestamp import NS_PER_SECOND


def flag_texts(given: Mapping[str, Any]) -> dict[str, str]:
    """Name -> text, without refused flags."""
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
    if flag.kind == "gates":
        return _gates(value)
    if flag.kind == "pattern=N,...":
        return ",".join(f"{pattern}={level}" for pattern, level in value)
    if flag.kind == "namedCertKey":
        return f"[{';'.join(_cert_key(*entry) for entry in value)}]"
    if isinstance(value, Mapping):
        return f"[{_csv(f'{key}={text}' for key, text in sorted(value.items()))}]"
    if isinstance(value, tuple):
        return f"[{_csv(map(str, value))}]"
    return str(value)


def _gates(texts: Iterable[str]) -> str:
    """`component:gate=value`; all gates name one component (`parse_gates`) or an empty one."""
    pairs = []
    for pair in filter(None, ",".join(texts).split(",")):
        component, setting = pair.split(":", 1) if ":" in pair else ("", pair)
        pairs.append(f"{component.strip()}:{setting.strip()}")
    return ",".join(pairs)


def _cert_key(cert_file: str, key_file: str, names: Iterable[str]) -> str:
    shown = ",".join(names)
    return f"{cert_file},{key_file}:{shown}" if shown else f"{cert_file},{key_file}"


def _csv(values: Iterable[str]) -> str:
    """CSV: values with special characters are quoted."""
    return ",".join(
        '"' + value.replace('"', '""') + '"'
        if value[:1].isspace() or value == r"\." or set(value) & set(',"\r\n')
        else value
        for value in values
    )
