"""asched as a process. ASCHED_E2E_NODES and ASCHED_E2E_PODS enlarge the crowd."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from asched_lab.sim import mix
from asched_lab.sim.checker import EndState
from tests.e2e.affairs import broken_rules
from tests.e2e.control_plane import (
    NODES_COUNT,
    PODS,
    PODS_COUNT,
    SERVERS,
    Plane,
    a_plane,
    all_placed,
    all_settled,
    refusal,
)
from tests.e2e.inside import SCHEDULER, a_node, a_pod
from tests.e2e.outside import Asched, a_process
from tests.e2e.program_flags import flags
from tests.support import HANG_S

Json = dict[str, Any]


@pytest_asyncio.fixture(params=SERVERS)
async def plane(request: pytest.FixtureRequest) -> AsyncIterator[Plane]:
    async with a_plane(request.param) as made:
        yield made


def assert_calm(process: Asched) -> None:
    assert "Traceback" not in process.words, process.words[-3000:]


async def test_a_crowd_is_placed_and_the_rest_is_told(plane: Plane, tmp_path: Path) -> None:
    """Nothing is overcommitted, no pod is forgotten, and events show why."""
    namespaces = [{"metadata": {"name": name}} for name in mix.NAMESPACES]
    await plane.create("/api/v1/namespaces", namespaces)
    await plane.create("/apis/scheduling.k8s.io/v1/priorityclasses", mix.priority_classes())
    await plane.create("/api/v1/nodes", mix.nodes(NODES_COUNT))
    await plane.create_pods(mix.pods(PODS_COUNT, SCHEDULER))
    async with a_process(tmp_path, *flags(plane)) as process:
        pods = await plane.until(all_settled)
        nodes = await plane.every("/api/v1/nodes")
        end = EndState(nodes, pods)
        bound, waiting = end.placed[0]["metadata"], end.waiting[0]
        assigned = await note_of(plane, bound, "Scheduled")
        failed = await note_of(plane, waiting["metadata"], "FailedScheduling")
        assert_calm(process)
        if "RequestWatchProgress is disabled" not in process.words:  # etcd is older than 3.4.25
            assert "no streaming list" not in process.words

    assert end.broken_rules() == []
    assert end.could_be_placed() == []
    assert len(end.placed) > 0.9 * PODS_COUNT
    assert all("nodes are available" in refusal(pod) for pod in end.waiting)
    assert assigned.startswith("Successfully assigned")
    assert failed.startswith(refusal(waiting)[:40])


async def note_of(plane: Plane, metadata: Any, reason: str) -> str:
    """The note of the first event of that reason about a pod; events come after bindings."""
    async with asyncio.timeout(HANG_S):
        while True:
            for event in await plane.every("/apis/events.k8s.io/v1/events"):
                if event["regarding"]["name"] == metadata["name"] and event["reason"] == reason:
                    return str(event["note"])
            await asyncio.sleep(0.2)


async def test_the_api_server_dies_in_the_middle(plane: Plane, tmp_path: Path) -> None:
    """1. Half is placed. 2. The API server is killed and comes back. 3. All is placed, once."""
    async with a_process(tmp_path, *flags(plane)) as process:
        await plane.create("/api/v1/nodes", (a_node(f"node-{n}", cpu="16") for n in range(20)))
        await process.says("synced")
        filling = asyncio.ensure_future(plane.create_pods(small_pods("before", 400)))
        await plane.until(lambda pods: sum(bool(p["spec"].get("nodeName")) for p in pods) > 100)
        await asyncio.wait([filling])
        await plane.kill_and_restart(away_s=1.0)
        await plane.create_pods(small_pods("after", 100))
        pods = await plane.until(lambda pods: len(pods) >= 500 and all_placed(pods))
        assert_calm(process)
        assert broken_rules(await plane.every("/api/v1/nodes"), pods) == []


async def test_two_schedulers_want_the_same_pods(plane: Plane, tmp_path: Path) -> None:
    """Each pod gets one node from one of them; who lost does not talk the pod out of it."""
    await plane.create("/api/v1/nodes", (a_node(f"node-{n}", cpu="32") for n in range(20)))
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    async with (
        a_process(folders[0], *flags(plane)) as one,
        a_process(folders[1], *flags(plane)) as two,
    ):
        await one.says("synced")
        await two.says("synced")
        await plane.create_pods(small_pods("wanted", 300))
        await plane.until(all_placed)
        for process in (one, two):  # in an orderly end, everything is written that is to be
            process.signal(signal.SIGTERM)
            assert await process.ended() == 0
            assert_calm(process)
    pods = await plane.every(PODS)

    assert broken_rules(await plane.every("/api/v1/nodes"), pods) == []
    assert not [pod["metadata"]["name"] for pod in pods if refusal(pod)]


def small_pods(prefix: str, count: int) -> list[Json]:
    return [a_pod(f"{prefix}-{number}", "50m") for number in range(count)]
