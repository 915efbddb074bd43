"""The result of comparing one decision of another scheduler with ours."""

from enum import StrEnum
from typing import Any, Final, NamedTuple


class OtherVerdict(StrEnum):
    """The decision of the other scheduler."""

    PLACED = "placed"
    UNSCHEDULABLE = "unschedulable"


class Agreement(StrEnum):
    """How our decision compares; `MEANING` explains each value."""

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
    Agreement.SAME: "the same node, or the same refusal word for word",
    Agreement.TIE: "another node with as high a score as ours: either is right",
    Agreement.LAG: "agrees if bindings just before and after are reordered, or a moment later",
    Agreement.SAMPLED: "its node fits with a lower score, and it scores only a part of the nodes",
    Agreement.SCORE: "its node fits, and has a lower score here",
    Agreement.REFUSED: "its node does not fit here",
    Agreement.UNKNOWN_NODE: "its node is not known here",
    Agreement.NOMINATION: "room is made on another node than here",
    Agreement.WORDS: "it fits nowhere, for reasons that are counted otherwise here",
    Agreement.PLACEABLE: "it fits nowhere there, and fits here",
    Agreement.EXTENDER: "differs, but an extender has a say, and a shadow asks none",
    Agreement.ERROR: "could not be judged here",
    Agreement.MISSED: "happened while the watch was interrupted, and is not judged",
}
#: Outcomes that agree.
AGREES: Final = frozenset((Agreement.SAME, Agreement.TIE, Agreement.LAG))
#: Outcomes that are neither agreement nor difference.
UNJUDGED: Final = frozenset((Agreement.EXTENDER, Agreement.ERROR, Agreement.MISSED))


class ShadowFinding(NamedTuple):
    """`theirs` and `ours` are nodes, "" for none; `plugin` caused the difference, "" if no single
    plugin did; `details` are JSON.
    """

    pod: str
    profile: str
    verdict: OtherVerdict
    outcome: Agreement
    theirs: str = ""
    ours: str = ""
    plugin: str = ""
    details: dict[str, Any] = {}  # noqa: RUF012 - never written

    def as_json(self) -> dict[str, Any]:
        """As JSON, without empty fields."""
        fields = {name: value for name, value in self._asdict().items() if value}
        return {**fields, "meaning": MEANING[self.outcome]}
