"""Let a node whose last change took long to handle rest, and fold its newer versions meanwhile.

    a change of a node ──> thousands of waiting classes are notified, or become due for a dry run
                       ──> for a multiple of this work its newer versions wait; the newest counts
                       ──> the node has rested: that version is handled like any other fact

A node may change its labels many times in a second, and each change is handled before anything
else. Without a rest the changes of one node would take all the time. A version that waits is not
applied, as if the watch were slower, so that no rule sees a state of which no pod is notified. Work
is counted in steps, not in time, so that a repetition of the same facts gives the same result.

Versions of other nodes do not wait, nor do deletions and lists, after which a waiting version is
obsolete.

Bounds  one version a node; REST_S_MAX.
"""

from collections.abc import Iterable
from typing import Final

from asched.core.cluster.budget import SLICE_STEPS, STEP_US
from asched.core.cluster.facts import Fact, Gone, Listed, Seen
from asched.core.model.kinds import NODE

#: A node rests for this many times the time that its change took: others get nine tenths.
RESTS: Final = 9
#: A node may be cordoned meanwhile.
REST_S_MAX: Final = 2.0


class NodePace:
    """Nodes that rest, and their versions that wait. Times in seconds of turns."""

    def __init__(self) -> None:
        #: until when a node rests, by name; read-only
        self.rests: dict[str, float] = {}
        #: when the first waiting version is due; None if none waits
        self.next_s: float | None = None
        self._waiting: dict[str, Seen] = {}

    def handled(self, fact: Fact, steps: float, now_s: float) -> None:
        """Note how many budget steps follow from a fact about a node: usually less than a slice."""
        if steps > SLICE_STEPS and isinstance(fact, Seen):
            rest_s = RESTS * steps * STEP_US * 1e-6
            self.rests[_name(fact)] = now_s + min(rest_s, REST_S_MAX)

    def admit(self, facts: Iterable[Fact], now_s: float) -> list[Fact]:
        """The facts that may be handled now: new ones, and versions of nodes that have rested."""
        admitted: list[Fact] = []
        for fact in facts:
            if isinstance(fact, Seen) and fact.kind is NODE and _name(fact) in self.rests:
                self._waiting[_name(fact)] = fact
                continue
            if isinstance(fact, Gone) and fact.kind is NODE:
                self.rests.pop(_name(fact), None)
                self._waiting.pop(_name(fact), None)
            elif isinstance(fact, Listed) and fact.kind is NODE:
                self._waiting.clear()  # the list is newer
            admitted.append(fact)
        for name in [name for name, until_s in self.rests.items() if until_s <= now_s]:
            del self.rests[name]
            if name in self._waiting:
                admitted.append(self._waiting.pop(name))
        self.next_s = min((self.rests[name] for name in self._waiting), default=None)
        return admitted


def _name(fact: Seen | Gone) -> str:
    name: str = fact.obj.metadata.name  # type: ignore[attr-defined]
    return name
