"""The findings of a shadow: counts of all decisions, and the last examples of differences.

It outlives the machine: counting continues after the scheduler is restarted in the process.

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
        #: (profile, plugin, outcome) -> number of differences that the plugin caused
        self.plugins: Counter[Key] = Counter()
        self._examples: dict[tuple[OtherVerdict, Agreement], deque[ShadowFinding]] = {}

    def add(self, finding: ShadowFinding) -> None:
        """Count a finding."""
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

    def as_json(self) -> dict[str, Any]:
        """All findings as JSON."""
        return {
            "profiles": {
                name: self._of_profile(name) for name in sorted({key[0] for key in self.decisions})
            },
            "meaning": {outcome.value: text for outcome, text in MEANING.items()},
            "examples": [
                finding.as_json() for found in self._examples.copy().values() for finding in found
            ],
        }

    def _of_profile(self, profile: str) -> dict[str, Any]:
        report: dict[str, Any] = {}
        for verdict in OtherVerdict:
            counts = {
                outcome: self.decisions[profile, verdict.value, outcome.value]
                for outcome in Agreement
                if self.decisions[profile, verdict.value, outcome.value]
            }
            report[verdict.value] = {
                "outcomes": {outcome.value: count for outcome, count in counts.items()},
                "agreement": agreement(counts),
            }
        report["plugins"] = [
            {"plugin": plugin, "outcome": outcome, "count": count}
            for (name, plugin, outcome), count in sorted(self.plugins.items())
            if name == profile
        ]
        return report


def agreement(counts: Mapping[Agreement, int]) -> float | None:
    """The share of judged decisions that agree, from 0 to 1; None if none was judged."""
    judged = sum(count for outcome, count in counts.items() if outcome not in UNJUDGED)
    if not judged:
        return None
    return round(sum(counts.get(outcome, 0) for outcome in AGREES) / judged, 6)
