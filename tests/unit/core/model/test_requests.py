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
