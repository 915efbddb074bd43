"""What `asched simulate` tells of a cluster is what `asched run` then does in it: the same nodes,
and the same words for pods that wait. Against the embedded API server, and against a real one.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from asched_lab.apiserver.server import ApiServer
from asched_lab.sim import mix
from tests.e2e.control_plane import ControlPlane, all_settled, refusal
from tests.e2e.outside import a_process
from tests.support import HANG_S
from tests.unit.cli.programs import asched

Json = dict[str, Any]
pytestmark = pytest.mark.asyncio

NODES, WAITING, ASKED = 40, 150, 250


async def told_by(*words: str) -> str:
    """What a command prints; it must end well."""
    ended, printed, said = await asched(*words)
    assert ended == 0, said
    return printed


def pods() -> list[Json]:
    """Named in the order in which they are made: pods of one second are tried by name."""
    found = list(mix.pods(WAITING + ASKED, "asched", seed=5))
    for number, pod in enumerate(found):
        pod["metadata"]["name"] = f"pod-{number:05d}"
    return found


def told(pods: Iterable[Json]) -> dict[str, str]:
    """Pod to node, or to why it waits."""
    return {
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod["spec"].get("nodeName")
        or refusal(pod)
        for pod in pods
    }


def foretold(result: Json) -> dict[str, str]:
    return {pod["pod"]: pod["node"] or pod["why"] for pod in result["pods"]}


async def foretell(folder: Path, kubeconfig: str, asked: list[Json]) -> Json:
    """Of the live cluster, and of a dump of it: both say the same."""
    workload, dump = folder / "workload.json", folder / "cluster.json.gz"
    workload.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": asked}))
    await told_by("snapshot", str(dump), f"--kubeconfig={kubeconfig}")
    words = ("simulate", "-f", str(workload), "-o", "json")
    live = json.loads(await told_by(*words, f"--kubeconfig={kubeconfig}"))
    assert json.loads(await told_by(*words, f"--snapshot={dump}")) == live
    return live


async def compare(
    folder: Path,
    kubeconfig: str,
    create: Callable[[list[Json]], Awaitable[None]],
    settled: Callable[[], Awaitable[list[Json]]],
) -> None:
    made = pods()
    await create(made[:WAITING])
    live = await foretell(folder, kubeconfig, made[WAITING:])
    await create(made[WAITING:])
    flags = (f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0")
    async with a_process(folder, *flags):
        ended = await settled()

    assert foretold(live) == told(ended)
    assert live["placed"] > WAITING
    assert live["pending"]
    assert live["evicted"] == []


async def test_the_embedded_server_sees_what_was_foretold(tmp_path: Path) -> None:
    server = ApiServer()
    await server.start()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(server.kubeconfig(), encoding="utf-8")
    for one in (*mix.namespaces(), *mix.priority_classes(), *mix.nodes(NODES)):
        server.create("", one)

    async def create(made: list[Json]) -> None:
        for pod in made:
            server.create("pods", pod)

    async def settled() -> list[Json]:
        async with asyncio.timeout(HANG_S):
            while not all_settled(server.list("pods")):  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0.05)
        return server.list("pods")

    try:
        await compare(tmp_path, str(kubeconfig), create, settled)
    finally:
        await server.stop()


@pytest.mark.real
async def test_a_real_server_sees_what_was_foretold(tmp_path: Path) -> None:
    async with ControlPlane.here() as plane, plane.open_client():
        namespaces = [{"metadata": {"name": name}} for name in mix.NAMESPACES]
        await plane.create("/api/v1/namespaces", namespaces)
        await plane.create("/apis/scheduling.k8s.io/v1/priorityclasses", mix.priority_classes())
        await plane.create("/api/v1/nodes", mix.nodes(NODES))

        async def create(made: list[Json]) -> None:
            for pod in made:  # one after the other: pods are tried in the order of their seconds
                await plane.create_pods([pod])

        async def settled() -> list[Json]:
            return await plane.until(all_settled)

        await compare(tmp_path, str(plane.kubeconfig), create, settled)
