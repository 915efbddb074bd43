"""Faults of a simulation. A scenario lists its faults beside its workload.

Rates are shares of requests or events (0 to 1); times are upper bounds, drawn evenly below them.
All of them end when the liveness phase begins.
"""

import random
from collections.abc import Iterable
from typing import TypeVar

import msgspec


class Fault(msgspec.Struct):
    """Base of all faults."""


class LostAnswers(Fault):
    """The connection breaks after the request was sent; a share of these was carried out."""

    rate: float
    applied_share: float = 0.5


class LateWrites(Fault):
    """The connection breaks, and the request is carried out later, after its timeout."""

    rate: float
    late_s_max: float = 20.0


class Unreachable(Fault):
    """No request leaves the process."""

    rate: float


class ServerErrors(Fault):
    """Answers 500; a share of the requests was carried out. `spares` as of Overload; `only`
    requests with this in their path.
    """

    rate: float
    applied_share: float = 0.3
    spares: str = ""
    only: str = ""


class Overload(Fault):
    """Answers 429 with Retry-After, except requests with `spares` in their path, if it is set."""

    rate: float
    retry_after_s: int = 1
    spares: str = ""
    only: str = ""


class Conflicts(Fault):
    """Answers 409 as if another client had changed the object. `spares` and `only` as of
    ServerErrors.
    """

    rate: float
    spares: str = ""
    only: str = ""


class SlowAnswers(Fault):
    seconds_max: float


class StaleWatch(Fault):
    """Each kind's stream has its own delay, so that kinds overtake one another."""

    lag_s_max: float


class DuplicateSights(Fault):
    """The newest event of an object is delivered once more."""

    rate: float


class SwallowedEvents(Fault):
    """A stream omits an event and goes on, bookmarks included, as if it had sent it."""

    rate: float


class SilentWatches(Fault):
    """A stream opens, sends nothing at all, and ends at its timeout."""

    rate: float


class BrokenWatches(Fault):
    """Streams break and are opened again from the last version they delivered."""

    every_s: float


class ExpiredWatches(Fault):
    """Streams end with 410 and everything is listed again, not always at the newest version."""

    every_s: float


class Compactions(Fault):
    """The server compacts its history: a watch from an earlier version gets 410."""

    every_s: float


class LeaderPause(Fault):
    """The whole process stops for a while, as if its machine had been suspended."""

    every_s: float
    lasting_s_max: float = 15.0


class ClockRates(Fault):
    """The steady clock of a process is faster or slower than the world's by this share, or right.
    It stays so when the other faults end.
    """

    share: float


class FrozenServer(Fault):
    """The server stops for a while. It has accepted what arrives meanwhile, and carries that out,
    in any order, when it continues, also if the sender has given up or died.
    """

    every_s: float
    lasting_s_max: float = 15.0


class Restarts(Fault):
    """The process dies with open requests; a new one starts from a list."""

    every_s: float


class Partition(Fault):
    """The network between the leading process and the server fails in both directions."""

    every_s: float
    lasting_s_max: float = 15.0


class OneWay(Fault):
    """The network between a process and the server fails in one direction: requests do not arrive,
    or answers and events do not.
    """

    every_s: float
    lasting_s_max: float = 15.0


class SickExtenders(Fault):
    """An extender fails when it is called, in one of several ways."""

    rate: float
    kinds: tuple[str, ...] = ("down", "error", "nonsense", "slow", "lie")


def unreliable(lost: float, lag_s: float, restarts_s: float) -> tuple[Fault, ...]:
    """A share of answers gets lost, watches are late and break, and the process dies."""
    watches = StaleWatch(lag_s_max=lag_s), BrokenWatches(every_s=40)
    return LostAnswers(rate=lost), *watches, Restarts(every_s=restarts_s)


F = TypeVar("F", bound=Fault)


class ActiveFaults:
    """The faults in force, and the generator they are drawn with."""

    def __init__(self, faults: Iterable[Fault], rng: random.Random) -> None:
        self.rng = rng
        self.is_on = True
        self.frozen_until_s = 0.0  # of the server
        self._faults = {type(fault): fault for fault in faults}

    def begin(self, fault: Fault) -> None:
        """Put a fault in force, in place of another of its kind."""
        self._faults[type(fault)] = fault

    def end(self, kind: type[Fault]) -> None:
        """End a kind of fault."""
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
