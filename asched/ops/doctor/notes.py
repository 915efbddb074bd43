"""What a check of `asched doctor` says.

Rules   a check never raises for what the cluster answers: what may not be read is a SKIPPED finding
        that names the missing right, so that the others still tell theirs; every finding that is
        not OK has a cure.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from asched.kube.errors import ApiError, Forbidden

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
