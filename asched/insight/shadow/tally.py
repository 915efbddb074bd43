"""What a shadow found so far: counts of all decisions, and the last examples of those that differ.

It outlives the machine: a scheduler that starts over goes on counting.

Bounds  EXAMPLES_MAX findings of each verdict and outcome; counts by profile, verdict, outcome and
        plugin, of which there are few.
"""

from collections import Counter, deque
from collections.abc import Mapping
from typing import Any, Final

from asched.insight.shadow.finding import (
    AGREES,
    MEANING,
    UNJUDGED,
    Agreement,
    OtherVerdict,
    ShadowFinding,
)

EXAMPLES_MAX: Final = 20

Key = tuple[str, str, str]


class FindingTally:
    """Counts findings."""

    def __init__(self) -> None:
        #: (profile, verdict, outcome) -> how many
        self.decisions: Counter[Key] = Counter()
        #: (profile, plugin, outcome) -> how many of those that a plugin made differ
        self.plugins: Counter[Key] = Counter()
        self._examples: dict[tuple[OtherVerdict, Agreement], deque[ShadowFinding]] = {}

    def add(self, finding: ShadowFinding) -> None:
        """Count one."""
        profile, outcome = finding.profile, finding.outcome
        self.decisions[profile, finding.verdict.value, outcome.value] += 1
        if outcome in (Agreement.SAME, Agreement.TIE, Agreement.MISSED):
            return
        if finding.plugin:
            self.plugins[profile, finding.plugin, outcome.value] += 1
        key = finding.verdict, outcome
        if key not in self._examples:
            self._examples[key] = deque(maxlen=EXAMPLES_MAX)
        self._examples[key].append(finding)

    def told(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "profiles": {
                name: self._of_profile(name) for name in sorted({key[0] for key in self.decisions})
            },
            "meaning": {outcome.value: text for outcome, text in MEANING.items()},
            "examples": [
                finding.told() for found in self._examples.copy().values() for finding in found
            ],
        }

    def _of_profile(self, profile: str) -> dict[str, Any]:
        told: dict[str, Any] = {}
        for verdict in OtherVerdict:
            counts = {
                outcome: self.decisions[profile, verdict.value, outcome.value]
                for outcome in Agreement
                if self.decisions[profile, verdict.value, outcome.value]
            }
            told[verdict.value] = {
                "outcomes": {outcome.value: count for outcome, count in counts.items()},
                "agreement": agreement(counts),
            }
        told["plugins"] = [
            {"plugin": plugin, "outcome": outcome, "count": count}
            for (name, plugin, outcome), count in sorted(self.plugins.items())
            if name == profile
        ]
        return told


def agreement(counts: Mapping[Agreement, int]) -> float | None:
    """The share of what was judged that agrees, from 0 to 1; None if nothing was judged."""
    judged = sum(count for outcome, count in counts.items() if outcome not in UNJUDGED)
    if not judged:
        return None
    return round(sum(counts.get(outcome, 0) for outcome in AGREES) / judged, 6)
