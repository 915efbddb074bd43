"""A critical pod in a cluster whose nodes a tenant keeps full: asched, and kube-scheduler where
there is a real API server.

For each evicted pod of priority 0 the tenant creates another one with `spec.nodeName` before the
evicted one is gone. The critical pod is placed no later than by kube-scheduler.
"""

import asyncio
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.control_plane import PODS, SERVERS, Plane, a_plane
from tests.e2e.inside import SCHEDULER, a_node, a_pod
from tests.e2e.neighbourhood import NOW, POD
from tests.e2e.outside import a_process
from tests.e2e.program_flags import flags
from tests.e2e.reference_scheduler import kube_scheduler

NODES: Final = [f"n{number}" for number in range(6)]
#: How long an evicted pod takes to end (s).
ENDS_S: Final = 1.0
POLL_S: Final = 0.05
#: kube-scheduler's backoff grows to 10 s; the machine may be busy.
MARGIN_S: Final = 12.0
#: How many evicted pods the tenant replaces.
TIMES: Final = {"embedded": (2,), "real": (0, 2, 6)}


async def seconds_until_bound(plane: Plane, name: str, scheduler: str, times: int) -> float:
    """How long the critical pod waits."""
    fill = (a_pod(f"{name}-low-{node}", "1", nodeName=node) for node in NODES)
    await plane.create_pods(fill)
    await asyncio.sleep(1.0)
    spec = {"schedulerName": scheduler, "priorityClassName": "system-cluster-critical"}
    await plane.create_pods([a_pod(f"{name}-critical", "1", **spec)])
    began_s, ends_s, left = time.monotonic(), dict[str, float](), times
    while True:
        now_s = time.monotonic()
        for pod in await plane.every(PODS):
            this = pod["metadata"]["name"]
            if this == f"{name}-critical" and pod["spec"].get("nodeName"):
                return now_s - began_s
            if not pod["metadata"].get("deletionTimestamp"):
                continue
            if this not in ends_s:
                ends_s[this] = now_s + ENDS_S
                if left:
                    left -= 1
                    node = pod["spec"]["nodeName"]
                    await plane.create_pods([a_pod(f"{name}-thief-{left}", "1", nodeName=node)])
            elif ends_s[this] <= now_s:
                await plane.client.ask("DELETE", POD + this, NOW)
        assert now_s < began_s + 120.0, f"{scheduler}: the critical pod waits after two minutes"
        await asyncio.sleep(POLL_S)


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_critical_pod_waits_no_longer_than_with_kube_scheduler(
    kind: str, tmp_path: Path
) -> None:
    schedulers = ("default-scheduler", SCHEDULER) if kind == "real" else (SCHEDULER,)
    found: dict[tuple[str, int], float] = {}
    async with a_plane(kind) as plane, AsyncExitStack() as stack:
        await plane.create("/api/v1/nodes", nodes())
        process = await stack.enter_async_context(a_process(tmp_path, *flags(plane)))
        await process.says("synced")
        if kind == "real":
            theirs = (f"--kubeconfig={plane.kubeconfig}", "--leader-elect=false")
            await stack.enter_async_context(kube_scheduler(plane, *theirs))
        for times in TIMES[kind]:
            for scheduler in schedulers:
                name = f"{scheduler}-{times}"
                found[scheduler, times] = await seconds_until_bound(plane, name, scheduler, times)
                await plane.client.ask("DELETE", "/api/v1/namespaces/default/pods", NOW)
                await plane.until(lambda pods: not pods)
        assert "Traceback" not in process.words, process.words[-3000:]
    for (scheduler, times), seconds in found.items():
        sys.stdout.write(f"{scheduler}, {times} replaced: bound after {seconds:.1f} s\n")
    for times in TIMES[kind] if kind == "real" else ():
        assert found[SCHEDULER, times] <= found["default-scheduler", times] + MARGIN_S


def nodes() -> list[dict[str, Any]]:
    return [a_node(name, "1") for name in NODES]
