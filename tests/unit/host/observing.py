"""A scheduler beside an embedded API server that counts every request."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

from asched.core.config.defaults import default_configuration
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.loops import Scheduler
from asched.kube.clock import monotonic_s
from asched.kube.session import ConnectionOptions, connect
from asched_lab.apiserver.server import ApiServer
from tests.support import HANG_S

NAME = "counted"


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
        self.bodies: list[tuple[str, bytes]] = []  # (path, body) of every write
        self.pulse = asyncio.Event()  # set with every request

    async def until(self, reached: Callable[[], bool]) -> None:
        """Look again after every request."""
        async with asyncio.timeout(HANG_S):
            while not reached():
                await self.pulse.wait()
                self.pulse.clear()


async def observing() -> AsyncIterator[Observed]:
    """Four nodes, and a scheduler that runs until the iterator is closed."""
    server = ApiServer()
    await server.start()
    writes: Counter[str] = Counter()
    made: Observed | None = None
    answer = server._call

    async def counted(request: Any) -> Any:
        call = await answer(request)
        if made is None:
            return call
        made.pulse.set()
        if call.method != "GET":
            writes[f"{call.method} {call.path.rpartition('/')[2]}"] += 1
            made.bodies.append((call.path, call.body))
        return call

    server._call = counted  # type: ignore[method-assign]
    for index in range(4):
        server.create("nodes", node(index))
    parts = Parts.fresh()
    configuration = default_configuration(NAME)
    machine = build_machine(
        configuration, parts, build_runners(configuration, parts), monotonic_s=monotonic_s
    )
    session = await connect(ConnectionOptions(master=server.url))
    scheduler = Scheduler(session, machine)
    made = Observed(server, scheduler, writes)
    running = asyncio.create_task(scheduler.run())
    await scheduler.begun.wait()
    yield made
    scheduler.stop()
    await running
    await server.stop()
