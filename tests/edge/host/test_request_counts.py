"""Requests that a running scheduler sends, counted at the embedded API server."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from asched.core.config.defaults import default_configuration
from asched.edge.client.session import ConnectionOptions, connect
from asched.edge.host.assemble import Parts, build_machine, build_runners
from asched.edge.host.clock import counter_s
from asched.edge.host.loops import Scheduler
from asched.lab.apiserver.server import ApiServer

NAME = "counted"
PODS = 40
PATIENCE_S = 30.0


def node(index: int) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    name = f"n{index}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pod(name: str, cpu: str = "100m") -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": NAME, "containers": [container]},
    }


class Observed:
    """A scheduler beside a server whose every request is counted by method and kind of path."""

    def __init__(self, server: ApiServer, scheduler: Scheduler, writes: Counter[str]) -> None:
        self.server = server
        self.scheduler = scheduler
        self.writes = writes
        self.pulse = asyncio.Event()  # set with every request

    async def until(self, reached) -> None:
        """Look again after every request."""
        async with asyncio.timeout(PATIENCE_S):
            while not reached():
                await self.pulse.wait()
                self.pulse.clear()


@pytest.fixture
async def observed():
    server = ApiServer()
    await server.start()
    writes: Counter[str] = Counter()
    answer = server._call

    async def counted(request):
        call = await answer(request)
        made.pulse.set()
        if call.method != "GET":
            writes[f"{call.method} {call.path.rpartition('/')[2]}"] += 1
        return call

    server._call = counted  # type: ignore[method-assign]
    for index in range(4):
        server.create("nodes", node(index))
    parts = Parts.fresh()
    configuration = default_configuration(NAME)
    machine = build_machine(
        configuration, parts, build_runners(configuration, parts), counter_s=counter_s
    )
    session = await connect(ConnectionOptions(master=server.url))
    scheduler = Scheduler(session, machine)
    made = Observed(server, scheduler, writes)
    running = asyncio.create_task(scheduler.run())
    yield made
    scheduler.stop()
    await running
    await server.stop()


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
