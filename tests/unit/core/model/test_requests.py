"""What pods ask for and hold, against the slow reading of the rule, and while they are resized."""

from typing import Any

import pytest

from asched.core.model.requests import (
    accounted_requests,
    nano,
    pod_requests,
    to_units,
)
from tests.builders import a_pod

GIB, MIB = 1 << 30, 1 << 20
INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]


def test_resizes_by_the_largest_sum() -> None:
    """As the sums of component-helpers 1.37 (AggregateContainerRequests) say."""

    def held(**status: Any) -> int | None:
        both = a_pod().requests(cpu="1").container(cpu="2").init(cpu="1", sidecar=True).on("n1")
        return accounted_requests(both.status(**status).build(), by_sum=True).get("cpu")

    def container(name: str, **amounts: str) -> dict[str, Any]:
        return {"name": name, **{key: {"cpu": amount} for key, amount in amounts.items()}}

    def in_force(name: str, cpu: str) -> dict[str, Any]:
        return {"name": name, "resources": {"requests": {"cpu": cpu}}}

    larger = [container("c0", allocatedResources="4"), in_force("c1", "1")]
    assert held() == 4000
    assert held(containerStatuses=larger) == 4000 + 2000 + 1000  # c1 is allocated as requested
    assert held(containerStatuses=larger, conditions=INFEASIBLE) == 4000 + 1000
    of_pod = {"resources": {"requests": {"cpu": "6"}}, "allocatedResources": {"cpu": "5"}}
    assert held(containerStatuses=larger, **of_pod) == 6000
    assert held(containerStatuses=larger, **of_pod, conditions=INFEASIBLE) == 6000


@pytest.mark.parametrize(
    ("asked", "status", "cpu", "memory"),
    [
        # the largest of what is asked for, allocated and in force counts
        ({"cpu": "2"}, {"resources": {"requests": {"cpu": "3"}}}, 3000, None),
        (
            {"cpu": "2"},
            {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "4"}},
            4000,
            None,
        ),
        # of resources that the pod asks for as a whole, and no others
        ({"cpu": "2"}, {"resources": {"requests": {"memory": "8Gi"}}}, 2000, None),
        # no word of what is in force: what is allocated says nothing
        ({"cpu": "2"}, {"allocatedResources": {"cpu": "4"}}, 2000, None),
        ({}, {"resources": {"requests": {"cpu": "4"}}}, None, None),
        # what cannot be had is not held, not even if nothing is told about it
        (
            {"cpu": "2", "memory": "4Gi"},
            {"resources": {"requests": {"memory": "1Gi"}}, "conditions": INFEASIBLE},
            0,
            GIB,
        ),
        (
            {"cpu": "2"},
            {"resources": {"requests": {"cpu": "1"}}, "conditions": DEFERRED},
            2000,
            None,
        ),
    ],
)
def test_pod_level_resources_while_they_are_resized(
    asked: dict[str, str], status: dict[str, Any], cpu: int, memory: int | None
) -> None:
    pod = a_pod().on("n1").spec(resources={"requests": asked}).status(**status).build()

    held = accounted_requests(pod)

    assert held.get("cpu") == cpu
    assert held.get("memory") == memory
    assert pod_requests(pod) == to_units({name: nano(text) for name, text in asked.items()})
