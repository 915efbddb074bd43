"""`asched drain` against the embedded API server, with its controllers and a scheduler process."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from asched_lab.apiserver.server import ApiServer
from tests.builders import a_node, a_pod
from tests.e2e.outside import a_process
from tests.support import HANG_S
from tests.unit.cli.programs import asched
from tests.unit.host.processes import free_port

CONFIG: Final = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "profiles": [
        {
            "schedulerName": "asched",
            "plugins": {"multiPoint": {"enabled": [{"name": "Rebalance"}]}},
        }
    ],
}


class World:
    """Four pods of two ReplicaSets on node n1; n2 and n3 have room for them."""

    def __init__(self, server: ApiServer, flags: tuple[str, ...]) -> None:
        self.server, self._flags = server, flags

    async def drain(self, *words: str) -> tuple[int, str, str]:
        status, out, err = await asched("drain", "n1", *words, *self._flags)
        return status, out, err

    @property
    def nodes(self) -> list[str]:
        """Where the pods are that do not terminate."""
        pods = self.server.list("pods", "default")
        standing = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return [pod["spec"].get("nodeName", "") for pod in standing]

    @property
    def n1(self) -> dict[str, Any]:
        node = self.server.get("nodes", "", "n1")
        assert node is not None
        spec: dict[str, Any] = node["spec"]
        return spec

    @property
    def taints(self) -> list[str]:
        return [taint["key"] for taint in self.n1.get("taints") or ()]


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[World]:
    server, port = ApiServer(kubelet=True, controllers=True), free_port()
    await server.start()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(server.kubeconfig(), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    server.create("nodes", a_node("n1").allocatable(cpu="4", pods="10").json)
    for name in ("web", "db"):
        server.create("replicasets", _replica_set(name))
    words = (f"--config={folder / 'config.json'}", f"--secure-port={port}")
    words += ("--authorization-always-allow-paths=/debug/*",)
    world = World(server, (f"--server=https://127.0.0.1:{port}", f"--kubeconfig={kubeconfig}"))
    try:
        async with a_process(folder, *words, environment={"KUBECONFIG": str(kubeconfig)}):
            await until(lambda: world.nodes == ["n1"] * 4)
            for name in ("n2", "n3"):
                server.create("nodes", a_node(name).allocatable(cpu="4", pods="10").json)
            yield world
    finally:
        await server.stop()


def _replica_set(name: str) -> dict[str, Any]:
    pod = a_pod(name).labels(app=name).requests(cpu="500m").spec(schedulerName="asched").json
    template = {"metadata": {"labels": {"app": name}}, "spec": pod["spec"]}
    selector = {"matchLabels": {"app": name}}
    metadata = {"name": name, "namespace": "default"}
    return {
        "metadata": metadata,
        "spec": {"replicas": 2, "selector": selector, "template": template},
    }


def _budget(allowed: int) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "web"}}
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": selector, "maxUnavailable": allowed},
        "status": {"disruptionsAllowed": allowed, "expectedPods": 2, "observedGeneration": 1}
        | {"currentHealthy": 2, "desiredHealthy": 2 - allowed},
    }


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_S):
        while not reached():  # noqa: ASYNC110 - another process acts
            await asyncio.sleep(0.05)


async def test_a_node_is_drained(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        status, out, _ = await world.drain("--dry-run")
        assert (status, world.n1.get("unschedulable")) == (0, None)
        assert out.endswith("4 pods can move, 0 cannot, 0 stay on the node\n")
        status, out, err = await world.drain()
        assert (status, world.n1["unschedulable"], world.taints) == (0, True, [])
        assert out.endswith("node n1 is cordoned, and drained\n")
        assert err.count("has left the node") == 4
        await until(lambda: sorted(world.nodes) == ["n2", "n2", "n3", "n3"])


async def test_nothing_changes_if_a_pod_cannot_move(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        bare = a_pod("bare").requests(cpu="100m").spec(schedulerName="asched", nodeName="n1")
        world.server.create("pods", bare.json)
        status, out, err = await world.drain()
        assert status == 1
        assert "default/bare" in out
        assert "no controller creates it again" in out
        assert "nothing was changed, because 1 pod cannot move" in err
        assert (world.n1.get("unschedulable"), world.taints) == (None, [])
        status, out, _ = await world.drain("--partial")
        assert (status, world.nodes.count("n1")) == (0, 1)
        assert out.endswith("node n1 is cordoned, and drained; 1 pod cannot move\n")


async def test_the_time_is_over_while_a_budget_allows_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        world.server.create("poddisruptionbudgets", _budget(0))
        status, _, err = await world.drain("--timeout=5")
        assert (status, world.taints, world.nodes.count("n1")) == (1, [], 2)
        assert "its disruption budget allows no disruption" in err
        assert "2 pods did not leave within 5 s" in err
