"""What a shadow found, as text for people."""

from typing import Any

from asched.insight.shadow.finding import (
    NAMED_MAX,
    Agreement,
    FindingTally,
    OtherVerdict,
    ShadowFinding,
    text,
)

PLACED, UNSCHEDULABLE = OtherVerdict.PLACED, OtherVerdict.UNSCHEDULABLE


def said(*findings: ShadowFinding, is_wide: bool = False, **more: Any) -> list[str]:
    tally = FindingTally()
    for finding in findings:
        tally.add(finding)
    return text({**tally.as_json(), **more}, is_wide=is_wide).splitlines()


def test_counts_come_first_with_the_share_that_agrees() -> None:
    lines = said(
        ShadowFinding("d/a", "p", PLACED, Agreement.SAME),
        ShadowFinding("d/b", "p", PLACED, Agreement.ERROR, details={"error": "oops"}),
        ShadowFinding("d/c", "p", PLACED, Agreement.SCORE, "n1", "n2", "Fit"),
        waiting=3,
    )
    assert lines[0] == "p: 3 placed, 50.00 % agree"
    assert lines[1].split() == ["1", "same", *lines[1].split()[2:]]
    assert "         1  score by Fit" in lines
    assert lines[-1] == "3 decisions wait for a second look"
    assert not any(line.startswith("p: 0") for line in lines)


def example(outcome: Agreement, **fields: Any) -> str:
    return said(ShadowFinding("d/web", "p", PLACED, outcome, **fields))[-1]


def test_an_example_says_who_made_the_difference() -> None:
    points = [
        {"plugin": "Fit", "weight": 1, "theirs": 5, "ours": 9},
        {"plugin": "Image", "weight": 1, "theirs": 2, "ours": 2},
    ]
    details = {"score": 7, "ours": 11, "points": points}
    assert example(Agreement.SCORE, theirs="n1", ours="n2", details=details) == (
        "score: d/web on n1, here n2; 7 points against 11 (Fit 5:9)"
    )
    assert example(Agreement.REFUSED, theirs="n1", plugin="Fit", details={"reason": "full"}) == (
        "refused: d/web on n1, here no node; Fit: full"
    )
    assert example(Agreement.PLACEABLE, ours="n2", details={"message": "0/1"}) == (
        "placeable: d/web on no node, here n2; there: 0/1"
    )
    assert example(Agreement.WORDS, details={"message": "a", "ours": "b"}).endswith(
        "; there: a here: b"
    )
    assert example(Agreement.ERROR, details={"error": "oops"}).endswith("; oops")
    assert example(Agreement.SCORE, details={"reason": "x", "secondLook": False}).endswith(
        "; there was no time for a second look"
    )


def test_an_example_says_after_or_before_whom_it_would_agree() -> None:
    others = [{"pod": f"d/{number}", "node": f"n{number}"} for number in range(NAMED_MAX + 2)]
    all_named = [f"d/{number} on n{number}" for number in range(NAMED_MAX)]
    named = ", ".join(all_named)
    after = {"decidedAfter": others[:NAMED_MAX]}
    line = example(Agreement.SCORE, details=after)
    assert line.endswith(f"; agrees if decided after it: {named}")
    both = {"decidedAfter": others[:1], "decidedBefore": others}
    assert example(Agreement.SCORE, details=both).endswith(
        f"; agrees if decided after it: d/0 on n0; agrees if decided before it: {named} and 2 more"
    )
