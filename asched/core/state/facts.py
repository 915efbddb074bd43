"""Facts: everything that reaches the deciding half from outside, seen by a watch or answered to an
effect.

A watch stream speaks with three of them. `Seen` and `Gone` tell of one object; `Listed` replaces
all that was known of a kind, so that a relist neither loses nor invents an object: what it does not
contain is gone. Answers carry the id of the effect they answer (`framework/effects.py` pairs them).
"""

from typing import Any

import msgspec

from asched.core.model.kinds import Kind
from asched.core.model.meta import Record


class Fact(msgspec.Struct, frozen=True):
    """Base of all facts."""


# --- what the watch streams see ------------------------------------------------------------------


class Seen(Fact, frozen=True):
    """The newest version of an object: it was added or changed, which of the two the state
    knows.
    """

    kind: Kind
    obj: Record


class Gone(Fact, frozen=True):
    """The object was deleted (or left the watch's selector); `obj` is its last known version."""

    kind: Kind
    obj: Record


class Listed(Fact, frozen=True):
    """A complete list of a kind, or one part of it: they are numbered from 0, and the last one has
    no more behind it. A list that begins anew makes up for one that was never ended.
    """

    kind: Kind
    objects: tuple[Record, ...]
    part: int = 0
    has_more: bool = False


class WallClock(Fact, frozen=True):
    """Calendars are so many seconds ahead of the time that turns are told, which never jumps."""

    ahead_s: float


# --- answers -------------------------------------------------------------------------------------


class Answer(Fact, frozen=True):
    """Base of the outcomes of effects."""

    effect_id: int


class Bound(Answer, frozen=True):
    """The API server accepted the binding."""


class Refused(Answer, frozen=True):
    """The API server said no, for certain: nothing was changed.

    `code` is the HTTP status, 0 for ours.
    """

    code: int
    message: str
    reason: str = ""  # metav1.Status.reason, e.g. Conflict


class Unknown(Answer, frozen=True):
    """No answer that could be trusted arrived: the request may or may not have been carried out."""

    message: str


class Done(Answer, frozen=True):
    """A write succeeded. `obj` is the JSON object the server answered, where the effect asks for
    it.
    """

    obj: dict[str, Any] | None = None


class Replied(Answer, frozen=True):
    """An extender answered; `value` is the JSON of it, which may be anything."""

    value: Any


class ReadPlaced(Answer, frozen=True):
    """A pod read back has this node."""

    node: str


class ReadPending(Answer, frozen=True):
    """A pod read back has no node."""


class ReadGone(Answer, frozen=True):
    """A pod read back does not exist any more, or exists anew with another uid."""


class Returned(Answer, frozen=True):
    """A coroutine of a plugin returned a value."""

    value: Any


class Raised(Answer, frozen=True):
    """A coroutine of a plugin raised."""

    error: BaseException


class TimedOut(Answer, frozen=True):
    """A wait reached its deadline."""
