"""Requests and answers as values, independent of HTTP.

Source  pages recorded from kube-scheduler 1.36.2
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import orjson

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
#: Upstream's error texts tell browsers not to guess the type; most of its other pages do not.
NOSNIFF: Final[Mapping[str, str]] = {"X-Content-Type-Options": "nosniff"}


class Page(msgspec.Struct, frozen=True):
    body: bytes = b""
    status: int = 200
    content_type: str = TEXT
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


class PageRequest(msgspec.Struct, frozen=True):
    """The parts of a request that a page may depend on. The query maps a name to all its values."""

    method: str
    path: str
    query: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    accept: str = ""
    body: bytes = b""

    def has(self, name: str) -> bool:
        return name in self.query


def text(content: str, status: int = 200, *, nosniff: bool = False) -> Page:
    return Page(content.encode(), status, TEXT, NOSNIFF if nosniff else {})


def as_json(content: Any) -> Page:
    return Page(orjson.dumps(content, default=str) + b"\n", 200, JSON, NOSNIFF)


NOT_FOUND: Final = text("404 page not found\n", 404, nosniff=True)


def failure(code: int, reason: str, message: str, *, details: bool = False) -> Page:
    """A metav1.Status for a failure."""
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    if details:
        status["details"] = {}
    body = orjson.dumps({**status, "code": code}) + b"\n"
    return Page(body, code, JSON, NOSNIFF if details else {})


def unauthorized() -> Page:
    return failure(401, "Unauthorized", "Unauthorized")


def forbidden(user: str, verb: str, path: str) -> Page:
    message = f'forbidden: User "{user}" cannot {verb} path "{path}"'
    return failure(403, "Forbidden", message, details=True)
