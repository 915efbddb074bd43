"""The published experiment again: every deterministic policy ends where it was published to end."""

import json
from functools import cache
from typing import Any

import pytest

from asched_lab.trace.openb import Trace, load
from asched_lab.trace.run import play
from tests.support import RECORDINGS

CLOSE = 0.05
PAGE = [
    ("default", "DotProd", 42),
    ("gpuspec33", "FGD", 44),  # pods that may run on some models only
    ("multigpu50", "BestFit", 42),  # more is asked for than 130 %: pods are deleted
    ("cpu250", "GpuClustering", 47),
]


@cache
def the_trace(name: str) -> Trace:
    return load(f"openb:{name}", RECORDINGS / "traces")


def published(trace: str, policy: str) -> dict[str, Any]:
    found = json.loads((RECORDINGS / "traces/openb/expected.json").read_bytes())
    said: dict[str, Any] = found["traces"][trace][policy]
    return said


@pytest.mark.parametrize(("trace", "policy", "seed"), PAGE)
def test_a_run_ends_where_it_was_published_to_end(trace: str, policy: str, seed: int) -> None:
    outcome = play(the_trace(trace), policy, seed)
    assert outcome.curve[130] == pytest.approx(
        published(trace, policy)["seeds"][str(seed)], abs=CLOSE
    )


@pytest.mark.parametrize(
    ("policy", "trace", "more"),
    [("stock-reserve", "default", 1.0), ("stock", "cpu250", 0.3)],
)
def test_ours_allocates_more_than_the_best_published(policy: str, trace: str, more: float) -> None:
    best = published(trace, "FGD")["seeds"]["44"]
    assert (play(the_trace(trace), policy, 44).curve[130] or 0) >= best + more
