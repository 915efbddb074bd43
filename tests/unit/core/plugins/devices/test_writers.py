"""Pods of a group write the claim they share one after the other."""

from collections.abc import Generator
from typing import Any

import pytest

from asched.core.cluster.facts import Done, TimedOut
from asched.core.framework.effects import WaitFor
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.plugins.devices.binding import TURN_S_MAX, Writers
from tests.device_builders import a_claim_object, a_claiming_pod

CLAIM = decode(ResourceClaim, a_claim_object("c"))
FIRST, SECOND = a_claiming_pod("c", name="first"), a_claiming_pod("c", name="second")


def waits(steps: Generator[Any, Any, None]) -> WaitFor:
    effect = next(steps)
    assert isinstance(effect, WaitFor)
    return effect


def has_its_turn(steps: Generator[Any, Any, None], *answers: Any) -> bool:
    try:
        for answer in answers or (None,):
            steps.send(answer)
    except StopIteration:
        return True
    return False


def test_the_second_waits_for_the_first() -> None:
    writers = Writers()
    assert has_its_turn(writers.begin(CLAIM, FIRST))
    second = writers.begin(CLAIM, SECOND)
    effect = waits(second)
    assert (effect.ready(), effect.timeout_s) == (False, TURN_S_MAX)

    writers.end(CLAIM, FIRST)

    assert effect.ready()
    assert has_its_turn(second, Done(0))


def test_who_waited_too_long_writes_all_the_same_and_keeps_its_turn() -> None:
    writers = Writers()
    assert has_its_turn(writers.begin(CLAIM, FIRST))
    second = writers.begin(CLAIM, SECOND)
    waits(second)
    assert has_its_turn(second, TimedOut(0))

    writers.end(CLAIM, FIRST)

    waits(writers.begin(CLAIM, FIRST))


@pytest.mark.parametrize("name", ["c", "d"])
def test_other_claims_are_nobody_s_business(name: str) -> None:
    writers = Writers()
    assert has_its_turn(writers.begin(decode(ResourceClaim, a_claim_object("e")), FIRST))
    assert has_its_turn(writers.begin(decode(ResourceClaim, a_claim_object(name)), SECOND))
