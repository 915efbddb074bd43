"""A kind that servers have in one version or another, before, while and after that changes."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Fact, Listed
from asched.core.model.kinds import POD_GROUP, POD_GROUP_V1, POD_GROUP_V1ALPHA3, POD_GROUP_V1BETA1
from asched.kube import pace
from asched.kube.kind_versions import served_version
from asched.kube.pace import ReflectorOptions
from asched.kube.session import ConnectionOptions, Session, connect
from asched.kube.transport import Reply
from asched.kube.watch import Reflector
from asched_lab.apiserver.context import Options
from asched_lab.apiserver.server import ApiServer
from tests.support import HANG_S

OLD, ALPHA, BETA, STABLE = (
    kind.group_version for kind in (POD_GROUP, POD_GROUP_V1ALPHA3, POD_GROUP_V1BETA1, POD_GROUP_V1)
)


class World:
    def __init__(self, server: ApiServer, session: Session) -> None:
        self.server, self.session = server, session
        self.cluster = Cluster()
        self.facts: list[Fact] = []
        self.naps = 0

    def hear(self, fact: Fact) -> None:
        self.facts.append(fact)
        self.cluster.apply(fact)

    @property
    def lists(self) -> list[tuple[str, list[str]]]:
        """(group version, names) of every list that was handed over."""
        return [
            (fact.kind.group_version, sorted(obj.metadata.name for obj in fact.objects))  # type: ignore[attr-defined]
            for fact in self.facts
            if isinstance(fact, Listed)
        ]

    @property
    def known(self) -> set[str]:
        return {key.rpartition("/")[2] for key in self.cluster.all(POD_GROUP)}

    def create(self, name: str, version: str, **spec: Any) -> None:
        policy = {"schedulingPolicy": {"gang": {"minCount": 2}}, **spec}
        manifest = {
            "apiVersion": version,
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"},
            "spec": policy,
        }
        self.server.create("podgroups", manifest)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(HANG_S):
            while not holds():  # noqa: ASYNC110 - the server and the reflector do it by themselves
                await asyncio.sleep(0.01)


@asynccontextmanager
async def following(*served: str) -> AsyncIterator[World]:
    minor = "1.38" if STABLE in served else "1.36"
    server = ApiServer(options=Options(alpha=frozenset(served) - {STABLE}, minor=minor))
    await server.start()
    session = await connect(ConnectionOptions(master=server.url))
    world = World(server, session)

    async def nap(_seconds: float) -> None:
        world.naps += 1
        await asyncio.sleep(0.02)

    options = ReflectorOptions(rng=random.Random(1), sleep=nap)
    reflector = Reflector(POD_GROUP, session.general, world.hear, options=options)
    task = asyncio.create_task(reflector.run())
    try:
        await asyncio.wait_for(reflector.synced.wait(), HANG_S)
        yield world
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await session.close()
        await server.stop()


@pytest.fixture(autouse=True)
def hurried(monkeypatch) -> None:
    monkeypatch.setattr(pace, "STREAM_S", 0.3)
    monkeypatch.setattr(pace, "PROBE_S", 0.2)


@pytest.mark.parametrize(
    ("served", "spoken"),
    [
        ((OLD,), OLD),
        ((OLD, BETA), BETA),
        ((ALPHA,), ALPHA),
        ((ALPHA, BETA), BETA),
        ((BETA, STABLE), STABLE),
    ],
)
async def test_the_newest_version_that_is_served_is_spoken(
    served: tuple[str, ...], spoken: str
) -> None:
    async with following(*served) as world:
        found = await served_version(world.session.general, POD_GROUP)
        assert found is not None
        assert found.group_version == spoken
        assert world.lists == [(spoken, [])]
        world.create("crew", spoken)
        await world.until(lambda: world.known == {"crew"})
        assert world.cluster.served_kind(POD_GROUP).group_version == spoken


async def test_a_version_that_vanishes_leaves_what_is_known_until_another_takes_its_place() -> None:
    async with following(OLD) as world:
        world.create("crew", OLD)
        await world.until(lambda: world.known == {"crew"})

        world.server.ctx.alpha.clear()
        napped = world.naps
        await world.until(lambda: world.naps >= napped + 3)  # asked and denied between them
        assert world.known == {"crew"}, "a server that denies the kind has not denied the object"
        assert len(world.lists) == 1

        world.server.ctx.alpha.add(BETA)
        await world.until(lambda: len(world.lists) == 2)
        assert world.lists[1] == (BETA, ["crew"])
        world.create("late", BETA)
        await world.until(lambda: world.known == {"crew", "late"})


async def test_a_kind_that_appears_after_the_start_is_found_in_its_version() -> None:
    async with following() as world:
        assert world.lists == [(OLD, [])]
        world.server.ctx.alpha.add(ALPHA)
        world.create("crew", ALPHA)
        await world.until(lambda: world.known == {"crew"})
        assert world.lists[-1] == (ALPHA, ["crew"])


@pytest.mark.parametrize(
    ("body", "is_served"),
    [
        (b'{"resources": [{"name": "podgroups"}]}', True),
        (b'{"resources": [{"name": "other"}, 7, {}]}', False),
        (b'{"resources": null}', False),
        (b"{}", False),
        (b"<html>", True),
    ],
)
async def test_only_a_document_that_lacks_a_kind_denies_it(body: bytes, is_served: bool) -> None:
    class Server:
        async def request(self, method: str, path: str, *, timeout_s: float) -> Reply:
            assert (method, path, timeout_s) == ("GET", f"/apis/{ALPHA}", 10.0)
            return Reply(200, body)

    server: Any = Server()
    monkey = POD_GROUP_V1ALPHA3._replace(resource="of one version")
    assert await served_version(server, monkey) == (monkey if is_served else None)
