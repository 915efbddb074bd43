"""A reflector notices that the server is not the one it followed."""

import asyncio
import random

import pytest

from asched.core.model.kinds import NAMESPACE, NODE, POD
from asched.kube import history, watch
from asched.kube.errors import ConnectionLost, HistoryChanged, ServerFailed
from asched.kube.history import History
from asched.kube.pace import ReflectorOptions
from asched.kube.transport import Reply
from asched.kube.watch import Reflector
from tests.kube.conftest import session_with
from tests.kube.scripted import scripted, status
from tests.kube.watch_world import (
    World,
    answers,
    bookmark,
    initial,
    lists,
    living,
    node,
    streams,
)
from tests.patience import HANG_S


async def ends(world, kind=NODE, **options):
    """What a reflector's life ends by."""
    async with scripted(world.handle) as server, session_with(server) as session:
        reflector = Reflector(
            kind,
            session.general,
            world.facts.append,
            options=ReflectorOptions(rng=random.Random(1), sleep=world.sleep, **options),
            on_failure=lambda kind, error: world.failures.append((kind.name, error)),
        )
        async with asyncio.timeout(HANG_S):
            with pytest.raises(HistoryChanged) as raised:
                await reflector.run()
    assert world.failures[-1] == (kind.name, raised.value)
    return str(raised.value)


def then(world, step, **changes):
    """A step before which the world becomes another."""

    async def changed(seen, wire):
        for name, value in changes.items():
            setattr(world, name, value)
        return await step(seen, wire)

    return changed


async def test_a_server_restored_from_a_backup_is_noticed_when_its_streams_break():
    world = World(initial(node("a", 1), version=100))
    world.steps.append(then(world, streams(("ADDED", node("b", 101)), end="reset"), now=80))
    assert "the server is at resourceVersion 80, nodes had been followed up to 101" in await ends(
        world
    )
    assert world.told == [("a",), "+b@101"]


async def test_a_restored_server_that_says_nothing_is_noticed(monkeypatch):
    """A watch from the future is accepted and stays empty; the cache is behind."""
    monkeypatch.setattr(watch, "SHORT_STREAM_S", 0.0)
    world = World(lists(node("a", 1), version=100), streams())
    world.cached = world.now = 80
    assert "resourceVersion 80" in await ends(world, streaming=False)


@pytest.mark.parametrize(
    "step",
    [
        streams(("ERROR", status(410, "Expired", "too old"))),
        streams(("ADDED", node("b", 55))),
        answers(410, "Expired"),
    ],
    ids=["expired", "backwards", "refused"],
)
async def test_nothing_is_listed_of_a_server_with_another_history(step):
    world = World(initial(node("a", 1), version=100), initial(node("c", 3), version=60))
    world.steps.insert(1, then(world, step, now=60))
    await ends(world)
    assert world.told == [("a",)]


async def test_another_cluster_is_known_by_its_kube_system():
    """Its versions may be higher, and its streams reach back."""
    system = {**node("kube-system", 1)}
    system["metadata"]["uid"] = "one"
    world = World(initial(system), streams(("BOOKMARK", bookmark(20))))
    world.steps.append(then(world, streams(("BOOKMARK", bookmark(30))), cluster="two"))
    said = await ends(world, NAMESPACE)
    assert "the uid of namespace kube-system was one, now it is two" in said
    assert len(world.queries) == 3, "known once that stream has ended"


async def test_an_event_out_of_order_is_no_other_history():
    world = World(
        initial(node("a", 1), version=100),
        streams(("ADDED", node("b", 101)), ("ADDED", node("c", 55))),
        initial(node("b", 101), node("c", 55), version=102),
    )
    async with living(world):
        assert world.told == [("a",), "+b@101", ("b", "c")]


async def test_a_list_older_than_what_is_known_is_asked_for_anew():
    world = World(
        lists(node("a", 1), version=100),
        answers(410, "Expired"),
        lists(node("z", 1), version=90),
        lists(node("a", 1), node("b", 101), version=102),
    )
    async with living(world, streaming=False):
        assert world.told == [("a",), ("a", "b")]
    assert world.queries[2]["resourceVersion"] == "100"
    assert "resourceVersion" not in world.queries[3]


class Behind:
    """A server at version 7 whose streams have told all up to 5; a list tells the rest."""

    def __init__(self, *trouble):
        self.reached, self.lists, self.trouble = "5", 0, list(trouble)
        self.history = History(self)
        self.history.follow(POD, lambda: self.reached)

    async def request(self, _method, _path, **_):
        if self.trouble:
            raise self.trouble.pop()
        return Reply(200, b'{"metadata": {"resourceVersion": "7"}}')

    async def list_again(self):
        self.lists += 1
        self.reached = "7"


async def test_what_the_streams_have_not_told_by_now_is_listed(monkeypatch):
    monkeypatch.setattr(history, "CATCH_UP_S", 0.0)
    behind = Behind(ServerFailed(500, ""), ConnectionLost("reset"))
    await behind.history.catch_up(POD, behind.list_again)
    assert behind.lists == 1
    await behind.history.catch_up(POD, behind.list_again)
    assert behind.lists == 1, "it knows all"
