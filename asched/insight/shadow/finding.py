"""Results of comparing decisions of another scheduler with ours: findings, their counts, and the
last examples of differences, as text.

The tally outlives the machine: counting continues after the scheduler is restarted in the process.

Bounds  EXAMPLES_MAX findings of each verdict and outcome; counts by profile, verdict, outcome and
        plugin, of which there are few.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple, Self


class OtherVerdict(StrEnum):
    """The decision of the other scheduler."""

    PLACED = "placed"
    UNSCHEDULABLE = "unschedulable"


class Agreement(StrEnum):
    """How our decision compares."""

    #: for people
    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    SAME = "same", "the same node, or the same refusal word for word"
    TIE = "tie", "another node with as high a score as ours: either is right"
    LAG = "lag", "agrees if bindings just before and after are reordered, or a moment later"
    SAMPLED = (
        "sampled",
        "its node fits with a lower score, and it scores only a part of the nodes",
    )
    SCORE = "score", "its node fits, and has a lower score here"
    REFUSED = "refused", "its node does not fit here"
    UNKNOWN_NODE = "unknown_node", "its node is not known here"
    NOMINATION = "nomination", "room is made on another node than here"
    WORDS = "words", "it fits nowhere, for reasons that are counted otherwise here"
    PLACEABLE = "placeable", "it fits nowhere there, and fits here"
    EXTENDER = "extender", "differs, but an extender has a say, and a shadow asks none"
    ERROR = "error", "could not be compared here"
    MISSED = "missed", "happened while the watch was interrupted, and is not compared"


#: Outcomes that agree.
AGREES: Final = frozenset((Agreement.SAME, Agreement.TIE, Agreement.LAG))
#: Outcomes that are neither agreement nor difference.
NOT_COMPARED: Final = frozenset((Agreement.EXTENDER, Agreement.ERROR, Agreement.MISSED))


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
        return {**fields, "meaning": self.outcome.meaning}


#: Examples shown of each outcome by default.
SHOWN_MAX: Final = 5
#: Examples of lags, which are explained.
LAGS_SHOWN: Final = 2
#: Bindings named for a decision in another order.
NAMED_MAX: Final = 3


def text(report: Mapping[str, Any], *, is_wide: bool = False) -> str:
    """Format the JSON of a `FindingTally`. `is_wide`: with every stored example."""
    return "\n".join(_lines(report, 1_000 if is_wide else SHOWN_MAX)) + "\n"


def _lines(report: Mapping[str, Any], shown_max: int) -> Iterator[str]:
    if not report["profiles"]:
        yield "no decision was seen"
    for name, profile in report["profiles"].items():
        for verdict in OtherVerdict:
            yield from _verdict(name, verdict, profile[verdict.value])
        for counted in profile["plugins"]:
            yield f"  {counted['count']:>8}  {counted['outcome']} by {counted['plugin']}"
    yield from _examples(report["examples"], shown_max)
    if waiting := report.get("waiting", 0):
        yield f"{waiting} decisions wait for a second look"


def _verdict(name: str, verdict: OtherVerdict, found: Mapping[str, Any]) -> Iterator[str]:
    outcomes = found["outcomes"]
    if not outcomes:
        return
    share = found["agreement"]
    agrees = "" if share is None else f", {100 * share:.2f} % agree"
    yield f"{name}: {sum(outcomes.values())} {verdict.value}{agrees}"
    for outcome, count in outcomes.items():
        yield f"  {count:>8}  {outcome:<12}  {Agreement(outcome).meaning}"


def _examples(examples: list[Mapping[str, Any]], shown_max: int) -> Iterator[str]:
    shown: dict[tuple[str, str], int] = {}
    for example in reversed(examples):  # the newest first
        key = example["verdict"], example["outcome"]
        shown[key] = shown.get(key, 0) + 1
        if shown[key] > (LAGS_SHOWN if example["outcome"] == Agreement.LAG else shown_max):
            continue
        yield _example(example)


def _example(one: Mapping[str, Any]) -> str:
    details = one.get("details", {})
    theirs, ours = one.get("theirs", "no node"), one.get("ours", "no node")
    said = f"{one['outcome']}: {one['pod']} on {theirs}, here {ours}"
    if "points" in details:
        points = ", ".join(
            f"{point['plugin']} {point['theirs']}:{point['ours']}"
            for point in details["points"]
            if point["theirs"] != point["ours"]
        )
        said += f"; {details['score']} points against {details['ours']} ({points})"
    elif "reason" in details:
        said += f"; {one.get('plugin', '')}: {details['reason']}"
    elif "message" in details:
        said += f"; there: {details['message']}"
        said += f" here: {details['ours']}" if "ours" in details else ""
    elif "error" in details:
        said += f"; {details['error']}"
    for name, word in (("decidedAfter", "after it"), ("decidedBefore", "before it")):
        others = details.get(name, ())
        if others:
            named = [f"{o['pod']} on {o['node']}" for o in others[:NAMED_MAX]]
            more = f" and {len(others) - NAMED_MAX} more" if len(others) > NAMED_MAX else ""
            said += f"; agrees if decided {word}: {', '.join(named)}{more}"
    if details.get("secondLook") is False:
        said += "; there was no time for a second look"
    return said


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
        return {
            "profiles": {
                name: self._of_profile(name) for name in sorted({key[0] for key in self.decisions})
            },
            "meaning": {outcome.value: outcome.meaning for outcome in Agreement},
            "examples": [
                finding.as_json() for found in self._examples.copy().values() for finding in found
            ],
        }

    def _of_profile(self, profile: str) -> dict[str, Any]:
        report: dict[str, Any] = {}
        for verdict in OtherVerdict:
            counts = {
                outcome: count
                for outcome in Agreement
                if (count := self.decisions[profile, verdict.value, outcome.value])
            }
            compared = sum(n for outcome, n in counts.items() if outcome not in NOT_COMPARED)
            agreed = sum(counts.get(outcome, 0) for outcome in AGREES)
            report[verdict.value] = {
                "outcomes": {outcome.value: count for outcome, count in counts.items()},
                # the share of compared decisions that agree
                "agreement": round(agreed / compared, 6) if compared else None,
            }
        report["plugins"] = [
            {"plugin": plugin, "outcome": outcome, "count": count}
            for (name, plugin, outcome), count in sorted(self.plugins.items())
            if name == profile
        ]
        return report
