"""Requests that a running scheduler sends, counted at the embedded API server."""

import pytest

from asched_lab.apiserver.server import ApiServer
from tests.unit.host.observing import observing, pod

PODS = 40

observed = pytest.fixture(observing)


def bound(server: ApiServer) -> int:
    return sum(bool(p["spec"].get("nodeName")) for p in server.list("pods"))


async def test_a_pod_costs_one_binding_and_one_event(observed) -> None:
    for index in range(PODS):
        observed.server.create("pods", pod(f"p{index}"))
    await observed.until(lambda: bound(observed.server) == PODS)
    await observed.until(lambda: observed.writes["POST events"] >= PODS)
    assert observed.writes == {"POST binding": PODS, "POST events": PODS}


async def test_a_pod_that_fits_nowhere_costs_one_condition_and_one_event(observed) -> None:
    observed.server.create("pods", pod("giant", cpu="100"))
    await observed.until(lambda: sum(observed.writes.values()) >= 2)
    for index in range(PODS):  # others that come and are placed do not make it ask again
        observed.server.create("pods", pod(f"p{index}"))
    await observed.until(lambda: observed.writes["POST events"] >= PODS + 1)
    assert observed.writes["PATCH status"] == 1
    assert observed.writes["POST binding"] == PODS
    assert observed.writes["POST events"] == PODS + 1
