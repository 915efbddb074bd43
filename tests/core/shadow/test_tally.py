"""What a shadow found so far: all counted, the last examples kept, and the share that agrees."""

import pytest

from asched.insight.shadow.finding import Agreement, OtherVerdict, ShadowFinding
from asched.insight.shadow.tally import EXAMPLES_MAX, FindingTally, agreement


def finding(
    outcome: Agreement, pod: str = "d/web", plugin: str = "", profile: str = "p"
) -> ShadowFinding:
    return ShadowFinding(pod, profile, OtherVerdict.PLACED, outcome, "n1", "n2", plugin)


def test_all_are_counted_and_those_that_differ_are_shown() -> None:
    tally = FindingTally()
    for outcome in (Agreement.SAME, Agreement.SAME, Agreement.TIE, Agreement.MISSED):
        tally.add(finding(outcome, plugin="Never"))
    tally.add(finding(Agreement.SCORE, plugin="Fit"))
    tally.add(finding(Agreement.LAG))
    told = tally.told()
    profile = told["profiles"]["p"]
    assert profile["placed"]["outcomes"] == {
        "same": 2,
        "tie": 1,
        "lag": 1,
        "score": 1,
        "missed": 1,
    }
    assert profile["placed"]["agreement"] == 0.8
    assert profile["unschedulable"] == {"outcomes": {}, "agreement": None}
    assert profile["plugins"] == [{"plugin": "Fit", "outcome": "score", "count": 1}]
    assert [example["outcome"] for example in told["examples"]] == ["score", "lag"]
    assert set(told["meaning"]) == {outcome.value for outcome in Agreement}


def test_profiles_are_told_apart() -> None:
    tally = FindingTally()
    tally.add(finding(Agreement.SCORE, plugin="Fit", profile="b"))
    tally.add(finding(Agreement.SAME, profile="a"))
    profiles = tally.told()["profiles"]
    assert list(profiles) == ["a", "b"]
    assert profiles["a"]["plugins"] == []


def test_only_the_last_examples_of_each_outcome_are_kept() -> None:
    tally = FindingTally()
    for number in range(EXAMPLES_MAX + 3):
        tally.add(finding(Agreement.SCORE, f"d/{number}"))
    tally.add(finding(Agreement.REFUSED))
    pods = [example["pod"] for example in tally.told()["examples"]]
    assert pods == [f"d/{number}" for number in range(3, EXAMPLES_MAX + 3)] + ["d/web"]


@pytest.mark.parametrize(
    ("counts", "share"),
    [
        ({}, None),
        ({Agreement.ERROR: 5}, None),
        ({Agreement.SAME: 1, Agreement.ERROR: 5}, 1.0),
        ({Agreement.SAME: 1, Agreement.TIE: 1, Agreement.LAG: 1, Agreement.SCORE: 1}, 0.75),
        ({Agreement.SCORE: 1}, 0.0),
        ({Agreement.SAME: 1, Agreement.WORDS: 2}, 0.333333),
    ],
)
def test_the_share_that_agrees_is_of_what_was_judged(
    counts: dict[Agreement, int], share: float | None
) -> None:
    assert agreement(counts) == share
