"""What came of comparing one decision of another scheduler with ours."""

from enum import StrEnum
from typing import Any, Final, NamedTuple


class Verdict(StrEnum):
    """What the other one decided."""

    PLACED = "placed"
    UNSCHEDULABLE = "unschedulable"


class Outcome(StrEnum):
    """How ours compares; `MEANING` has each in words."""

    SAME = "same"
    TIE = "tie"
    LAG = "lag"
    SAMPLED = "sampled"
    SCORE = "score"
    REFUSED = "refused"
    UNKNOWN_NODE = "unknown_node"
    NOMINATION = "nomination"
    WORDS = "words"
    PLACEABLE = "placeable"
    EXTENDER = "extender"
    ERROR = "error"
    MISSED = "missed"


MEANING: Final = {
    Outcome.SAME: "the same node, or the same refusal word for word",
    Outcome.TIE: "another node with as high a score as ours: either is right",
    Outcome.LAG: "agrees in another order of the bindings just before and after, or a moment later",
    Outcome.SAMPLED: "its node fits with a lower score, and it scores only a part of the nodes",
    Outcome.SCORE: "its node fits, and has a lower score here",
    Outcome.REFUSED: "its node does not fit here",
    Outcome.UNKNOWN_NODE: "its node is not known here",
    Outcome.NOMINATION: "room is made on another node than here",
    Outcome.WORDS: "it fits nowhere, for reasons that are counted otherwise here",
    Outcome.PLACEABLE: "it fits nowhere there, and fits here",
    Outcome.EXTENDER: "differs, but an extender has a say, and a shadow asks none",
    Outcome.ERROR: "could not be judged here",
    Outcome.MISSED: "happened while the watch was interrupted, and is not judged",
}
#: Nothing to explain.
AGREES: Final = frozenset((Outcome.SAME, Outcome.TIE, Outcome.LAG))
#: Neither agreement nor its opposite.
UNJUDGED: Final = frozenset((Outcome.EXTENDER, Outcome.ERROR, Outcome.MISSED))


class Finding(NamedTuple):
    """`theirs` and `ours` are nodes, "" for none; `plugin` is who made the difference, as far as
    one did; `details` are JSON.
    """

    pod: str
    profile: str
    verdict: Verdict
    outcome: Outcome
    theirs: str = ""
    ours: str = ""
    plugin: str = ""
    details: dict[str, Any] = {}  # noqa: RUF012 - nobody writes to it

    def told(self) -> dict[str, Any]:
        """As JSON, with what is empty left out."""
        told = {name: value for name, value in self._asdict().items() if value}
        return {**told, "meaning": MEANING[self.outcome]}
