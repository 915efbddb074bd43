"""What may go wrong in a simulation. A scenario lists its faults beside its workload.

Rates are shares of requests or sights (0 to 1); times are upper bounds, drawn evenly below them.
All of them end when the liveness phase begins.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True, slots=True)
class Fault:
    """Base of all faults."""


@dataclass(frozen=True, slots=True)
class LostAnswers(Fault):
    """The connection breaks after the request was sent; a share of these was carried out."""

    rate: float
    applied_share: float = 0.5


@dataclass(frozen=True, slots=True)
class LateWrites(Fault):
    """The connection breaks, and the request is carried out later, when nobody waits any more."""

    rate: float
    late_s_max: float = 20.0


@dataclass(frozen=True, slots=True)
class Unreachable(Fault):
    """Nothing leaves the process."""

    rate: float


@dataclass(frozen=True, slots=True)
class ServerErrors(Fault):
    """Answers 500; a share of these was carried out all the same. `spares` as of Overload."""

    rate: float
    applied_share: float = 0.3
    spares: str = ""


@dataclass(frozen=True, slots=True)
class Overload(Fault):
    """Answers 429 with Retry-After, but to requests whose path has `spares` in it, if it is set."""

    rate: float
    retry_after_s: int = 1
    spares: str = ""


@dataclass(frozen=True, slots=True)
class Conflicts(Fault):
    """Answers 409: somebody else was faster, nothing was changed. `spares` as of Overload."""

    rate: float
    spares: str = ""


@dataclass(frozen=True, slots=True)
class SlowAnswers(Fault):
    seconds_max: float


@dataclass(frozen=True, slots=True)
class StaleWatch(Fault):
    """Each kind's stream is late by itself, so that kinds overtake one another."""

    lag_s_max: float


@dataclass(frozen=True, slots=True)
class DuplicateSights(Fault):
    """The newest sight of an object is delivered once more."""

    rate: float


@dataclass(frozen=True, slots=True)
class SwallowedEvents(Fault):
    """A stream leaves an event out and goes on, bookmarks included, as if it had told it."""

    rate: float


@dataclass(frozen=True, slots=True)
class SilentWatches(Fault):
    """A stream begins, says nothing at all, and ends in its time."""

    rate: float


@dataclass(frozen=True, slots=True)
class BrokenWatches(Fault):
    """Streams break and are opened again from the last version they delivered."""

    every_s: float


@dataclass(frozen=True, slots=True)
class ExpiredWatches(Fault):
    """Streams end with 410 and everything is listed again, not always at the newest version."""

    every_s: float


@dataclass(frozen=True, slots=True)
class Compactions(Fault):
    """The server forgets all that has happened so far: who goes on from there is told 410."""

    every_s: float


@dataclass(frozen=True, slots=True)
class LeaderPause(Fault):
    """The whole process stands still, as if its machine had been suspended."""

    every_s: float
    lasting_s_max: float = 15.0


@dataclass(frozen=True, slots=True)
class Restarts(Fault):
    """The process dies with requests under way and starts anew from a list."""

    every_s: float


@dataclass(frozen=True, slots=True)
class Partition(Fault):
    """The network between the leading process and the server fails: nothing comes through."""

    every_s: float
    lasting_s_max: float = 15.0


@dataclass(frozen=True, slots=True)
class SickExtenders(Fault):
    """An extender is in a bad way when it is asked: one of these ways."""

    rate: float
    kinds: tuple[str, ...] = ("down", "error", "nonsense", "slow", "lie")


F = TypeVar("F", bound=Fault)


class Troubles:
    """The faults in force, and the dice they are drawn with."""

    def __init__(self, faults: Iterable[Fault], rng: random.Random) -> None:
        self.rng = rng
        self.is_on = True
        self._faults = {type(fault): fault for fault in faults}

    def begin(self, fault: Fault) -> None:
        """From now on this is in force, in place of another of its kind."""
        self._faults[type(fault)] = fault

    def end(self, kind: type[Fault]) -> None:
        """It is over."""
        self._faults.pop(kind, None)

    def find(self, kind: type[F]) -> F | None:
        """The fault of a kind if it is in force."""
        fault = self._faults.get(kind) if self.is_on else None
        assert fault is None or isinstance(fault, kind)
        return fault

    def strikes(self, kind: type[F]) -> F | None:
        """The fault of a kind if it is in force and its rate hits this time."""
        fault = self.find(kind)
        rate: float = getattr(fault, "rate", 0.0)
        return fault if fault is not None and self.rng.random() < rate else None

    def seconds(self, kind: type[F], name: str) -> float:
        """A time drawn below a bound of a fault; 0.0 if it is not in force."""
        bound_s: float = getattr(self.find(kind), name, 0.0)
        return self.rng.uniform(0.0, bound_s) if bound_s else 0.0
