"""Pods of ours that a kubelet refuses are counted by reason and reported."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from asched.core.cluster.facts import Fact, Gone
from asched.core.cycle.orders import KubeletRefused
from asched.core.model.kinds import POD
from asched.kube.session import ConnectionOptions, Session, connect
from asched.kube.watch import Reflector
from asched.ops.clashes import QUEUE_MAX, Clashes, Meta, PodEnd, PodEndStatus
from asched_lab.apiserver.server import ApiServer
from tests.builders import PodBuilder, a_pod
from tests.support import HANG_S

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
SHORT = "Pod was rejected: Node didn't have enough resource: "


class World:
    """A server without kubelets, its pods followed; `refused` counts what is told."""

    def __init__(self, server: ApiServer, session: Session) -> None:
        self.server = server
        self.session = session
        self.refused: Counter[str] = Counter()
        self.facts: list[Fact] = []
        self.may_act = True
        self.chosen: set[str] = set()
        self.told, self.moved = asyncio.Event(), asyncio.Event()
        self.clashes = Clashes(
            session,
            has_chosen=lambda uid: uid in self.chosen,
            may_act=lambda: self.may_act,
            refused=self._refused,
        )

    def _refused(self, reason: str) -> None:
        self.refused[reason] += 1
        self.told.set()

    def hear(self, fact: Fact) -> None:
        self.facts.append(fact)
        self.moved.set()

    async def heard(self, count: int) -> None:
        while len(self.facts) < count:
            await self.moved.wait()
            self.moved.clear()

    def place(self, name: str, *, chosen: bool = True) -> None:
        spec = {
            "schedulerName": "mine",
            "nodeName": "n1",
            "containers": [{"name": "c", "image": "i"}],
        }
        metadata = {"name": name, "namespace": "default"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        made = self.server.create("pods", pod)
        if chosen:
            self.chosen.add(made["metadata"]["uid"])

    async def tell(self, name: str, **status: Any) -> None:
        """As the node's kubelet would."""
        body = json.dumps({"status": status}).encode()
        path = f"{PODS}/{name}/status"
        reply = await self.session.general.request("PATCH", path, body, content_type=MERGE)
        assert reply.status == 200, reply.body


@asynccontextmanager
async def a_world() -> AsyncIterator[World]:
    server = ApiServer(kubelet=False)
    await server.start()
    session = await connect(ConnectionOptions(master=server.url))
    world = World(server, session)
    watch = Reflector(POD, session.general, world.clashes.observing(world.hear))
    tasks = [asyncio.create_task(watch.run()), asyncio.create_task(world.clashes.run())]
    await watch.synced.wait()
    try:
        yield world
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await session.close()
        await server.stop()


async def test_a_refusal_is_counted_and_reported(caplog) -> None:
    async with a_world() as world, asyncio.timeout(HANG_S):
        world.place("web")
        message = f"{SHORT}cpu, requested: 2000, used: 3000, capacity: 4000"
        await world.tell("web", phase="Failed", reason="OutOfcpu", message=message)
        await world.told.wait()
    assert world.refused == {"OutOfcpu": 1}
    assert sum(isinstance(fact, KubeletRefused) for fact in world.facts) == 1
    (line,) = [record for record in caplog.records if record.getMessage().startswith("A kubelet")]
    assert (line.pod, line.node, line.reason, line.err) == (
        "default/web",
        "n1",
        "OutOfcpu",
        message,
    )


async def test_other_ends_are_no_refusals() -> None:
    """One that ran and failed, one that was evicted, one deleted by force, one with a reason that
    no kubelet writes, one that was created with its node; then a refused one.
    """
    async with a_world() as world, asyncio.timeout(HANG_S):
        for name in ("ran", "evicted", "deleted", "long", "full"):
            world.place(name)
        world.place("foreign", chosen=False)
        await world.tell("foreign", phase="Failed", reason="OutOfpods")
        await world.tell("long", phase="Failed", reason="OutOf" + 900_000 * "x")
        await world.tell("ran", phase="Running", startTime="2026-01-01T00:00:00Z")
        await world.tell("ran", phase="Failed", reason="OutOfcpu")
        await world.tell("evicted", phase="Failed", reason="Evicted")
        reply = await world.session.general.request(
            "DELETE", f"{PODS}/deleted?gracePeriodSeconds=0"
        )
        assert reply.status == 200
        await world.tell("full", phase="Failed", reason="OutOfpods")
        await world.told.wait()
    assert world.refused == {"OutOfpods": 1}


async def test_no_more_wait_to_be_read_than_there_is_room_for() -> None:
    async with a_world() as world:
        hear = world.clashes.observing(world.facts.append)
        for number in range(QUEUE_MAX + 50):  # nobody gets a turn meanwhile
            pod = a_pod(f"p{number}").on("n1").build()
            world.chosen.add(pod.uid)
            hear(Gone(POD, pod))
        assert world.clashes._suspects.qsize() == QUEUE_MAX


# --- one read after the other --------------------------------------------------------------------


class Ends:
    """A session that answers every read alike, or with something that is raised."""

    def __init__(self, uid: str) -> None:
        self.end = PodEnd(Meta(uid), PodEndStatus("Failed", "OutOfcpu", "no room"))
        self.raises: list[Exception] = []
        self.paths: list[str] = []

    async def get_as(self, path: str, _: type[PodEnd]) -> PodEnd:
        self.paths.append(path)
        if self.raises:
            raise self.raises.pop()
        return self.end


async def put_for(ends: Ends, *facts: Fact) -> tuple[list[Fact], list[str]]:
    """What is put, and counted, where these are heard of and looked into."""
    put: list[Fact] = []
    refused: list[str] = []
    clashes = Clashes(
        ends,  # type: ignore[arg-type]
        has_chosen=lambda _: True,
        may_act=lambda: True,
        refused=refused.append,
    )
    hear = clashes.observing(put.append)
    for fact in facts:
        hear(fact)
    running = asyncio.ensure_future(clashes.run())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not running.done(), "it goes on whatever one read says"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return put, refused


def on_n1(name: str = "web") -> PodBuilder:
    return a_pod(name).on("n1").spec(schedulerName="mine")


OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "uid-of-rs"}


@pytest.mark.parametrize("is_controlled", [True, False])
async def test_the_machine_is_told_who_was_refused_where_and_whose_it_is(
    is_controlled: bool,
) -> None:
    pod = on_n1().metadata(ownerReferences=[{**OWNER, "controller": is_controlled}]).build()
    ends = Ends(pod.uid)
    put, refused = await put_for(ends, Gone(POD, pod))
    assert put == [
        Gone(POD, pod),
        KubeletRefused(
            namespace="default",
            name="web",
            uid=pod.uid,
            owner="uid-of-rs" if is_controlled else "",
            node="n1",
            reason="OutOfcpu",
            reporter="mine",
        ),
    ]
    assert refused == ["OutOfcpu"]
    assert ends.paths == [f"{PODS}/web"]
