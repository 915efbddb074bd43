"""The published experiment again: every deterministic policy ends where it was published to end."""

import json
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest

from asched.hardware.gpu.shares import F64
from asched_lab.trace.arrivals import arrivals
from asched_lab.trace.fleet import Fleet
from asched_lab.trace.openb import Trace, load
from asched_lab.trace.policies import Counts, Descent
from asched_lab.trace.run import Run, play
from tests.shared import shared_path

CLOSE = 0.05
CLOSE_IN_THE_MEAN = 0.3
PAGE = [
    ("default", "DotProd", 42),
    ("default", "GpuClustering", 42),
    ("default", "GpuPacking", 42),
    ("default", "BestFit", 43),
    ("default", "FGD", 43),
    ("gpuspec33", "FGD", 44),  # pods that may run on some models only
    ("multigpu50", "BestFit", 42),  # more is asked for than 130 %: pods are deleted
    ("multigpu50", "FGD", 45),
    ("cpu250", "GpuClustering", 47),
]


@cache
def the_trace(name: str) -> Trace:
    return load(f"openb:{name}", shared_path("traces"))


def published(trace: str, policy: str) -> dict[str, Any]:
    found = json.loads(shared_path("traces/openb/expected.json").read_bytes())
    said: dict[str, Any] = found["traces"][trace][policy]
    return said


@pytest.mark.parametrize(("trace", "policy", "seed"), PAGE)
def test_a_run_ends_where_it_was_published_to_end(trace: str, policy: str, seed: int) -> None:
    outcome = play(the_trace(trace), policy, seed)
    assert outcome.curve[130] == pytest.approx(
        published(trace, policy)["seeds"][str(seed)], abs=CLOSE
    )


def test_with_drawn_ties_the_lead_is_lost() -> None:
    """Whole points tie nearly everywhere; the first of equals is part of the published policy."""
    trace = the_trace("default")
    setting = arrivals(trace, 42)
    ends = []
    for policy in (Descent, DrawnTies):
        counts = list(Counter(pod.demand for pod in trace.pods).items())
        run = Run(Fleet(setting.nodes), policy(counts))
        used = sum(pod.demand.total for pod in setting.pods if run.offer(pod) is not None)
        ends.append(100 * used / (setting.devices * 1000))
    assert ends[0] == pytest.approx(95.29, abs=0.1)
    assert ends[1] == pytest.approx(90.11, abs=0.6)


class DrawnTies(Descent):
    """Fragmentation gradient descent as stock kube-scheduler would choose."""

    def __init__(self, counts: Counts) -> None:
        super().__init__(counts)
        self._random = np.random.default_rng(42)

    def choose(self, found: F64) -> int:
        return int(self._random.choice(np.flatnonzero(found == found.max())))


def test_random_ends_there_in_the_mean() -> None:
    ends = [play(the_trace("default"), "random", seed).curve[130] or 0 for seed in range(42, 45)]
    mean = published("default", "Random")["mean"]
    assert sum(ends) / len(ends) == pytest.approx(mean, abs=CLOSE_IN_THE_MEAN)


def test_the_queue_of_the_first_seed_is_as_long_as_the_published_one() -> None:
    assert play(the_trace("default"), "bestfit", 42).pods == 10_866


@pytest.mark.parametrize(
    ("policy", "trace", "more"),
    [("stock-reserve", "default", 1.0), ("stock", "cpu250", 0.3)],
)
def test_ours_allocates_more_than_the_best_published(policy: str, trace: str, more: float) -> None:
    best = published(trace, "FGD")["seeds"]["44"]
    assert (play(the_trace(trace), policy, 44).curve[130] or 0) >= best + more
