"""Findings of `asched doctor`.

Rules   a check never raises for an answer of the cluster: an object that may not be read is a
        SKIPPED finding that names the missing right, and other checks still run; every finding
        that is not OK has a fix (`cure`).
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from asched.kube.errors import ApiError, Forbidden

JsonObject = Mapping[str, Any]


class State(StrEnum):
    """The severity of a finding; only a PROBLEM keeps the scheduler from working."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    SKIPPED = "skipped"


class UnusableSettingsError(ValueError):
    """Flags or file of an installation that its start would refuse, in one line."""


class Finding(msgspec.Struct, frozen=True):
    """One line: the check, its state, the observation, and the fix."""

    check: str
    state: State
    text: str
    cure: str = ""


class Identity(msgspec.Struct, frozen=True):
    """The account whose rights are checked."""

    user: str
    groups: tuple[str, ...] = ()

    @classmethod
    def named(cls, user: str, groups: tuple[str, ...] = ()) -> "Identity":
        """A user with the groups that the API server adds."""
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
    """The finding of a check that could not read its objects."""
    if isinstance(error, Forbidden):
        cure = f"run the doctor as a user who may read {what}"
        return Finding(check, State.SKIPPED, f"may not read {what}: {error}", cure)
    if isinstance(error, ApiError):
        text = f"the server answers with status {error.code} for {what}: {error.message}"
        return Finding(check, State.SKIPPED, text, "check the API server's log")
    return Finding(check, State.SKIPPED, f"cannot read {what}: {error}", "try again")


def seconds_since(text: str | None, now: datetime) -> float | None:
    """Age of one of the API's times; None if it is missing or invalid."""
    try:
        return (now - datetime.fromisoformat(text)).total_seconds() if text else None
    except (ValueError, TypeError):
        return None


def ago(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole} s ago" if whole < 120 else f"{whole // 60} min ago"
