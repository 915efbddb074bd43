"""Statuses and reasons: upstream's codes, and what they make of a rejection."""

import pytest

from asched.core.framework.status import (
    Code,
    PluginError,
    Reason,
    Status,
    failure,
    pending,
    unresolvable,
    unschedulable,
)


@pytest.mark.parametrize("code", list(Code))
def test_codes_have_upstream_s_names(code: Code) -> None:
    words = [word if word == "AND" else word.title() for word in code.name.split("_")]
    assert code.text == "".join(words).replace("AND", "And")


def test_a_rejection_is_what_waiting_or_eviction_may_change_or_not() -> None:
    rejecting = {code for code in Code if code.is_rejection}
    assert rejecting == {
        Code.UNSCHEDULABLE,
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        Code.PENDING,
    }
    assert [code for code in Code if Status(code).is_success] == [Code.SUCCESS]
    assert {code for code in Code if Status(code).is_rejection} == rejecting


def test_short_forms_have_their_codes() -> None:
    assert unschedulable("a", "b") == Status(Code.UNSCHEDULABLE, ("a", "b"))
    assert unresolvable("a").code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert pending("a").code is Code.PENDING
    assert failure("a") == Status(Code.ERROR, ("a",))
    assert unschedulable("a", "b").message == "a, b"
    assert unschedulable("a").by("Fit") == Status(Code.UNSCHEDULABLE, ("a",), "Fit")


def test_a_reason_that_evictions_cannot_lift_is_unresolvable() -> None:
    assert Reason("no room", resolvable=True).status == unschedulable("no room")
    assert Reason("wrong zone", resolvable=False).status == unresolvable("wrong zone")


def test_an_error_without_another_one_is_the_plugin_s_own() -> None:
    raised = ValueError("x")
    assert PluginError("said", "Fit", "filter", raised).error is raised
    own = PluginError("said", "Fit", "filter")
    assert own.error is own
    assert (own.plugin, own.point, str(own)) == ("Fit", "filter", "said")
