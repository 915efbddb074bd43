"""A reflector lives through all a server may do to it, and neither loses nor invents an object."""

import asyncio
import logging
import random

import pytest

from asched.core.cluster.facts import Gone, Listed, Seen
from asched.core.model.kinds import NODE, POD_GROUP
from asched.kube import reading
from asched.kube.errors import Forbidden, NotFound
from asched.kube.history import History
from asched.kube.pace import INITIAL_S, RETRY_S_MAX, ReflectorOptions
from asched.kube.watch import Reflector
from tests.support import HANG_S
from tests.unit.kube.conftest import session_with
from tests.unit.kube.scripted import reply, scripted, status
from tests.unit.kube.watch_world import (
    World,
    answers,
    bookmark,
    initial,
    lists,
    living,
    node,
    page,
    streams,
)

# --- chapter 1 -----------------------------------------------------------------------------------


async def test_a_streaming_list_then_the_same_stream_lives_on():
    world = World(
        initial(node("a", 3), node("b", 5), version=10, then=[("MODIFIED", node("a", 11))])
    )
    async with living(world) as reflector:
        assert world.told == [("a", "b"), "+a@11"]
        assert reflector.synced.is_set()
        assert (reflector.list_count, reflector.watch_count) == (1, 1)
    first, second = world.queries
    assert first["sendInitialEvents"] == "true"
    assert first["resourceVersionMatch"] == "NotOlderThan"
    assert first["allowWatchBookmarks"] == "true"
    assert "resourceVersion" not in first
    assert 300 <= int(first["timeoutSeconds"]) <= 600
    assert (second["resourceVersion"], second["allowWatchBookmarks"]) == ("11", "true")
    assert "sendInitialEvents" not in second


@pytest.mark.parametrize(
    "refusal",
    [
        answers(422, "Invalid"),
        answers(400, "BadRequest"),
        answers(500, "InternalError"),
        streams(("ERROR", status(500, "InternalError", "etcd has no progress notification"))),
        streams(("ADDED", node("a", 1))),
    ],
    ids=["422", "400", "500", "error inside a 200", "ends before its end"],
)
async def test_a_server_that_does_not_stream_lists_is_asked_for_pages(refusal):
    world = World(refusal, lists(node("a", 1), version=7))
    async with living(world) as reflector:
        assert world.told == [("a",)]
        assert reflector.synced.is_set()
    assert (world.queries[1]["limit"], world.queries[1]["resourceVersion"]) == ("500", "0")
    assert world.queries[2]["resourceVersion"] == "7"
    assert world.failures == []


async def test_an_expired_page_begins_a_new_list_of_the_newest():
    world = World(
        lists(node("a", 1), version=7, token="two"),
        answers(410, "Expired", metadata={"continue": "fresh"}),
        lists(node("b", 9), version=9),
    )
    async with living(world, streaming=False):
        assert world.told == [("b",)]
    assert "resourceVersion" not in world.queries[2]
    assert "continue" not in world.queries[2]


async def test_an_idle_kind_is_caught_up_with_by_a_list_of_the_newest_state():
    """Its version in the server's cache stands still if etcd reports no progress."""

    async def listed(seen, _wire):
        return reply(200, page(version=10 if "resourceVersion" in seen.query else 12))

    world = World(listed)
    world.now = 12
    async with living(world, streaming=False) as reflector, asyncio.TaskGroup() as group:
        history, begun = History(reflector.transport), []
        history.follow(NODE, lambda: reflector.version)

        async def list_again():
            world.steps.append(listed)
            reflector.synced.clear()
            begun.append(group.create_task(reflector.run(newest=True)))
            await reflector.synced.wait()

        async with asyncio.timeout(HANG_S):
            await history.catch_up(NODE, list_again)
        begun[0].cancel()
    assert (reflector.version, len(begun)) == ("12", 1)


async def test_streams_that_advance_are_not_replaced_by_a_list():
    """While a new leader touches 50,000 pods, the stream is some seconds behind."""
    received = iter(range(1, 100))
    history = History(None)
    history.follow(NODE, lambda: str(next(received)))

    async def list_again():
        raise AssertionError("nothing is missing")

    await history.catch_up(NODE, list_again, "30")
    assert next(received) > 30


# --- chapters 2 and 3 ----------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["reset", "half", "close"])
async def test_a_broken_stream_goes_on_from_the_last_version(end):
    world = World(
        initial(node("a", 1)),
        streams(("ADDED", node("b", 11)), end=end),
        streams(("ADDED", node("c", 12))),
    )
    async with living(world) as reflector:
        assert world.told == [("a",), "+b@11", "+c@12"]
        assert reflector.list_count == 1
    assert [query.get("resourceVersion") for query in world.queries] == [None, "10", "11", "12"]
    assert world.waits_s == []


