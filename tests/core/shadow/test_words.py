"""What a shadow found, as text for people."""

from typing import Any

from asched.core.shadow.finding import Finding, Outcome, Verdict
from asched.core.shadow.tally import Tally
from asched.core.shadow.words import NAMED_MAX, SHOWN_MAX, text

PLACED, UNSCHEDULABLE = Verdict.PLACED, Verdict.UNSCHEDULABLE


def said(*findings: Finding, is_wide: bool = False, **more: Any) -> list[str]:
    tally = Tally()
    for finding in findings:
        tally.add(finding)
    return text({**tally.told(), **more}, is_wide=is_wide).splitlines()


def test_nothing_seen_is_said() -> None:
    assert said() == ["no decision was seen"]


def test_counts_come_first_with_the_share_that_agrees() -> None:
    lines = said(
        Finding("d/a", "p", PLACED, Outcome.SAME),
        Finding("d/b", "p", PLACED, Outcome.ERROR, details={"error": "oops"}),
        Finding("d/c", "p", PLACED, Outcome.SCORE, "n1", "n2", "Fit"),
        waiting=3,
    )
    assert lines[0] == "p: 3 placed, 50.00 % agree"
    assert lines[1].split() == ["1", "same", *lines[1].split()[2:]]
    assert "         1  score by Fit" in lines
    assert lines[-1] == "3 decisions wait for a second look"
    assert not any(line.startswith("p: 0") for line in lines)


def test_where_nothing_was_judged_no_share_is_told() -> None:
    assert said(Finding("d/a", "p", PLACED, Outcome.MISSED))[0] == "p: 1 placed"


def example(outcome: Outcome, **fields: Any) -> str:
    return said(Finding("d/web", "p", PLACED, outcome, **fields))[-1]


def test_an_example_says_who_made_the_difference() -> None:
    points = [
        {"plugin": "Fit", "weight": 1, "theirs": 5, "ours": 9},
        {"plugin": "Image", "weight": 1, "theirs": 2, "ours": 2},
    ]
    details = {"score": 7, "ours": 11, "points": points}
    assert example(Outcome.SCORE, theirs="n1", ours="n2", details=details) == (
        "score: d/web on n1, here n2; 7 points against 11 (Fit 5:9)"
    )
    assert example(Outcome.REFUSED, theirs="n1", plugin="Fit", details={"reason": "full"}) == (
        "refused: d/web on n1, here no node; Fit: full"
    )
    assert example(Outcome.PLACEABLE, ours="n2", details={"message": "0/1"}) == (
        "placeable: d/web on no node, here n2; there: 0/1"
    )
    assert example(Outcome.WORDS, details={"message": "a", "ours": "b"}).endswith(
        "; there: a here: b"
    )
    assert example(Outcome.ERROR, details={"error": "oops"}).endswith("; oops")
    assert example(Outcome.SCORE, details={"reason": "x", "secondLook": False}).endswith(
        "; there was no time for a second look"
    )


def test_an_example_says_after_or_before_whom_it_would_agree() -> None:
    others = [{"pod": f"d/{number}", "node": f"n{number}"} for number in range(NAMED_MAX + 2)]
    all_named = [f"d/{number} on n{number}" for number in range(NAMED_MAX)]
    named = ", ".join(all_named)
    after = {"decidedAfter": others[:NAMED_MAX]}
    line = example(Outcome.SCORE, details=after)
    assert line.endswith(f"; agrees if decided after it: {named}")
    both = {"decidedAfter": others[:1], "decidedBefore": others}
    assert example(Outcome.SCORE, details=both).endswith(
        f"; agrees if decided after it: d/0 on n0; agrees if decided before it: {named} and 2 more"
    )


def test_the_last_examples_of_each_outcome_are_shown() -> None:
    scores = [
        Finding(f"d/{number}", "p", PLACED, Outcome.SCORE, "n1", "n2", "Fit")
        for number in range(SHOWN_MAX + 2)
    ]
    shown = [line.split()[1] for line in said(*scores) if line.startswith("score: ")]
    assert shown == [f"d/{number}" for number in range(SHOWN_MAX + 1, 1, -1)]
    every = [line for line in said(*scores, is_wide=True) if line.startswith("score: ")]
    assert len(every) == SHOWN_MAX + 2


def test_verdicts_are_told_apart() -> None:
    lines = said(
        Finding("d/a", "p", PLACED, Outcome.SAME), Finding("d/b", "p", UNSCHEDULABLE, Outcome.SAME)
    )
    assert [line for line in lines if line.startswith("p: ")] == [
        "p: 1 placed, 100.00 % agree",
        "p: 1 unschedulable, 100.00 % agree",
    ]
