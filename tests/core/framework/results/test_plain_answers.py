"""Reasons as codes: equal reasons share one, old ones make room."""

import pytest

from asched.core.framework.results import plain_answers
from asched.core.framework.results.plain_answers import Reasons, raise_error, status_of
from asched.core.framework.status import Code, PluginError, failure, pending, unschedulable


def test_equal_reasons_share_a_code_and_keep_it() -> None:
    reasons = Reasons()
    hot, late = reasons.code_of(unschedulable("hot")), reasons.code_of(pending("late"))
    assert reasons.code_of(unschedulable("hot")) == hot != late
    assert reasons.status_of(late, "Mine") == pending("late")


@pytest.mark.parametrize("answer", ["", 0, 1, b"x", [], ("a",)])
def test_whatever_is_no_answer_is_an_error_with_its_words(answer: object) -> None:
    with pytest.raises(PluginError) as error:
        status_of(answer, "Mine", "filter")
    assert str(error.value) == (
        f'running filter plugin "Mine": answered {answer!r} ({type(answer).__name__}) where'
        " None, True, False, a reason or a Status is expected"
    )


def test_a_status_that_neither_agrees_nor_rejects_ends_the_attempt() -> None:
    with pytest.raises(PluginError, match='running "Mine" filter plugin: disk on fire'):
        raise_error(failure("disk on fire"), "Mine", "filter")
    with pytest.raises(PluginError, match="Wait is no answer here"):
        raise_error(plain_answers.Status(Code.WAIT), "Mine", "filter")
