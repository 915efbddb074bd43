"""What a pod will use, by its requests, its limits and the class that Koordinator puts it in."""

from typing import Any

import pytest

from asched.core.model.requests import CPU, MEMORY
from asched.core.state.pod_classes import PodClasses
from asched.hardware.koordinator.estimate import (
    AFTER_INITIALIZED,
    AFTER_SCHEDULED,
    FACTORS,
    Estimate,
    Estimator,
    class_of,
    limits_of,
    used,
)
from tests.builders import PodBuilder, a_pod


@pytest.mark.parametrize(
    ("request_", "limit", "factor", "expected"),
    [
        (1000, 0, 85, 850),
        (1000, 4000, 50, 2000),  # of the larger of the two
        (4000, 1000, 85, 1000),  # not above the limit
        (5, 1, 100, 1),
        (1, 0, 50, 1),  # halves away from zero
        (1, 0, 49, 0),
        (0, 0, 85, 250),
    ],
)
def test_an_estimate_is_a_part_of_the_larger_of_request_and_limit(
    request_: int, limit: int, factor: int, expected: int
) -> None:
    assert used(CPU, request_, limit, factor) == expected


def test_nothing_asked_for_is_250_milli_cpu_and_200_mebibytes() -> None:
    assert (used(CPU, 0, 0, 85), used(MEMORY, 0, 0, 70)) == (250, 200 << 20)
    assert used("example.com/x", 0, 0, 70) == 0


def limited(name: str, **limits: str) -> dict[str, Any]:
    return {"name": name, "image": "app", "resources": {"limits": limits}}


def test_limits_add_up_as_requests_do_and_those_of_the_pod_stand_before_them() -> None:
    pod = a_pod("p").spec(containers=[limited("a", cpu="1"), limited("b", cpu="2")])
    assert limits_of(pod.build()) == {CPU: 3000}
    pod.spec(initContainers=[limited("i", memory="1Gi")], overhead={"cpu": "1", "x.com/y": "1"})
    assert limits_of(pod.build()) == {CPU: 4000, MEMORY: 1 << 30}
    whole = a_pod("p").spec(resources={"limits": {"cpu": "5"}})
    assert limits_of(whole.build()) == {CPU: 5000}
    assert limits_of(a_pod("p").spec(resources={"requests": {"cpu": "5"}}).build()) == {}


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        (9000, "koord-prod"),
        (9999, "koord-prod"),
        (7000, "koord-mid"),
        (7999, "koord-mid"),
        (5000, "koord-batch"),
        (5999, "koord-batch"),
        (3000, "koord-free"),
        (3999, "koord-free"),
        *((beside, "koord-batch") for beside in (2999, 4000, 6000, 8000, 8999, 10_000)),
    ],
)
def test_the_class_is_told_by_the_priority_from_the_first_to_the_last_of_its_range(
    priority: int, expected: str
) -> None:
    """Outside of all it is told by the quality of service: best effort is batch."""
    assert class_of(a_pod("p").priority(priority).build()) == expected


def estimate_of(pod: PodBuilder, *, is_custom: bool = True) -> Estimate:
    estimator = Estimator((CPU,), {CPU: 85}, (7, 8), is_custom=is_custom)
    return estimator(PodClasses().info_of(pod.build()).cls)


@pytest.mark.parametrize(
    ("said", "cpu", "seconds"),
    [
        ({}, 850, (7, 8)),
        ({FACTORS: '{"cpu": 50}'}, 500, (7, 8)),
        ({FACTORS: "null"}, 850, (7, 8)),
        ({AFTER_SCHEDULED: "20", AFTER_INITIALIZED: "30"}, 850, (20, 30)),
        ({AFTER_SCHEDULED: "0"}, 850, (0, 8)),
        ({AFTER_INITIALIZED: "-1"}, 850, (7, 8)),
        ({AFTER_INITIALIZED: "soon"}, 850, (7, 8)),
    ],
)
def test_a_pod_says_in_annotations_what_is_otherwise_the_profile_s(
    said: dict[str, str], cpu: int, seconds: tuple[int, int]
) -> None:
    for is_custom in (True, False):
        pod = a_pod("p").requests(cpu="1").metadata(annotations=said)
        found = estimate_of(pod, is_custom=is_custom)
        assert found.amounts is not None
        assert found.amounts.tolist() == [cpu if is_custom else 850]
        told = found.after_scheduled_s, found.after_initialized_s
        assert told == (seconds if is_custom else (7, 8))
    assert estimate_of(a_pod("p").requests(cpu="1")).amounts is not None, "without any"
