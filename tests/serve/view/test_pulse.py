"""The pulse: rates, quantiles and how many wait, beat by beat."""

import math
import random
from itertools import pairwise

from asched.serve.telemetry.component_metrics import OwnMetrics
from asched.serve.telemetry.instruments import Families
from asched.serve.telemetry.reports import Reports
from asched.serve.view.pulse import Pulse, quantile
from tests.builders import a_node, a_pod
from tests.core.cycle.playbook import Play


def a_pulse() -> tuple[Pulse, Reports, Play]:
    families, play = Families(), Play(a_node("n1").allocatable(cpu="1"))
    metrics = Reports(families, OwnMetrics(families))
    made = Pulse(metrics, play.machine.context.queue)
    made.beat(0.0, 1e9)
    return made, metrics, play


def last(made: Pulse) -> dict[str, float | None]:
    return {name: values[-1] for name, values in made.told().items() if isinstance(values, list)}


def test_rates_are_over_the_time_since_the_last_beat() -> None:
    made, metrics, _ = a_pulse()
    for _ in range(30):
        metrics.attempt_ended("scheduled", "asched", 0.002)
    for profile in ("asched", "other"):
        metrics.attempt_ended("unschedulable", profile, 0.002)
    metrics.attempt_ended("error", "asched", 0.002)
    made.beat(4.0, 1e9 + 4)
    assert [last(made)[name] for name in ("bound", "refused", "failed")] == [7.5, 0.5, 0.25]
    made.beat(6.0, 1e9 + 6)
    assert [last(made)[name] for name in ("bound", "refused", "failed")] == [0, 0, 0]


def test_what_waits_is_counted_by_queue() -> None:
    made, _, play = a_pulse()
    play.see(a_pod("large").requests(cpu="4"))
    play.see(a_pod("gated").gated("later"))
    made.beat(2.0, 1e9 + 2)
    told = last(made)
    assert (told["active"], told["backoff"], told["unschedulable"], told["gated"]) == (0, 0, 1, 1)


def test_quantiles_are_of_the_pods_since_the_last_beat_and_none_where_there_were_none() -> None:
    made, metrics, _ = a_pulse()
    for attempts in (1, 3):  # two families of one histogram count together
        metrics.pod_scheduled("asched", attempts, 0.015, was_flushed=False)
    made.beat(2.0, 1e9 + 2)
    slow = last(made)
    made.beat(4.0, 1e9 + 4)
    none = last(made)
    metrics.pod_scheduled("asched", 1, 300.0, was_flushed=False)
    made.beat(6.0, 1e9 + 6)
    late = last(made)
    # SLI buckets end at 0.01, 0.02, ...: both lie in the second one, whose middle is 0.015.
    assert (slow["waitP50"], slow["waitP99"]) == (0.015, 0.0199)
    assert (none["waitP50"], none["waitP99"]) == (None, None)
    assert late["waitP50"] is not None
    assert 163.84 < late["waitP50"] < 327.68


def test_metrics_that_were_reset_begin_at_zero() -> None:
    made, metrics, _ = a_pulse()
    for _ in range(10):
        metrics.attempt_ended("scheduled", "asched", 0.002)
        metrics.pod_scheduled("asched", 1, 0.015, was_flushed=False)
    made.beat(2.0, 1e9 + 2)
    metrics.attempts.reset()
    metrics.sli_duration.reset()
    for _ in range(4):
        metrics.attempt_ended("scheduled", "asched", 0.002)
        metrics.pod_scheduled("asched", 1, 0.015, was_flushed=False)
    made.beat(4.0, 1e9 + 4)
    assert (last(made)["bound"], last(made)["waitP50"]) == (2.0, 0.015)


def test_a_quantile_is_within_a_bucket_of_that_of_the_observations() -> None:
    rng, bounds = random.Random(7), [2.0**n for n in range(-4, 8)]
    for _ in range(300):
        seen = sorted(rng.lognormvariate(0, 2) for _ in range(rng.randint(1, 60)))
        edges = [0.0, *bounds, math.inf]
        counts = [sum(low < one <= high for one in seen) for low, high in pairwise(edges)]
        share = rng.choice((0.01, 0.5, 0.9, 0.99))
        exact = seen[math.ceil(share * len(seen)) - 1]
        found = quantile(share, bounds, counts)
        at = next(i for i in range(1, len(edges)) if exact <= edges[i])
        assert found is not None
        assert edges[at - 1] - 1e-4 <= found <= min(edges[at], bounds[-1]) + 1e-4
