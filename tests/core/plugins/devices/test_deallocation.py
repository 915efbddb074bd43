"""Giving claims up: the writes, and what their answers mean."""

from collections.abc import Generator
from typing import Any

import pytest

from asched.core.framework.effects import Delete, Patch
from asched.core.framework.status import Status
from asched.core.model.claim import FINALIZER, ResourceClaim
from asched.core.model.decode import decode
from asched.core.plugins.devices.deallocation import deallocate, delete_extended
from asched.core.state.facts import Answer, Done, Refused, Unknown
from tests.core.plugins.dra_world import a_claim_object, allocated


def end(steps: Generator[Any, Answer, Status], answer: Answer) -> Status:
    with pytest.raises(StopIteration) as stopped:
        steps.send(answer)
    status = stopped.value.value
    assert isinstance(status, Status)
    return status


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Done(0), ""),
        (Refused(0, 409, "changed"), "changed"),
        (Unknown(0, "lost"), "lost"),
    ],
)
def test_deallocation_succeeds_or_says_why(answer: Answer, message: str) -> None:
    steps = deallocate(decode(ResourceClaim, a_claim_object("c", **allocated())))
    assert isinstance(next(steps), Patch)
    assert end(steps, answer).message == message


def test_a_protected_claim_loses_its_finalizer_first() -> None:
    claim = decode(ResourceClaim, a_claim_object("c", metadata={"finalizers": [FINALIZER]}))
    steps = delete_extended(claim)
    assert isinstance(next(steps), Patch)
    assert isinstance(steps.send(Done(0)), Delete)
    assert end(steps, Done(0)).is_success


def test_a_claim_that_is_gone_is_as_good_as_deleted() -> None:
    steps = delete_extended(decode(ResourceClaim, a_claim_object("c")))
    effect = next(steps)
    assert isinstance(effect, Delete)
    assert effect.uid == "uid-c"
    assert end(steps, Refused(0, 404, "not found")).is_success


def test_a_claim_that_cannot_be_changed_is_told() -> None:
    claim = decode(ResourceClaim, a_claim_object("c", metadata={"finalizers": [FINALIZER]}))
    steps = delete_extended(claim)
    next(steps)
    assert end(steps, Refused(0, 403, "no")).message == "update resourceclaim d/c: no"
