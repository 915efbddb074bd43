"""How much an evaluation may cost, and when that is passed."""

import pytest

from asched.core.dra.cel.errors import CelRuntimeError
from asched.core.dra.cel.frame import Frame


def test_what_is_left_may_be_spent_to_the_last() -> None:
    frame = Frame({}, cost_max=3)
    frame.spend(1)
    frame.spend(2)
    assert (frame.spent, frame.is_exhausted) == (3, False)
    with pytest.raises(CelRuntimeError, match="cost limit exceeded"):
        frame.spend(1)
    assert frame.is_exhausted


def test_a_call_costs_one_a_share_of_its_operands_and_its_work() -> None:
    frame = Frame({}, cost_max=100)
    frame.spend_on([1, 2], None)
    assert frame.spent == 1
    frame.spend_on(["a" * 25], None)
    assert frame.spent == 1 + 1 + 2
    frame.spend_on([1], lambda _: 7)
    assert frame.spent == 4 + 1 + 7
    with pytest.raises(TypeError):
        frame.spend_on([1, 2], lambda _: 7)
