"""Where allocated claims are good."""

from typing import Any

import pytest

from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE
from asched.core.plugins.devices.places import DevicePlaces
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Seen
from tests.core.plugins.dra_world import a_claim_object, a_node, allocated

BINDS = {"result": {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}}
START_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def outside(now_s: float = 0.0, **status: Any) -> list[bool]:
    cluster = Cluster()
    cluster.wall_clock_s = now_s
    for node in a_node("n1", zone="a"), a_node("n2", zone="b"):
        cluster.apply(Seen(NODE, node))
    claim = decode(ResourceClaim, a_claim_object("c", **status))
    return DevicePlaces(cluster, 600).outside(claim).tolist()


def terms(*requirements: dict[str, Any]) -> dict[str, Any]:
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": list(requirements)}]}}


ZONE_B = {"key": "zone", "operator": "In", "values": ["b"]}
DEVICE = {"driver": "gpu.example.com", "pool": "n1", "device": "a"}


def conditions(name: str, status: str) -> list[dict[str, Any]]:
    return [{**DEVICE, "conditions": [{"type": name, "status": status}]}]


STARTED = {"allocationTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("status", "now_s", "expected"),
    [
        ({}, 0, [False, False]),
        (allocated(node="n2"), 0, [True, False]),
        (allocated(node="gone"), 0, [True, True]),
        (allocated(node=None), 0, [False, False]),
        (allocated(node=None, allocation=terms(ZONE_B)), 0, [True, False]),
        (allocated(node=None, devices=conditions("failed", "True"), **BINDS), 0, [True, True]),
        (allocated(node=None, devices=conditions("failed", "False"), **BINDS), 0, [False] * 2),
        (allocated(node=None, allocation=STARTED, **BINDS), START_S + 599, [False, False]),
        (allocated(node=None, allocation=STARTED, **BINDS), START_S + 601, [True, True]),
        (allocated(node=None, allocation=STARTED), START_S + 601, [False, False]),
        (
            allocated(node=None, allocation=STARTED, devices=conditions("ready", "True"), **BINDS),
            START_S + 601,
            [False, False],
        ),
    ],
)
def test_outside(status: dict[str, Any], now_s: float, expected: list[bool]) -> None:
    assert outside(now_s, **status) == expected