async def test_a_server_that_is_away_is_waited_for(caplog):
    async def close_at_once(_seen, wire):
        wire.reset()

    world = World(initial(node("a", 1)), *[close_at_once] * 6, streams(("ADDED", node("b", 11))))
    with caplog.at_level(logging.WARNING):
        async with living(world) as reflector:
            assert world.told == [("a",), "+b@11"]
            assert reflector.list_count == 1
    assert world.waits_s
    assert world.waits_s == sorted(world.waits_s)
    assert len([record for record in caplog.records if record.name == reading.__name__]) == 1


async def test_too_many_requests_waits_as_told_and_goes_on():
    world = World(
        initial(node("a", 1)),
        answers(429, "TooManyRequests", "slow down", "Retry-After: 9"),
        streams(("ADDED", node("b", 11))),
    )
    async with living(world) as reflector:
        assert world.told == [("a",), "+b@11"]
        assert reflector.list_count == 1
    (wait_s,) = world.waits_s
    assert 9.0 <= wait_s <= 9.0 + INITIAL_S


async def test_a_server_that_was_away_and_has_forgotten_is_asked_for_a_list_at_once():
    down = answers(503, "ServiceUnavailable", "starting")
    world = World(
        initial(node("a", 1)),
        *[down] * 6,
        answers(410, "Expired", "too old"),
        initial(node("b", 20), version=30),
    )
    async with living(world):
        assert world.told == [("a",), ("b",)]
    *_, before_asking, before_list = world.waits_s
    assert before_asking >= RETRY_S_MAX
    assert before_list <= 2 * INITIAL_S


async def test_a_stream_that_dies_at_birth_leads_to_a_new_list_after_a_pause():
    world = World(initial(node("a", 1)), streams(), initial(node("a", 1), node("b", 9), version=12))
    async with living(world):
        assert world.told == [("a",), ("a", "b")]
    assert world.queries[2]["resourceVersion"] == "10"
    assert len(world.waits_s) == 1


async def test_a_malformed_object_is_left_out_and_the_stream_lives_on(caplog):
    broken = {
        "metadata": {"name": "bad", "uid": "u", "resourceVersion": "11"},
        "spec": {"taints": 1},
    }
    ended = {**broken, "metadata": {**broken["metadata"], "resourceVersion": "13"}}
    world = World(
        initial(node("a", 1), broken),
        streams(("MODIFIED", broken), ("ADDED", node("b", 12)), ("DELETED", ended)),
    )
    async with living(world) as reflector:
        assert world.told == [("a",), "+b@12", "-bad@13"]
        assert reflector.malformed_count == 3
    assert caplog.text.count("Node bad is malformed and is ignored") == 1


async def test_a_line_that_is_no_event_leads_to_a_new_list_after_a_pause():
    async def babble(_seen, wire):
        await wire.start_stream()
        await wire.event("ADDED", node("b", 11))
        await wire.chunk(b"<html>\n")
        await wire.end_stream()

    world = World(initial(node("a", 1)), babble, initial(node("a", 1), node("b", 11), version=12))
    async with living(world):
        assert world.told[0] == ("a",)
        assert world.told[-1] == ("a", "b")
    assert len(world.waits_s) == 1


# --- chapter 4 -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expired",
    [
        answers(410, "Expired", "too old"),
        streams(("ERROR", status(410, "Expired", "too old resource version"))),
        streams(("ERROR", status(410, "Gone", "too old resource version"))),
    ],
    ids=["status", "event", "event with the old reason"],
)
async def test_a_forgotten_version_leads_to_a_new_list(expired):
    world = World(
        initial(node("a", 1), node("b", 2)),
        expired,
        initial(node("b", 2), node("c", 20), version=30),
    )
    async with living(world) as reflector:
        assert world.told == [("a", "b"), ("b", "c")]
        assert reflector.list_count == 2
    assert world.queries[-2]["sendInitialEvents"] == "true"
    assert world.queries[-2]["resourceVersion"] == "10"
    assert world.queries[-1]["resourceVersion"] == "30"


async def test_versions_that_run_backwards_lead_to_a_new_list():
    world = World(
        initial(node("a", 1), version=100),
        streams(("ADDED", node("b", 101)), ("ADDED", node("c", 55))),
        initial(node("c", 55), version=60),
    )
    async with living(world):
        assert world.told == [("a",), "+b@101", ("c",)]
    assert "resourceVersion" not in world.queries[2]


# --- chapter 5 -----------------------------------------------------------------------------------


