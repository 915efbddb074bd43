"""One request and its answer as plain values, and the parsed Accept header.

The server behind these values is synchronous; only `server.py` uses sockets. So a simulation can
call the same handlers without any.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import orjson
import yaml

from asched_lab.apiserver.refusals import ApiError

JsonObject = dict[str, Any]


JSON: Final = "application/json"
YAML: Final = "application/yaml"
TEXT: Final = "text/plain; charset=utf-8"
OBJECT_TYPES: Final = f"{JSON}, {YAML}, application/vnd.kubernetes.protobuf"
STREAM_TYPES: Final = f"{JSON};stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
SHAPES: Final = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})


@dataclass(frozen=True, slots=True)
class User:
    """The authenticated user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


@dataclass(slots=True)
class Call:
    """One request; header names are lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    user: User

    def flag(self, name: str) -> bool:
        """A boolean of the query: present and neither `0` nor `false`."""
        return self.query.get(name, "0").lower() not in {"0", "false", ""}

    @property
    def dry_run(self) -> bool:
        return self.query.get("dryRun") == "All"


@dataclass(slots=True)
class Reply:
    """One answer."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    #: Texts of Warning headers, one header each.
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The requested form of the answer: bytes (JSON or YAML) and shape ('' for the object)."""

    media: str
    shape: str = ""


@lru_cache(maxsize=256)
def wanted(accept: str, *, stream: bool) -> Wanted:
    """The first form in an Accept header that this server supports.

    Raises ApiError 406. Protobuf is not supported; clients that request it offer JSON as well.
    """
    if not accept:
        return Wanted(JSON)
    shaped = False
    for item in accept.split(","):
        media, *parameters = (part.strip() for part in item.split(";"))
        values = dict(part.partition("=")[::2] for part in parameters)
        if media in {"*/*", "application/*"}:
            return Wanted(JSON)
        if media not in {JSON, YAML}:
            continue
        shape = values.get("as", "")
        if not shape:
            return Wanted(media)
        if shape in SHAPES and values.get("v") == "v1" and values.get("g") == "meta.k8s.io":
            return Wanted(media, shape)
        shaped = True
    if shaped:
        message = f"only the following media types are accepted: {OBJECT_TYPES}"
        raise ApiError(406, message)
    listed = f"{OBJECT_TYPES}, {STREAM_TYPES}" if stream else OBJECT_TYPES
    message = f"406: Not Acceptable\n\nAvailable representations: {listed}"
    raise ApiError(406, message, details={})


def answer(obj: JsonObject, *, status: int = 200, media: str = JSON) -> Reply:
    """An object as an answer."""
    if media == YAML:
        return Reply(status, yaml.safe_dump(obj).encode(), YAML)
    return Reply(status, orjson.dumps(obj))


def refusal(error: ApiError) -> Reply:
    """A refusal as an answer; always JSON, or bare text where the real server writes text."""
    headers = {}
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    if error.text:
        return Reply(error.code, error.message.encode(), TEXT, headers)
    return Reply(error.code, orjson.dumps(error.status()), JSON, headers)
