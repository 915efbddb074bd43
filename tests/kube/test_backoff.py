"""Waits grow, are capped, jittered, and forgotten."""

import random

from asched.kube.backoff import QUIET_S, WAIT_S_MAX, Backoff
from tests.kube.clocks import StillClock


def test_waits_double_up_to_the_cap_with_a_jitter_of_up_to_one():
    backoff = Backoff(random.Random(1), StillClock())
    steps = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    for step in steps:
        wait_s = backoff.next_s()
        assert step <= wait_s < 2 * step
    assert steps[-1] == WAIT_S_MAX


def test_quiet_times_reset_the_wait():
    clock = StillClock()
    backoff = Backoff(random.Random(1), clock)
    for _ in range(5):
        backoff.next_s()
    clock.now_s = QUIET_S
    assert backoff.next_s() >= 25.6
    clock.now_s += QUIET_S + 1
    assert backoff.next_s() < 1.6


def test_two_clients_do_not_wait_alike():
    first, second = (Backoff(random.Random(seed), StillClock()) for seed in (1, 2))
    assert first.next_s() != second.next_s()
