"""LowRiskOverCommitment where its two risks can be seen through: nodes measured once."""

from typing import Any

import pytest

from asched.hardware.load.overcommitment import LowRiskOverCommitment, LowRiskOverCommitmentArgs
from tests.builders import all_rows
from tests.hardware.load.worlds import NOW_S, World, a_node, a_pod

USED = ("2", "0")


def points(
    there: dict[str, Any],
    pod: dict[str, Any],
    *,
    offered: int = 4000,
    used: tuple[str, str] | None = USED,
    **args: Any,
) -> int:
    """Of a node of 4 cores with one pod, of which 2 are in use; no memory is."""
    world = World()
    world.add(a_node("n1", cpu=offered, reserved=0), a_pod("there", on="n1", **there))
    if used:
        world.measure({"n1": used}, NOW_S)
    plugin = LowRiskOverCommitment(LowRiskOverCommitmentArgs(**args), world.cluster)
    info = world.pending(a_pod("p", **pod))
    found: int = plugin.score(info, all_rows(world.cluster), None).tolist()[0]
    return found


def cpu(amount: str, limit: str = "") -> dict[str, Any]:
    limits = {"limits": {"cpu": limit}} if limit else {}
    return {"requests": {"cpu": amount}, **limits}


@pytest.mark.parametrize(
    ("there", "pod", "weight", "expected"),
    [
        # more is used than is asked for: all that load can risk; limits stay within the node
        (cpu("1"), cpu("1"), 0.5, 50),
        (cpu("1"), cpu("1"), 0.0, 0),
        (cpu("1"), cpu("1"), 0.25, 25),
        (cpu("1"), cpu("1"), 1.0, 100),
        (cpu("1", "3"), cpu("1"), 0.5, 50),
        # as much as is asked for is used
        (cpu("2"), cpu("1"), 0.0, 100),
        (cpu("1999m"), cpu("1"), 0.0, 0),
        (cpu("9"), cpu("1"), 0.0, 100),  # no more than the node has
        # limits exceed the node by 4 of the 6 that are not asked for
        (cpu("1"), cpu("1", "7"), 1.0, 33),
        (cpu("1", "7"), cpu("1"), 1.0, 33),
        (cpu("2", "3"), cpu("2", "5"), 1.0, 0),  # by all that is not asked for
        (cpu("2", "2"), cpu("1", "2"), 1.0, 100),  # by nothing
        # nobody is there who could use more than he may
        ({}, cpu("1"), 0.0, 100),
    ],
)
def test_the_risk_is_of_limits_and_of_load(
    there: dict[str, Any], pod: dict[str, Any], weight: float, expected: int
) -> None:
    assert points(there, pod, risk_limit_weights={"cpu": weight}) == expected


def test_the_worse_of_cpu_and_memory_decides() -> None:
    fine = {"used": ("0", "0")}
    greedy = {"requests": {"memory": "8Gi"}, "limits": {"memory": "24Gi"}}
    assert points({}, greedy, **fine) == 75  # half of 8 of 16 GiB
    assert points({}, greedy, **fine, risk_limit_weights={"memory": 1.0}) == 50
    assert points({}, greedy, **fine, risk_limit_weights={"cpu": 1.0}) == 75
    assert points(cpu("1"), {**greedy, **cpu("1", "1")}) == 50


def test_a_node_that_offers_nothing_risks_what_is_allowed() -> None:
    assert points({}, cpu("1"), offered=0, risk_limit_weights={"cpu": 1.0}) == 0
    assert points({}, cpu("1"), offered=0, risk_limit_weights={"cpu": 0.0}) == 100


def test_who_asks_for_nothing_and_who_was_not_measured_gets_nothing() -> None:
    assert points({}, {}) == 0
    assert points({}, {"requests": {"cpu": "0"}}) == 0
    assert points({}, cpu("1"), used=None) == 0
    assert points({}, {"limits": {"memory": "1"}}) > 0


def test_a_measurement_counts_at_once_and_moves_the_stamp() -> None:
    world = World()
    world.add(a_node("n1"))
    plugin = LowRiskOverCommitment(LowRiskOverCommitmentArgs(), world.cluster)
    info = world.pending(a_pod("p", **cpu("1")))
    before = plugin.stamp(info, None)
    world.measure({"n1": USED}, NOW_S)
    assert plugin.stamp(info, None) != before
    assert plugin.share_key(info) != plugin.share_key(world.pending(a_pod("q", **cpu("2"))))


def test_weights_and_windows_have_a_range() -> None:
    for weight in (0.0, 1.0):
        LowRiskOverCommitmentArgs(risk_limit_weights={"cpu": weight, "memory": weight})
    LowRiskOverCommitmentArgs(smoothing_window_size=1)
    for weight in (-0.1, 1.1):
        with pytest.raises(ValueError, match="is not in"):
            LowRiskOverCommitmentArgs(risk_limit_weights={"memory": weight})
    with pytest.raises(ValueError, match="watcherAddress"):
        LowRiskOverCommitmentArgs(watcher_address="http://w")
