"""Facts: the inputs of the core, from a watch or as answers to effects.

A watch delivers three kinds. `Seen` and `Gone` are about one object; `Listed` replaces the known
objects of a kind, so that a relist neither loses nor invents any: objects not in it are gone.
Answers have the id of their effect (`framework/effects.py`).
"""

from typing import Any

import msgspec

from asched.core.model.kinds import Kind
from asched.core.model.meta import Record


class Fact(msgspec.Struct, frozen=True):
    """Base of all facts."""


# --- from watches --------------------------------------------------------------------------------


class Seen(Fact, frozen=True):
    """The newest version of an object, added or changed."""

    kind: Kind
    obj: Record


class Gone(Fact, frozen=True):
    """The object was deleted (or left the watch's selector); `obj` is its last known version."""

    kind: Kind
    obj: Record


class Listed(Fact, frozen=True):
    """A complete list of a kind, or a part of one: parts are numbered from 0, and the last one has
    no more after it. A list that starts again replaces an unfinished one.
    """

    kind: Kind
    objects: tuple[Record, ...]
    part: int = 0
    has_more: bool = False


class WallClock(Fact, frozen=True):
    """The offset of the wall clock from the steady time of turns, in seconds."""

    ahead_s: float


# --- answers -------------------------------------------------------------------------------------


class Answer(Fact, frozen=True):
    """Base of the outcomes of effects."""

    effect_id: int


class Bound(Answer, frozen=True):
    """The API server accepted the binding."""


class Refused(Answer, frozen=True):
    """The API server certainly did not carry the effect out.

    `code` is the HTTP status, 0 for our own refusals.
    """

    code: int
    message: str
    reason: str = ""  # metav1.Status.reason, e.g. Conflict


class Unknown(Answer, frozen=True):
    """No usable answer arrived: the effect may or may not have been carried out."""

    message: str


class Done(Answer, frozen=True):
    """A write succeeded. `obj` is the JSON object of the answer, if the effect requests it."""

    obj: dict[str, Any] | None = None


class Replied(Answer, frozen=True):
    """An extender answered; `value` is its JSON, which may be anything."""

    value: Any


class ReadPlaced(Answer, frozen=True):
    """A pod that was read back has this node."""

    node: str


class ReadPending(Answer, frozen=True):
    """A pod has no node at this version, and newer versions of it may follow. It was read back, or
    a binding was not sent because the pod has changed since it was decided.
    """

    version: str = ""


class ReadGone(Answer, frozen=True):
    """A pod that was read back does not exist any more, or has another uid."""


class Returned(Answer, frozen=True):
    """A coroutine of a plugin returned a value."""

    value: Any


class Raised(Answer, frozen=True):
    """A coroutine of a plugin raised."""

    error: BaseException


class TimedOut(Answer, frozen=True):
    """A wait reached its deadline."""