async def test_a_forbidden_kind_is_reported_and_tried_again(caplog):
    message = 'nodes is forbidden: User "x" cannot watch resource "nodes"'
    refused = answers(403, "Forbidden", message)
    world = World(answers(401, "Unauthorized"), refused, refused, initial(node("a", 1)))
    with caplog.at_level(logging.WARNING):
        async with living(world):  # nor does a server that knows nobody yet end the start
            assert world.told == [("a",)]
    assert [(name, type(error)) for name, error in world.failures] == [("Node", Forbidden)] * 2
    assert caplog.text.count('grant the verbs list and watch on resource "nodes"') == 1
    assert len(world.waits_s) == 2


async def test_a_resource_that_discovery_knows_is_waited_for(caplog):
    world = World(answers(404, "NotFound"), initial(node("a", 1)))
    world.served = ("podgroups",)
    async with living(world, kind=POD_GROUP):
        assert world.told == [("a",)]
    assert [type(error) for _, error in world.failures] == [NotFound]
    assert max(world.waits_s) < 2 * RETRY_S_MAX
    assert "does not serve podgroups" in caplog.text


@pytest.mark.parametrize("kind", [NODE, POD_GROUP], ids=["core", "optional"])
async def test_a_resource_that_was_there_is_never_emptied(kind, caplog):
    world = World(
        initial(node("a", 1)),
        *[answers(404, "NotFound")] * 2,
        streams(("ERROR", status(410, "Expired", "too old"))),
        *[answers(404, "NotFound")] * 2,
        initial(node("a", 1), node("c", 15), version=16),
    )
    async with living(world, kind=kind):
        assert world.told == [("a",), ("a", "c")]
    assert [type(error) for _, error in world.failures] == [NotFound] * 4
    assert max(world.waits_s) < 2 * RETRY_S_MAX
    assert "cached objects stay in use" in caplog.text


async def test_an_unreachable_server_keeps_the_gate_shut():
    async def close_at_once(_seen, wire):
        wire.reset()

    world = World(*[close_at_once] * 6, initial(node("a", 1)))
    async with living(world) as reflector:
        assert world.told == [("a",)]
        assert reflector.synced.is_set()
    assert [name for name, _ in world.failures] == ["Node"] * len(world.waits_s)
    assert world.waits_s


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_happens_the_last_state_is_the_servers(seed):
    """A store with history, cut, forgotten and refused at random; at the end both agree."""
    rng = random.Random(seed)
    objects: dict[str, int] = {}
    history: list[tuple[int, str, str]] = []
    version = 100
    steps_left = 60
    kube_system = {"metadata": {"name": "kube-system", "uid": "one"}}

    def change():
        nonlocal version
        version += 1
        name = f"n{rng.randrange(8)}"
        if name in objects and rng.random() < 0.4:
            del objects[name]
            history.append((version, "DELETED", name))
        else:
            history.append((version, "MODIFIED" if name in objects else "ADDED", name))
            objects[name] = version

    done = asyncio.Event()

    async def handle(seen, wire):
        nonlocal steps_left
        if seen.query.get("fieldSelector", "").startswith("metadata.name="):
            return reply(200, page(kube_system, version=version))
        steps_left -= 1
        calm = steps_left <= 0
        for _ in range(0 if calm else rng.randrange(4)):
            change()
        if not calm and rng.random() < 0.3:
            wire.reset()
            return None
        since = int(seen.query.get("resourceVersion", 0))
        if "watch" not in seen.query:
            return reply(200, page(*(node(n, v) for n, v in objects.items()), version=version))
        if not calm and rng.random() < 0.2:
            return reply(410, status(410, "Expired", "m"))
        await wire.start_stream()
        if "sendInitialEvents" in seen.query:
            if rng.random() < 0.3:
                await wire.event("ERROR", status(500, "InternalError", "m"))
                await wire.end_stream()
                return None
            for name, at in objects.items():
                await wire.event("ADDED", node(name, at))
            await wire.event("BOOKMARK", bookmark(version, end=True))
        else:
            for at, type_, name in history:
                if at > since and (calm or rng.random() < 0.9):
                    await wire.event(type_, node(name, at))
                elif at > since:
                    break
        if calm and since == version:
            done.set()
            await asyncio.Event().wait()
        await (wire.end_stream() if rng.random() < 0.5 else wire.chunk(b'{"type":'))
        wire.close()
        return None

    world = World()
    async with scripted(handle) as server, session_with(server) as session:
        reflector = Reflector(
            NODE,
            session.general,
            world.facts.append,
            options=ReflectorOptions(rng=random.Random(seed), sleep=world.sleep),
        )
        task = asyncio.ensure_future(reflector.run())
        async with asyncio.timeout(HANG_S):
            await done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    known: dict[str, int] = {}
    for fact in world.facts:
        match fact:
            case Listed():
                known = {o.metadata.name: int(o.metadata.resource_version) for o in fact.objects}
            case Seen():
                known[fact.obj.metadata.name] = int(fact.obj.metadata.resource_version)
            case Gone():
                known.pop(fact.obj.metadata.name, None)
    assert known == objects
