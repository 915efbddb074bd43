"""Which pools the recorded process held, and when, where each pool has a Lease."""

from typing import NamedTuple

from asched.core.cycle.orders import PoolsHeld


class PoolChange(NamedTuple):
    """Pools that the process took and gave up in a turn. `at_s` counts from the first turn."""

    turn: int
    at_s: float
    taken: tuple[str, ...]
    given_up: tuple[str, ...]


class HeldPools:
    """Collects the changes. `changes` is None as long as no fact says what is held, as in a process
    that decides for all pools.
    """

    def __init__(self) -> None:
        self.changes: list[PoolChange] | None = None
        self._held: frozenset[str] = frozenset()

    def note(self, turn: int, at_s: float, fact: PoolsHeld) -> None:
        """Compare with what was held before; most of these facts change no more than versions."""
        self.changes = [] if self.changes is None else self.changes
        held, before = frozenset(fact.let_go), self._held
        taken = tuple(sorted(held - before | set(fact.new)))
        given_up = tuple(sorted(before - held))
        if taken or given_up:
            self.changes.append(PoolChange(turn, at_s, taken, given_up))
        self._held = held
