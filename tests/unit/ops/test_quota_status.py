"""The status controller of ElasticQuotas against an embedded API server: what is used, and who may
write it.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.config.args import CapacitySchedulingArgs
from asched.core.model.kinds import ELASTIC_QUOTA, POD
from asched.kube.pace import ReflectorOptions
from asched.kube.session import ConnectionOptions, Session, connect
from asched.kube.watch import POD_FIELD_SELECTOR, Reflector
from asched.ops import quota_status, status_patch
from asched.ops.quota_status import QuotaStatus
from asched_lab.apiserver.context import Options
from asched_lab.apiserver.resources import POD_GROUPS
from asched_lab.apiserver.server import ApiServer
from tests.support import HANG_S

MERGE = "application/merge-patch+json"


class World:
    """ElasticQuotas and pods on a server without kubelets, and the controller beside them."""

    def __init__(self, server: ApiServer, session: Session) -> None:
        self.server = server
        self.session = session
        self.wrote: Counter[str] = Counter()
        self.may_act = True
        self.args = CapacitySchedulingArgs()
        self.cluster = Cluster()
        self.turns = 0
        self.controller = QuotaStatus(
            session,
            self.cluster,
            args=self._current_args,
            may_act=lambda: self.may_act,
            written=lambda result: self.wrote.update((result,)),
        )

    def _current_args(self) -> dict[str, CapacitySchedulingArgs]:
        """The controller reads them once a turn."""
        self.turns += 1
        return {"asched": self.args}

    async def whole_turns(self) -> None:
        """Wait until a turn has begun and ended."""
        begun = self.turns
        await self.until(lambda: self.turns >= begun + 2)

    def quota(self, name: str, namespace: str = "default", **spec: Any) -> None:
        manifest = {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        }
        self.server.create("elasticquotas", manifest)

    def pod(self, name: str, namespace: str = "default", **requests: str) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": requests}}
        metadata = {"name": name, "namespace": namespace}
        spec = {"containers": [container], "nodeName": "n1"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self.server.create("pods", pod)

    async def tell(self, name: str, phase: str, namespace: str = "default") -> None:
        """As the node's kubelet would."""
        body = json.dumps({"status": {"phase": phase}}).encode()
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
        reply = await self.session.general.request("PATCH", path, body, content_type=MERGE)
        assert reply.status == 200, reply.body

    async def delete(self, name: str) -> None:
        body = json.dumps({"gracePeriodSeconds": 0}).encode()
        path = f"/api/v1/namespaces/default/pods/{name}"
        reply = await self.session.general.request("DELETE", path, body)
        assert reply.status == 200, reply.body

    async def run_pod(self, name: str, namespace: str = "default", **requests: str) -> None:
        self.pod(name, namespace, **requests)
        await self.tell(name, "Running", namespace)

    def used(self, name: str, namespace: str = "default") -> dict[str, str] | None:
        quota = self.server.get("elasticquotas", namespace, name)
        assert quota is not None
        found: dict[str, str] | None = (quota.get("status") or {}).get("used")
        return found

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(HANG_S):
            while not holds():  # noqa: ASYNC110 - the controller does it when it likes
                await asyncio.sleep(0.01)


@asynccontextmanager
async def a_world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    for name in ("PERIOD_S", "RETRY_S"):
        monkeypatch.setattr(quota_status, name, 0.01)
    monkeypatch.setattr(status_patch, "LOOK_S", 0.01)
    server = ApiServer(kubelet=False, options=Options(alpha=POD_GROUPS))
    await server.start()
    session = await connect(ConnectionOptions(master=server.url))
    world = World(server, session)
    put = world.cluster.apply
    quotas = Reflector(ELASTIC_QUOTA, session.general, world.controller.observing(put))
    options = ReflectorOptions(field_selector=POD_FIELD_SELECTOR)
    pods = Reflector(POD, session.general, world.controller.observing_pods(put), options=options)
    works = (quotas.run(), pods.run(), world.controller.run())
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield world
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await session.close()
        await server.stop()


async def test_what_running_pods_ask_for_is_used_and_what_is_named_and_idle_is_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with a_world(monkeypatch) as world:
        world.quota("team", min={"cpu": "2", "example.com/gpu": "1"}, max={"memory": "8Gi"})
        await world.until(
            lambda: world.used("team") == {"cpu": "0", "example.com/gpu": "0", "memory": "0"}
        )

        await world.run_pod("one", cpu="1500m", memory="1Gi")
        world.pod("waits", cpu="4")
        await world.run_pod("elsewhere", "kube-system", cpu="8")

        expected = {"cpu": "1500m", "example.com/gpu": "0", "memory": "1Gi"}
        await world.until(lambda: world.used("team") == expected)


async def test_pods_that_were_there_before_the_quota_count_and_those_that_end_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with a_world(monkeypatch) as world:
        await world.run_pod("one", cpu="1")
        await world.run_pod("two", cpu="1")
        world.quota("team", min={"cpu": "2"})
        await world.until(lambda: world.used("team") == {"cpu": "2"})

        await world.tell("one", "Succeeded")
        await world.until(lambda: world.used("team") == {"cpu": "1"})

        await world.delete("two")
        await world.until(lambda: world.used("team") == {"cpu": "0"})


async def test_nobody_writes_who_does_not_lead_or_is_switched_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with a_world(monkeypatch) as world:
        world.may_act = False
        world.quota("team", min={"cpu": "2"})
        await world.run_pod("one", cpu="1")
        await world.until(lambda: bool(world.cluster.placed and world.cluster.all(ELASTIC_QUOTA)))
        await world.whole_turns()
        assert world.used("team") is None

        world.may_act, world.args = True, CapacitySchedulingArgs(status_controller=False)
        await world.whole_turns()
        assert world.used("team") is None

        world.args = CapacitySchedulingArgs()
        await world.until(lambda: world.used("team") == {"cpu": "1"})
