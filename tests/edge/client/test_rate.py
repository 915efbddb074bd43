"""A token bucket for those who set QPS and burst."""

import pytest

from asched.edge.client.rate import TokenBucket
from tests.edge.client.test_backoff import StillClock


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


@pytest.mark.parametrize("qps", [0.0, -1.0])
def test_no_rate_is_no_limit(qps):
    bucket = TokenBucket(qps, 0, StillClock())
    assert [bucket.take() for _ in range(1000)] == [0.0] * 1000
