"""A real scheduler and the embedded API server in one event loop: everything but the processes.

    async with a_cluster(nodes=3) as cluster:
        cluster.server.faults.add(...)
        cluster.add_pods(20)
        await cluster.until_bound(20)

`bindings` counts how often each pod got a node; the server itself refuses a second time.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from asched.core.config.defaults import configuration
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.loops import Scheduler
from asched.kube.clock import monotonic_s
from asched.kube.dispatch import Dispatcher, DispatchOptions
from asched.kube.session import ConnectionOptions, connect
from asched_lab.apiserver.context import DELETED, Change
from asched_lab.apiserver.resources import PODS
from asched_lab.apiserver.server import ApiServer
from asched_lab.sim.checker import EndState
from tests.support import HANG_S

Json = dict[str, Any]

SCHEDULER = "asched"


class Cluster:
    """One server, one scheduler."""

    def __init__(self, server: ApiServer, scheduler: Scheduler) -> None:
        self.server = server
        self.scheduler = scheduler
        self.bindings: Counter[str] = Counter()
        self._changed = asyncio.Event()
        server.store.table(PODS.storage).listeners.append(self._see)

    def _see(self, change: Change) -> None:
        before = change.old.obj["spec"].get("nodeName") if change.old is not None else None
        if change.type != DELETED and not before and change.new.obj["spec"].get("nodeName"):
            self.bindings[change.new.obj["metadata"]["uid"]] += 1
        self._changed.set()

    def add_pods(self, count: int, prefix: str = "pod", cpu: str = "100m", **spec: Any) -> None:
        for number in range(count):
            self.server.create("pods", a_pod(f"{prefix}-{number}", cpu, **spec))

    def pods(self) -> list[Json]:
        return self.server.list("pods")

    def placed(self) -> list[Json]:
        return [pod for pod in self.pods() if pod["spec"].get("nodeName")]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a state of the server's pods."""
        async with asyncio.timeout(HANG_S):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def until_bound(self, count: int) -> None:
        await self.until(lambda: len(self.placed()) >= count)

    async def until_told(self, namespace: str, name: str, text: str) -> None:
        """Wait for an event about a pod with some words in it."""
        async with asyncio.timeout(HANG_S):
            while not any(  # noqa: ASYNC110 - the scheduler writes it when it likes
                event["involvedObject"].get("name") == name and text in event["message"]
                for event in self.server.list("events", namespace)
            ):
                await asyncio.sleep(0.05)

    def broken_rules(self) -> list[str]:
        return EndState(self.server.list("nodes"), self.pods()).broken_rules()


def a_node(name: str, cpu: str = "8", pods: str = "110") -> Json:
    amounts = {"cpu": cpu, "memory": "32Gi", "pods": pods}
    labels = {"kubernetes.io/hostname": name}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def a_pod(name: str, cpu: str = "100m", **spec: Any) -> Json:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "schedulerName": SCHEDULER, **spec},
    }


@asynccontextmanager
async def a_cluster(
    folder: Path,
    *,
    nodes: int = 4,
    cpu: str = "8",
    attempt_timeout_s: float = 2.0,
    prepare: Callable[[ApiServer], None] = lambda _: None,
) -> AsyncIterator[Cluster]:
    """Both running, the scheduler synced; both stopped in good order at the end.

    `prepare` does something to the server before the scheduler comes.
    """
    server = ApiServer(kubelet=True)
    await server.start()
    try:
        for number in range(nodes):
            server.create("nodes", a_node(f"node-{number}", cpu))
        prepare(server)
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(server.kubeconfig(), encoding="utf-8")
        effective = configuration({"profiles": [{"schedulerName": SCHEDULER}]})
        parts = Parts.fresh()
        runners = build_runners(effective, parts)
        machine = build_machine(effective, parts, runners, monotonic_s=monotonic_s)
        options = DispatchOptions(attempt_timeout_s=attempt_timeout_s)
        scheduler = Scheduler(
            await connect(ConnectionOptions(kubeconfig=str(kubeconfig))),
            machine,
            make_dispatcher=partial(Dispatcher, options=options),
        )
        running = asyncio.ensure_future(scheduler.run())
        try:
            async with asyncio.timeout(HANG_S):
                while not (scheduler.is_synced or running.done()):  # noqa: ASYNC110 - no event tells
                    await asyncio.sleep(0.01)
            yield Cluster(server, scheduler)
        finally:
            scheduler.stop()
            await asyncio.wait_for(running, HANG_S)
    finally:
        await server.stop()
