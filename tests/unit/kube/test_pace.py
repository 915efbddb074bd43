"""A token bucket for those who set QPS and burst."""

import pytest

from asched.kube.pace import Rates, TokenBucket
from tests.unit.kube.clocks import StillClock


def test_the_burst_goes_at_once_and_the_rest_at_the_rate():
    clock = StillClock()
    bucket = TokenBucket(10.0, 3, clock)
    assert [bucket.take() for _ in range(3)] == [0.0] * 3
    assert bucket.take() == pytest.approx(0.1)
    clock.now_s = 0.1
    assert bucket.take() == 0.0
    assert bucket.take() > 0
    clock.now_s = 100.0
    assert [bucket.take() for _ in range(3)] == [0.0] * 3
    assert bucket.take() > 0


def test_events_have_a_rate_of_their_own_and_both_change_together():
    told = []
    rates = Rates(1.0, 1, StillClock(), lambda: told.append("changed"))
    assert rates.of(is_event=False).take() == 0.0
    assert rates.of(is_event=False).take() > 0
    assert rates.of(is_event=True).take() == 0.0
    assert not told
    rates.limit(1.0, 2)
    assert [rates.of(is_event=flag).take() for flag in (False, False, True, True)] == [0.0] * 4
    assert told == ["changed"]
