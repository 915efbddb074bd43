"""The inbox: facts that arrived since the machine last looked.

Of each object only the newest sight is kept, so the cluster bounds it and not the traffic. Answers
are never folded, a deletion is never folded away, and nothing overtakes a deletion of the same
object.

Bounds  FACTS_PER_TURN are handed out at once, FACTS_FIRST of those that come after a silence:
        thousands of pods may go in one moment. Fewer where they take longer than INTAKE_S: of one
        pod that goes, thousands of waiting classes may have to hear.
"""

from collections.abc import Callable
from typing import Final, Protocol

from asched.core.model.kinds import Kind
from asched.core.state.facts import Fact, Gone, Listed, Seen

#: One that goes costs half a millisecond where pods of fifty kinds wait. (A long list is one fact,
#: and sliced by whoever takes it in.)
FACTS_PER_TURN: Final = 64
#: Before it is known how long they take. Three turns later it is as many as ever.
FACTS_FIRST: Final = 8
#: As long as the machine runs cycles in a turn, twice. A guess between few turns and short ones.
INTAKE_S: Final = 0.008


class Listener(Protocol):
    """Hears the facts of a kind on their way to the inbox."""

    def hearing(self, put: Callable[[Fact], None]) -> Callable[[Fact], None]:
        """The same receiver of facts, which are noted on the way."""

    async def run(self) -> None:
        """What follows from them, until cancelled."""


class Inbox:
    """`on_first` is called when something arrives in an empty inbox."""

    def __init__(self, on_first: Callable[[], None]) -> None:
        self._on_first = on_first
        self._facts: list[Fact] = []
        self._seen_at: dict[tuple[str, str], int] = {}  # as `arrived` counts
        self._share, self._handed_out = FACTS_FIRST, 0
        #: facts handed out since the start
        self.drained = 0

    @property
    def arrived(self) -> int:
        """Facts since the start, folded ones not counted."""
        return self.drained + len(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def put(self, fact: Fact) -> None:
        """Take a fact; a newer sight of an object takes the place of the older one."""
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
        """Whether something waits that was seen of a kind."""
        return any(getattr(fact, "kind", None) == kind for fact in self._facts)

    def drain(self) -> list[Fact]:
        """What arrived first, in order: a turn's share."""
        facts = self._facts[: self._share]
        del self._facts[: self._share]
        self.drained += len(facts)
        self._handed_out = len(facts)
        if not self._facts:
            self._seen_at.clear()
        return facts

    def took(self, intake_s: float) -> None:
        """So long took what was handed out last: the next share is to take INTAKE_S at most."""
        if intake_s > INTAKE_S and self._handed_out:
            self._share = max(int(self._handed_out * INTAKE_S / intake_s), 1)
        elif not self._facts:
            self._share = FACTS_FIRST
        else:
            self._share = min(2 * self._share, FACTS_PER_TURN)

    def _forget_sights(self, kind: Kind) -> None:
        for key in [key for key in self._seen_at if key[0] == kind.resource]:
            del self._seen_at[key]
