"""Names for what differs from run to run: the same value has the same name all through a scenario.

$uid1 $rv2 $continue1 $ip1 $token1 $etag1     numbered by first appearance
$time $microtime $age $pem $hash $server ...  not kept apart
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

Json = Any

#: Versions that clients write by themselves.
LITERAL_VERSIONS: Final = frozenset({"", "0", "1", "abc", "-1", "99999999"})
#: A uid that clients write by themselves.
LITERAL_UID: Final = "00000000-0000-0000-0000-000000000000"
UID: Final = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
TIME: Final = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
TOKEN: Final = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+")
VOLUME: Final = re.compile(r"kube-api-access-[a-z0-9]{5}\b")
VERSION_IN_MESSAGE: Final = re.compile(
    r"((?:resource ?version(?: in precondition| in object meta)?: |current: |"
    r"ResourceVersion in (?:the precondition|record) \(|in record \(|"
    r'resourceVersion\\*":\\*"))(\d+)',
    re.IGNORECASE,
)
TOO_OLD: Final = re.compile(r"(too old resource version: )(\d+) \((\d+)\)")
#: Times that are further from now are the client's own.
PRESENT: Final = timedelta(days=2)
AGE_COLUMNS: Final = frozenset({"Age", "Last Seen", "First Seen"})
BUILD_FIELDS: Final = frozenset(
    {"gitCommit", "buildDate", "goVersion", "compiler", "platform", "gitTreeState"}
)
#: A client's timeoutSeconds above this was chosen at random.
TIMEOUT_S: Final = 100


class Placeholders:
    """Those of one scenario. `address` is the server's host and port."""

    def __init__(self, address: str, *, shows_managers: bool) -> None:
        self._port = int(address.rpartition(":")[2])
        self._shows_managers = shows_managers
        self._texts = {address: "$server"}
        self._names: dict[str, dict[str, str]] = {}
        self._age_columns: list[int] = []

    def add_generated(self, name: str, prefix: str) -> None:
        """Replace the name that a server made of a generateName."""
        number = len(self._texts)  # without the address
        self._texts[name] = f"{prefix}$gen{number}"

    def versions(self) -> list[str]:
        """The names of resource versions, in rising order of the versions."""
        names = self._names.get("rv", {})
        return [names[version] for version in sorted(names, key=int)]

    def name(self, kind: str, value: str) -> str:
        names = self._names.setdefault(kind, {})
        return names.setdefault(value, f"${kind}{len(names) + 1}")

    def version(self, text: str) -> str:
        is_literal = text in LITERAL_VERSIONS or not text.isdigit()
        return text if is_literal else self.name("rv", text)

    def text(self, text: str) -> str:
        for value in sorted(self._texts, key=len, reverse=True):
            text = text.replace(value, self._texts[value])
        text = UID.sub(lambda m: m[0] if m[0] == LITERAL_UID else self.name("uid", m[0]), text)
        text = TIME.sub(_time, text)
        text = TOKEN.sub(lambda m: self.name("token", m[0]), text)
        text = VOLUME.sub("kube-api-access-$suffix", text)
        return "$pem" if "BEGIN CERTIFICATE" in text else text

    def message(self, text: str) -> str:
        text = TOO_OLD.sub(
            lambda m: f"{m[1]}{self.version(m[2])} ({self.version(m[3])})", self.text(text)
        )
        return VERSION_IN_MESSAGE.sub(lambda m: m[1] + self.version(m[2]), text)

    def header(self, name: str, value: str) -> str:
        is_tag = name in ("etag", "if-none-match")
        return self.name("etag", value) if is_tag else self.message(value)

    def query(self, query: dict[str, str]) -> dict[str, str]:
        return {name: self._parameter(name, value) for name, value in query.items()}

    def _parameter(self, name: str, value: str) -> str:
        match name:
            case "hash":
                return "$hash"
            case "timeoutSeconds" if value.isdigit() and int(value) > TIMEOUT_S:
                return "$seconds"
            case "resourceVersion":
                return self.version(value)
            case "continue":
                return self._names.get("continue", {}).get(value, value)
        return self.text(value)

    def value(self, value: Json, key: str = "") -> Json:
        """A body, or a part of one that is found under a key."""
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self.value(entry, key) for entry in value]
        if isinstance(value, str):
            return self._string(value, key)
        return "$port" if key == "targetPort" and value == self._port else value

    def _object(self, value: dict[str, Json]) -> dict[str, Json]:
        if value.get("kind") == "Table" and "rows" in value:
            value = self._table(value)
        return {
            self.text(name): self.value(entry, name)
            for name, entry in value.items()
            if name != "managedFields" or self._shows_managers
        }

    def _table(self, table: dict[str, Json]) -> dict[str, Json]:
        """Without ages; in a watch, only the first table has the definitions of columns."""
        if columns := table.get("columnDefinitions"):
            self._age_columns = [i for i, c in enumerate(columns) if c["name"] in AGE_COLUMNS]
        rows = [
            row
            | {
                "cells": [
                    "$age" if i in self._age_columns else c for i, c in enumerate(row["cells"])
                ]
            }
            for row in table["rows"]
        ]
        return table | {"rows": rows}

    def _string(self, text: str, key: str) -> str:
        match key:
            case "resourceVersion":
                return self.version(text)
            case "continue" if text:
                return self.name("continue", text)
            case "clusterIP" | "clusterIPs" if text and re.fullmatch(r"[\d.]+|[0-9a-f:]+", text):
                return self.name("ip", text)
            case "serverAddress":
                return "$server"
            case "hash":
                return "$hash"
            case "message" | "reason":
                return self.message(text)
        return f"${key}" if key in BUILD_FIELDS else self.text(text)


def _time(found: re.Match[str]) -> str:
    """The name of a present time; any other as it is."""
    try:
        time = datetime.fromisoformat(found[0])
    except ValueError:
        return found[0]
    if abs(time - datetime.now(UTC)) > PRESENT:
        return found[0]
    return "$microtime" if found[1] else "$time"
