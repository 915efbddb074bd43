"""What came of a comparison, as JSON."""

from asched.insight.shadow.finding import (
    AGREES,
    MEANING,
    UNJUDGED,
    Agreement,
    OtherVerdict,
    ShadowFinding,
)


def test_what_is_empty_is_left_out_and_its_meaning_is_told() -> None:
    told = ShadowFinding("d/web", "p", OtherVerdict.PLACED, Agreement.TIE, "n1", "n2").told()
    assert told == {
        "pod": "d/web",
        "profile": "p",
        "verdict": "placed",
        "outcome": "tie",
        "theirs": "n1",
        "ours": "n2",
        "meaning": MEANING[Agreement.TIE],
    }


def test_every_outcome_has_a_meaning_and_none_agrees_without_being_judged() -> None:
    assert set(MEANING) == set(Agreement)
    assert not AGREES & UNJUDGED
