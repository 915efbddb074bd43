"""Two replicas as processes, the leader killed at full load: nothing bound twice, nothing lost.

With the embedded API server always; with a real one where KUBEBUILDER_ASSETS names its binaries.
"""

import asyncio
import json
import sys
import time
from collections import Counter

import pytest

from asched.kube.session import ConnectionOptions, connect
from asched_lab.apiserver.server import ApiServer
from tests.e2e.inside import a_pod
from tests.support import HANG_S, real_api_server

LEASE_S = 3.0
FLAGS = (
    f"--leader-elect-lease-duration={LEASE_S:.0f}s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
    "--secure-port=0",
    "--scheduler-name=asched",
)
NODES = 40
PODS = 600
#: The leader dies when so many are bound.
KILL_AT = 100


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
async def kubeconfig(request, tmp_path):
    """The path of a kubeconfig for a server that lives as long as the test."""
    if request.param == "embedded":
        server = ApiServer()
        await server.start()
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        yield str(tmp_path / "kubeconfig")
        await server.stop()
        return
    with real_api_server() as path:
        yield path


class Cluster:
    """A client of the server, for creating and looking."""

    def __init__(self, session):
        self._session = session
        self._pool = session.pool(16)

    async def create(self, path, objects):
        queue = list(objects)

        async def some():
            while queue:
                reply = await self._pool.request("POST", path, json.dumps(queue.pop()).encode())
                assert reply.status == 201, reply

        await asyncio.gather(*(some() for _ in range(16)))

    async def items(self, path):
        return (await self._session.get_as(path, dict, timeout_s=30.0))["items"]

    async def placed(self):
        """Pod uid -> node."""
        pods = await self.items("/api/v1/namespaces/default/pods?resourceVersion=0")
        return {
            pod["metadata"]["uid"]: pod["spec"]["nodeName"]
            for pod in pods
            if pod["spec"].get("nodeName")
        }

    async def holder(self):
        leases = await self.items("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")
        held = {lease["metadata"]["name"]: lease["spec"] for lease in leases}
        return held.get("asched", {}).get("holderIdentity", "")


def a_node(number):
    resources = {"cpu": "64", "memory": "64Gi", "pods": "60"}
    status = {"allocatable": resources, "capacity": resources}
    return {"metadata": {"name": f"n{number}"}, "status": status}


async def start(kubeconfig, log):
    command = (sys.executable, "-m", "asched", "run", "--kubeconfig", kubeconfig, *FLAGS)
    return await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)


async def until(look, patience_s=HANG_S):
    async with asyncio.timeout(patience_s):
        while not (found := await look()):  # noqa: ASYNC110 - servers ring no bell
            await asyncio.sleep(0.2)
        return found


async def test_a_killed_leader_is_replaced_in_time_and_no_pod_suffers(kubeconfig, tmp_path):
    session = await connect(ConnectionOptions(kubeconfig=kubeconfig))
    cluster = Cluster(session)
    processes = []
    try:
        await cluster.create("/api/v1/nodes", map(a_node, range(NODES)))
        with (tmp_path / "log").open("wb") as log:
            processes.append(await start(kubeconfig, log))
            first = await until(cluster.holder)
            processes.append(await start(kubeconfig, log))

        async def is_standing_by():
            return (tmp_path / "log").read_text().count('"synced"') == 2

        await until(is_standing_by)
        creating = asyncio.ensure_future(
            cluster.create(
                "/api/v1/namespaces/default/pods", (a_pod(f"p{i}", "1m") for i in range(PODS))
            )
        )

        async def enough():
            placed = await cluster.placed()
            return placed if len(placed) >= KILL_AT else None

        await until(enough)
        processes[0].kill()
        killed_s = time.monotonic()
        at_death = await cluster.placed()

        async def is_taken_over():
            return await cluster.holder() not in ("", first)

        await until(is_taken_over)
        gap_s = time.monotonic() - killed_s
        await creating

        async def all_placed():
            placed = await cluster.placed()
            return placed if len(placed) == PODS else None

        placed = await until(all_placed)
        log_text = (tmp_path / "log").read_text()

        assert gap_s < LEASE_S + 3.0
        assert {uid: placed[uid] for uid in at_death} == at_death
        assert max(Counter(placed.values()).values()) <= 60
        events = await cluster.items("/apis/events.k8s.io/v1/namespaces/default/events")
        told = Counter(e["regarding"]["uid"] for e in events if e["reason"] == "Scheduled")
        assert max(told.values()) == 1
        assert "Traceback" not in log_text
    finally:
        for process in processes:
            if process.returncode is None:
                process.terminate()
            await process.wait()
        await session.close()
