"""The inbox: facts that arrived since the machine last drained it.

Only the newest `Seen` of an object is kept, so the size of the cluster limits the inbox, not the
traffic. Answers are never merged, a deletion is never merged away, and no fact overtakes a deletion
of the same object.

Bounds  FACTS_PER_TURN are handed out at once, FACTS_FIRST of those that follow a silence: thousands
        of pods may be deleted at once. Fewer if they take longer than INTAKE_S: one deleted pod may
        requeue thousands of waiting classes.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from asched.core.cluster.facts import Fact, Gone, Listed, Seen
from asched.core.model.kinds import Kind

#: A deletion costs half a millisecond where pods of fifty kinds wait. (A long list is one fact,
#: which the machine processes in slices.)
FACTS_PER_TURN: Final = 64
#: Before their cost is known. Three turns later the full number is handed out.
FACTS_FIRST: Final = 8
#: Twice the time of scheduling cycles in a turn (`turn_limit.TURN_S`). A guess between few turns
#: and short turns.
INTAKE_S: Final = 0.008


class Listener(Protocol):
    """Observes the facts of a kind on their way to the inbox."""

    def observing(self, put: Callable[[Fact], None]) -> Callable[[Fact], None]:
        """Wrap a receiver of facts."""

    async def run(self) -> None:
        """Act on the observed facts, until cancelled."""


class Inbox:
    """`on_first` is called when a fact arrives in an empty inbox."""

    def __init__(self, on_first: Callable[[], None]) -> None:
        self._on_first = on_first
        self._facts: list[Fact] = []
        self._seen_at: dict[tuple[str, str], int] = {}  # place among all facts since the start
        self._share, self._handed_out = FACTS_FIRST, 0
        #: facts handed out since the start
        self.drained = 0

    @property
    def arrived(self) -> int:
        """Facts since the start, merged ones not counted."""
        return self.drained + len(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def put(self, fact: Fact) -> None:
        """Add a fact; a newer `Seen` of an object replaces the older one."""
        if isinstance(fact, Seen):
            key = (fact.kind.resource, fact.obj.metadata.uid)  # type: ignore[attr-defined]
            at = self._seen_at.get(key)
            if at is not None and at >= self.drained:
                self._facts[at - self.drained] = fact
                return
            self._seen_at[key] = self.arrived
        elif isinstance(fact, Gone):
            self._seen_at.pop((fact.kind.resource, fact.obj.metadata.uid), None)  # type: ignore[attr-defined]
        elif isinstance(fact, Listed):
            self._forget_sights(fact.kind)
        self._facts.append(fact)
        if len(self._facts) == 1:
            self._on_first()

    def has_of(self, kind: Kind) -> bool:
        """Whether a fact about objects of this kind waits."""
        return any(getattr(fact, "kind", None) == kind for fact in self._facts)

    def by_kind(self) -> Counter[Kind | None]:
        """Facts that wait, by kind; those of no kind are answers. For any thread."""
        return Counter(getattr(fact, "kind", None) for fact in self._facts.copy())

    def drain(self) -> list[Fact]:
        """The oldest facts, in order: the share of one turn."""
        facts = self._facts[: self._share]
        del self._facts[: self._share]
        self.drained += len(facts)
        self._handed_out = len(facts)
        if not self._facts:
            self._seen_at.clear()
        return facts

    def took(self, intake_s: float) -> None:
        """Adjust the next share to INTAKE_S by the time that the last share took."""
        if intake_s > INTAKE_S and self._handed_out:
            self._share = max(int(self._handed_out * INTAKE_S / intake_s), 1)
        elif not self._facts:
            self._share = FACTS_FIRST
        else:
            self._share = min(2 * self._share, FACTS_PER_TURN)

    def _forget_sights(self, kind: Kind) -> None:
        for key in [key for key in self._seen_at if key[0] == kind.resource]:
            del self._seen_at[key]
