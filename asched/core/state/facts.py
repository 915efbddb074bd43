"""Facts: everything that reaches the still half from outside, seen by a watch or answered to an
effect.

A watch stream speaks with three of them. `Seen` and `Gone` tell of one object; `Listed` replaces
all that was known of a kind, so that a relist neither loses nor invents an object: what it does not
contain is gone. Answers carry the id of the effect they answer (`framework/effects.py` pairs them).
"""

from dataclasses import dataclass
from typing import Any

from asched.core.model.kinds import Kind
from asched.core.model.meta import Record


@dataclass(frozen=True, slots=True)
class Fact:
    """Base of all facts."""


# --- what the watch streams see ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seen(Fact):
    """The newest version of an object: it was added or changed, which of the two the state
    knows.
    """

    kind: Kind
    obj: Record


@dataclass(frozen=True, slots=True)
class Gone(Fact):
    """The object was deleted (or left the watch's selector); `obj` is its last known version."""

    kind: Kind
    obj: Record


@dataclass(frozen=True, slots=True)
class Listed(Fact):
    """A complete list of a kind."""

    kind: Kind
    objects: tuple[Record, ...]


# --- answers -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer(Fact):
    """Base of the outcomes of effects."""

    effect_id: int


@dataclass(frozen=True, slots=True)
class Bound(Answer):
    """The API server accepted the binding."""


@dataclass(frozen=True, slots=True)
class Refused(Answer):
    """The API server said no, for certain: nothing was changed.

    `code` is the HTTP status, 0 for ours.
    """

    code: int
    message: str
    reason: str = ""  # metav1.Status.reason, e.g. Conflict


@dataclass(frozen=True, slots=True)
class Unknown(Answer):
    """No answer that could be trusted arrived: the request may or may not have been carried out."""

    message: str


@dataclass(frozen=True, slots=True)
class Done(Answer):
    """A write succeeded. `obj` is the JSON object the server answered, where the effect asks for
    it.
    """

    obj: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Replied(Answer):
    """An extender answered; `value` is the JSON of it, which may be anything."""

    value: Any


@dataclass(frozen=True, slots=True)
class ReadPlaced(Answer):
    """A pod read back has this node."""

    node: str


@dataclass(frozen=True, slots=True)
class ReadPending(Answer):
    """A pod read back has no node."""


@dataclass(frozen=True, slots=True)
class ReadGone(Answer):
    """A pod read back does not exist any more, or exists anew with another uid."""


@dataclass(frozen=True, slots=True)
class Returned(Answer):
    """A coroutine of a plugin returned a value."""

    value: Any


@dataclass(frozen=True, slots=True)
class Raised(Answer):
    """A coroutine of a plugin raised."""

    error: Exception


@dataclass(frozen=True, slots=True)
class TimedOut(Answer):
    """A wait reached its deadline."""
