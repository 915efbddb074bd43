"""asched as a process on a cluster that is 95 % full, and another scheduler that binds there, too.

ASCHED_E2E_BINDINGS enlarges it.
"""

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.control_plane import SERVERS, a_plane
from tests.e2e.inside import SCHEDULER, a_node
from tests.e2e.neighbourhood import Neighbourhood
from tests.e2e.outside import a_process
from tests.e2e.reference_scheduler import kube_scheduler

BINDINGS: Final = int(os.environ.get("ASCHED_E2E_BINDINGS", "150"))
NODES, CPU = 10, 16
#: Pods that are made at once, one of each side.
PAIR_S: Final = 0.05


@pytest.mark.real
async def test_no_pod_of_ours_is_left_refused_beside_kube_scheduler(tmp_path: Path) -> None:
    await no_pod_of_ours_is_left_refused("real", "default-scheduler", tmp_path)


@pytest.mark.parametrize("kind", SERVERS)
async def test_no_pod_of_ours_is_left_refused_beside_a_random_binder(
    kind: str, tmp_path: Path
) -> None:
    await no_pod_of_ours_is_left_refused(kind, "random", tmp_path)


async def no_pod_of_ours_is_left_refused(kind: str, neighbour: str, tmp_path: Path) -> None:
    async with a_plane(kind) as plane, AsyncExitStack() as stack:
        await plane.create("/api/v1/nodes", (a_node(f"n{n}", str(CPU)) for n in range(NODES)))
        flags = (
            f"--kubeconfig={plane.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--scheduler-name={SCHEDULER}",
        )
        process = await stack.enter_async_context(a_process(tmp_path, *flags))
        await process.says("synced")
        town = Neighbourhood(plane, NODES, CPU, neighbour, seed=1)
        theirs = (f"--kubeconfig={plane.kubeconfig}", "--leader-elect=false")
        if neighbour == "default-scheduler":
            await stack.enter_async_context(kube_scheduler(plane, *theirs))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(town.kubelets())]
            if neighbour == "random":
                tasks.append(group.create_task(town.random_binder()))
            while town.bound < BINDINGS:
                await town.make("ours")
                await town.make("theirs")
                await asyncio.sleep(PAIR_S)
            await plane.until(lambda pods: not any(map(is_left_refused, pods)))
            for task in tasks:
                task.cancel()
        assert "Traceback" not in process.words, process.words[-3000:]

    counts = town.counts
    told = f"beside {neighbour}: {dict(counts)}, {town.clash_rate:.2%} of all bindings refused\n"
    sys.stdout.write(told)
    assert counts["ours bound"] > BINDINGS / 5
    assert counts["ours refused"] == counts["ours replaced"]


def is_left_refused(pod: dict[str, object]) -> bool:
    status = pod["status"]
    assert isinstance(status, dict)
    return status.get("phase") == "Failed"
