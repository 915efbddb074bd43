"""A scripted server for reflectors, and the steps it takes."""

import asyncio
import random
from contextlib import asynccontextmanager

from asched.core.cluster.facts import Gone, Listed, Seen
from asched.core.model.kinds import NODE
from asched.kube.pace import ReflectorOptions
from asched.kube.watch import Reflector
from tests.support import HANG_S
from tests.unit.kube.conftest import session_with
from tests.unit.kube.scripted import reply, scripted, status

END = {"k8s.io/initial-events-end": "true"}


def node(name, version):
    return {"metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": str(version)}}


def bookmark(version, end=False):
    return {"metadata": {"resourceVersion": str(version), "annotations": END if end else {}}}


def page(*items, version=10, token=""):
    metadata = {"resourceVersion": str(version), **({"continue": token} if token else {})}
    return {"metadata": metadata, "items": list(items)}


class World:
    """A scripted server whose watches and lists are answered by a list of steps, in order."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.queries = []
        self.facts = []
        self.failures = []
        self.waits_s = []
        self.reads = []
        self.cached = self.now = 10**6
        self.cluster = "one"
        self.served = ()
        self.done = asyncio.Event()

    async def handle(self, seen, wire):
        if seen.path.startswith("/apis/") and seen.path.count("/") == 3:
            return reply(200, {"resources": [{"name": name} for name in self.served]})
        if seen.query.get("fieldSelector", "").startswith("metadata.name="):
            return await self.small_read(seen)
        self.queries.append(seen.query)
        if not self.steps:
            self.done.set()
            await asyncio.Event().wait()
        step = self.steps.pop(0)
        return await step(seen, wire)

    async def small_read(self, seen):
        """What the client asks for beside its streams: how far is the server, and is it the same"""
        self.reads.append((seen.path, seen.query))
        if "resourceVersion" in seen.query:
            return reply(200, page(version=self.cached))
        system = {"metadata": {"name": "kube-system", "uid": self.cluster}}
        found = [system] if seen.path.endswith("/namespaces") else []
        return reply(200, page(*found, version=self.now))

    async def sleep(self, seconds):
        self.waits_s.append(seconds)
        await asyncio.sleep(0)

    @property
    def told(self):
        """The facts in short."""
        names = []
        for fact in self.facts:
            match fact:
                case Listed():
                    names.append(tuple(obj.metadata.name for obj in fact.objects))
                case Seen():
                    names.append(f"+{fact.obj.metadata.name}@{fact.obj.metadata.resource_version}")
                case Gone():
                    names.append(f"-{fact.obj.metadata.name}@{fact.obj.metadata.resource_version}")
        return names


def streams(*events, end="close"):
    """A watch that sends events and then ends as told."""

    async def step(_seen, wire):
        await wire.start_stream()
        for type_, obj in events:
            await wire.event(type_, obj)
        if end == "close":
            await wire.end_stream()
        elif end == "reset":
            wire.reset()
        elif end == "half":
            await wire.chunk(b'{"type":"ADDED","object":{"metada')
            wire.close()

    return step


def initial(*objs, version=10, then=(), end="close"):
    events = [("ADDED", obj) for obj in objs]
    return streams(*events, ("BOOKMARK", bookmark(version, end=True)), *then, end=end)


def lists(*items, **more):
    async def step(_seen, _wire):
        return reply(200, page(*items, **more))

    return step


def answers(code, reason, message="m", *headers, **more):
    async def step(_seen, _wire):
        return reply(code, status(code, reason, message, **more), *headers)

    return step


@asynccontextmanager
async def living(world, kind=NODE, pacer=None, **options):
    """A reflector of a kind in a world, until the world has no more steps."""
    async with scripted(world.handle) as server, session_with(server) as session:
        world.server = server
        reflector = Reflector(
            kind,
            session.general,
            world.facts.append,
            options=ReflectorOptions(rng=random.Random(1), sleep=world.sleep, **options),
            on_failure=lambda kind, error: world.failures.append((kind.name, error)),
            pacer=pacer,
        )
        world.reflector = reflector
        task = asyncio.ensure_future(reflector.run())
        waits = asyncio.ensure_future(world.done.wait())
        await asyncio.wait({task, waits}, timeout=HANG_S, return_when=asyncio.FIRST_COMPLETED)
        waits.cancel()
        assert world.done.is_set(), task
        try:
            yield reflector
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
