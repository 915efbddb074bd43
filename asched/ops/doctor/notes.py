"""What a check of `asched doctor` says, and how it reads the cluster.

Rules   a check never raises for what the cluster answers: what may not be read is a SKIPPED finding
        that names the missing right, so that the others still tell theirs; every finding that is
        not OK has a cure.
Bounds  LIST_MAX objects of a list are looked at; READ_TIMEOUT_S for one request.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import msgspec
import orjson

from asched.kube.errors import ApiError, Forbidden, NotFound
from asched.kube.session import Session, read_json
from asched.kube.transport import Transport

#: Enough for the Deployments of a large cluster; beyond it a finding says that more exist.
LIST_MAX: Final = 2000
READ_TIMEOUT_S: Final = 15.0
#: Questions in flight at once: about forty are asked.
CONNECTIONS: Final = 8

JsonObject = Mapping[str, Any]


class State(StrEnum):
    """How a finding is to be taken; only a PROBLEM keeps the scheduler from doing its work."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    SKIPPED = "skipped"


class Finding(msgspec.Struct, frozen=True):
    """One line: which check, how it stands, what was seen, and what to do about it."""

    check: str
    state: State
    text: str
    cure: str = ""


class Identity(msgspec.Struct, frozen=True):
    """Whose rights are looked at."""

    user: str
    groups: tuple[str, ...] = ()

    @classmethod
    def named(cls, user: str, groups: tuple[str, ...] = ()) -> "Identity":
        """A user with the groups the API server adds by itself."""
        own: tuple[str, ...] = ("system:authenticated",)
        prefix, _, rest = user.partition("system:serviceaccount:")
        if not prefix and rest.count(":") == 1:
            namespace = rest.partition(":")[0]
            own = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", *own)
        return cls(user, (*groups, *own))

    @property
    def service_account(self) -> tuple[str, str]:
        """Namespace and name, or two empty strings."""
        prefix, _, rest = self.user.partition("system:serviceaccount:")
        namespace, _, name = rest.partition(":")
        return ("", "") if prefix else (namespace, name)


class Reader:
    """Reads of one session. Every method raises ApiError or TransportError."""

    def __init__(self, session: Session) -> None:
        self._transport: Transport = session.pool(CONNECTIONS, purpose="doctor")

    async def get(self, path: str) -> dict[str, Any]:
        reply = await self._transport.request("GET", path, timeout_s=READ_TIMEOUT_S)
        return read_json(reply)

    async def get_or_none(self, path: str) -> dict[str, Any] | None:
        """The object, or None if there is none."""
        try:
            return await self.get(path)
        except NotFound:
            return None

    async def items(self, path: str) -> list[dict[str, Any]]:
        """The first LIST_MAX objects of a list."""
        joint = "&" if "?" in path else "?"
        found = (await self.get(f"{path}{joint}limit={LIST_MAX}")).get("items")
        return found if isinstance(found, list) else []

    async def ask(self, group_version: str, resource: str, kind: str, spec: Any) -> dict[str, Any]:
        """POST a review; returns it with its status."""
        path = f"/apis/{group_version}/{resource}"
        body = orjson.dumps({"apiVersion": group_version, "kind": kind, "spec": spec})
        reply = await self._transport.request("POST", path, body, timeout_s=READ_TIMEOUT_S)
        return read_json(reply)


def unreadable(check: str, what: str, error: Exception) -> Finding:
    """The finding of a check that could not look."""
    if isinstance(error, Forbidden):
        cure = f"run the doctor as somebody who may read {what}"
        return Finding(check, State.SKIPPED, f"may not read {what}: {error}", cure)
    if isinstance(error, ApiError):
        text = f"the server answers {error.code} about {what}: {error.message}"
        return Finding(check, State.SKIPPED, text, "look at the API server's log")
    return Finding(check, State.SKIPPED, f"cannot read {what}: {error}", "try again")


def seconds_since(text: str | None, now: datetime) -> float | None:
    """Age of one of the API's times; None if there is none or it cannot be read."""
    try:
        return (now - datetime.fromisoformat(text)).total_seconds() if text else None
    except (ValueError, TypeError):
        return None


def ago(seconds: float) -> str:
    """How long ago, for people."""
    whole = max(0, round(seconds))
    return f"{whole} s ago" if whole < 120 else f"{whole // 60} min ago"
