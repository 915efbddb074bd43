"""The protocol of the change of leader, searched completely, and without each of its rules. What
needs larger searches is in the complete size of the command.
"""

import pytest

from asched_lab.protocol.__main__ import FIXED, MISSED_IN, run
from asched_lab.protocol.model import Rule


def test_no_constraint_is_violated_in_any_order() -> None:
    outcome, _ = run(FIXED)

    assert not outcome.violation
    assert outcome.states > 1_000


@pytest.mark.parametrize(
    "rule",
    [
        *(rule for rule, scene in MISSED_IN.items() if scene is FIXED),
        Rule.ACKNOWLEDGEMENT,
        Rule.REACHED,
    ],
)
def test_without_a_rule_a_constraint_is_violated(rule: Rule) -> None:
    outcome, _ = run(MISSED_IN[rule], (rule,))

    assert outcome.violation
    assert "is carried out" in str(outcome.way[-1])


def test_every_rule_is_left_out_somewhere() -> None:
    assert set(MISSED_IN) == set(Rule)
