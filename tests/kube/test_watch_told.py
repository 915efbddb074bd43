"""What a reflector asks beside its streams, tells others, and says of failures."""

import asyncio
import logging

import pytest

from asched.core.model.kinds import NAMESPACE, NODE, POD_GROUP, POD_GROUP_V1BETA1
from asched.kube import watch
from asched.kube.backoff import INITIAL_S
from asched.kube.errors import Status, TooManyRequests
from asched.kube.history import History
from asched.kube.pace import LIST_STREAM_S, STREAM_SLACK_S, Company
from asched.kube.watch import Reflector
from tests.kube.scripted import reply, status
from tests.kube.test_watch_history import ends, then
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

SPOKEN = streams(("BOOKMARK", bookmark(20)))
EXPIRED = answers(410, "Expired", "too old")
FORBIDDEN = answers(403, "Forbidden", "no")
BREAKS = streams(("ADDED", node("b", 11)), end="reset")


# --- what is asked --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "steps", "checks"),
    [
        (NODE, [initial(), SPOKEN, SPOKEN], 0),
        (NODE, [initial(), BREAKS, SPOKEN, SPOKEN], 1),
        (NODE, [initial(), EXPIRED, initial(), SPOKEN], 1),
        (
            NODE,
            [initial(), BREAKS, EXPIRED, initial(version=12), SPOKEN],
            2,
        ),
        (NAMESPACE, [initial(), SPOKEN, SPOKEN], 2),
    ],
    ids=["all is well", "a break", "a list", "a break and a list", "who looks after others"],
)
async def test_the_server_is_asked_who_it_is_once_after_each_doubt(kind, steps, checks):
    world = World(*steps)
    async with living(world, kind=kind):
        assert len([path for path, _ in world.reads if path.endswith("/namespaces")]) == checks


async def test_another_cluster_with_higher_versions_is_known_before_anything_is_listed_of_it():
    world = World(initial(node("a", 1)), BREAKS)
    world.steps.append(then(world, EXPIRED, cluster="two"))
    world.steps.append(initial(node("z", 900), version=1000))
    assert "another cluster answers" in await ends(world)
    assert world.told == [("a",), "+b@11"]


async def test_another_cluster_is_known_by_the_list_itself():
    one, two = node("kube-system", 1), node("kube-system", 1)
    one["metadata"]["uid"], two["metadata"]["uid"] = "one", "two"
    world = World(initial(one), EXPIRED, initial(two, version=1000))
    assert "was one, now it is two" in await ends(world, NAMESPACE)
    assert world.told == [("kube-system",)]


async def test_a_server_that_is_restored_while_the_newest_is_listed_is_noticed():
    backwards = streams(("ADDED", node("b", 101)), ("ADDED", node("c", 55)))
    world = World(initial(node("a", 1), version=100), backwards)
    world.steps.append(then(world, initial(node("z", 1), version=60), now=60))
    assert "resourceVersion 60" in await ends(world)
    assert world.told == [("a",), "+b@101"]


async def test_a_streaming_list_that_says_nothing_more_is_followed_by_a_short_stream():
    for more, short in (([], True), ([("BOOKMARK", bookmark(11))], False)):
        world = World(initial(then=more))
        async with living(world):
            assert (int(world.queries[1]["timeoutSeconds"]) == 5) is short


async def test_the_client_waits_longer_for_a_stream_than_it_asked_it_to_live(monkeypatch):
    asked = []

    def noted(self, query, stream_s=None):
        asked.append(stream_s)
        return path_of(self, query, stream_s)

    path_of = Reflector._path
    monkeypatch.setattr(Reflector, "_path", noted)
    world = World(initial(), SPOKEN)
    async with living(world) as reflector:
        waited, enough = [], asyncio.Event()
        stream = reflector.transport.stream

        def timed(path, *, timeout_s):
            waited.append(timeout_s)
            if len(waited) == 3:
                enough.set()
            return stream(path, timeout_s=timeout_s)

        monkeypatch.setattr(reflector.transport, "stream", timed)
        del asked[:]
        world.steps, task = [initial(), SPOKEN], asyncio.ensure_future(reflector.run())
        await enough.wait()
        task.cancel()
    assert asked[0] == LIST_STREAM_S
    assert waited[:2] == [one + STREAM_SLACK_S for one in asked[:2]]


async def test_label_selectors_travel_with_every_request():
    world = World(answers(422, "Invalid"), lists(), SPOKEN)
    async with living(world, label_selector="app=web"):
        assert {query["labelSelector"] for query in world.queries} == {"app=web"}


async def test_after_a_first_list_that_failed_any_version_will_still_do():
    world = World(answers(503, "Down"), lists())
    async with living(world, streaming=False):
        assert [query["resourceVersion"] for query in world.queries[:2]] == ["0", "0"]


# --- kinds of several versions --------------------------------------------------------------------


class Several(World):
    """Serves one version of a kind, if discovery is not out of order."""

    version, discovers = POD_GROUP, True

    async def handle(self, seen, wire):
        if seen.path.startswith("/apis/") and seen.path.count("/") == 3:
            if not self.discovers:
                return reply(503, status(503, "Down", "m"))
            self.reads.append((seen.path, seen.query))
            serves = seen.path == f"/apis/{self.version.group_version}"
            return reply(200, {"resources": [{"name": "podgroups"}] if serves else []})
        return await super().handle(seen, wire)


async def test_nothing_is_listed_before_it_is_known_in_which_version():
    world = Several(initial(node("a", 1)))
    world.discovers, world.version = False, POD_GROUP_V1BETA1
    slept = world.sleep

    async def mended(seconds):
        world.discovers = True
        await slept(seconds)

    world.sleep = mended
    async with living(world, kind=POD_GROUP) as reflector:
        assert reflector.spoken is POD_GROUP_V1BETA1
        assert {fact.kind for fact in world.facts} == {POD_GROUP_V1BETA1}
    listed = [seen.path for seen in world.server.seen if "watch" in seen.query]
    assert set(listed) == {POD_GROUP_V1BETA1.path}


async def test_what_is_known_stays_in_use_while_discovery_is_out_of_order():
    denied = answers(404, "NotFound")
    world = Several(initial(node("a", 1)), streams(("ADDED", node("b", 11))))
    world.steps.insert(1, then(world, denied, discovers=False))
    async with living(world, kind=POD_GROUP) as reflector:
        assert world.told == [("a",), "+b@11"]
        assert reflector.list_count == 1


async def test_only_a_server_that_denies_the_kind_is_asked_for_its_versions_again():
    world = Several(initial(node("a", 1)), answers(503, "Down"), FORBIDDEN, SPOKEN)
    async with living(world, kind=POD_GROUP):
        before = len(world.reads)
        denied = Several(initial(node("a", 1)), answers(404, "NotFound"), SPOKEN)
    async with living(denied, kind=POD_GROUP):
        assert len(denied.reads) > before


@pytest.mark.parametrize("streaming", [True, False])
async def test_another_version_of_a_kind_is_listed_followed_and_asked_for(streaming):
    first, second = (initial, initial) if streaming else (lists, lists)
    world = Several(first(node("a", 1)), second(node("a", 1)), streams(("ADDED", node("b", 11))))
    world.steps.insert(1, then(world, answers(404, "NotFound"), version=POD_GROUP_V1BETA1))
    async with living(world, kind=POD_GROUP, streaming=streaming) as reflector:
        assert world.told == [("a",), ("a",), "+b@11"]
        kinds = [fact.kind for fact in world.facts]
        assert kinds == [POD_GROUP, POD_GROUP_V1BETA1, POD_GROUP_V1BETA1]
        assert reflector._history._reached[POD_GROUP][0] is POD_GROUP_V1BETA1
        assert reflector.codec.kind is POD_GROUP_V1BETA1
        assert reflector._lister._codec is reflector.codec


async def test_a_list_that_is_denied_is_asked_for_in_the_version_that_is_there_now():
    world = Several(initial(node("a", 1)), EXPIRED, initial(node("a", 1), version=12))
    world.steps.insert(2, then(world, answers(404, "NotFound"), version=POD_GROUP_V1BETA1))
    async with living(world, kind=POD_GROUP):
        assert [fact.kind for fact in world.facts] == [POD_GROUP, POD_GROUP_V1BETA1]
    assert world.failures == []
    assert len(world.waits_s) == 1, "before the list, as of any"


# --- who hears of it ------------------------------------------------------------------------------


async def test_whoever_pauses_hears_of_every_list_and_every_stream_that_begins():
    class Counting(Company):
        answers = 0

        def answered(self):
            self.answers += 1
            super().answered()

    company = Counting()
    world = World(lists(), SPOKEN, answers(503, "Down"), SPOKEN)
    async with living(world, company=company, streaming=False):
        assert company.answers == 3, "a list, two streams"


async def test_a_history_that_others_share_is_followed(session):
    history = History(session.general)
    reflector = Reflector(NODE, session.general, [].append, history=history)
    reflector._version = "7"
    assert history.reached(NODE) == "7"


async def test_bytes_that_are_no_line_yet_are_nothing_said(session):
    reflector = Reflector(NODE, session.general, [].append)
    reflector._deliver([])
    assert reflector.heard_s is None


async def test_a_stream_that_spoke_and_broke_in_the_middle_of_a_line_had_spoken():
    async def broken(_seen, wire):
        await wire.start_stream()
        await wire.event("ADDED", node("b", 11))
        await asyncio.sleep(0.05)
        await wire.chunk(b'{"type":"ADDED","object":{"metada')
        await asyncio.sleep(0.05)
        wire.close()

    world = World(initial(node("a", 1)), broken, streams(("ADDED", node("c", 12))))
    async with living(world):
        assert world.told == [("a",), "+b@11", "+c@12"]
    assert world.waits_s == []


# --- what is said ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "streaming"),
    [
        ([FORBIDDEN, lists(), EXPIRED, FORBIDDEN, lists()], False),
        ([initial(), FORBIDDEN, FORBIDDEN, SPOKEN, FORBIDDEN, SPOKEN], True),
    ],
    ids=["a list between", "a stream between"],
)
async def test_what_fails_again_after_it_was_well_is_told_again(steps, streaming, caplog):
    async with living(World(*steps), streaming=streaming):
        assert caplog.text.count("cannot list or watch nodes") == 2


async def test_why_it_lists_again_and_that_a_stream_broke_is_said(caplog):
    world = World(initial(), BREAKS, EXPIRED, initial(version=12))
    with caplog.at_level(logging.DEBUG, logger=watch.__name__):
        async with living(world):
            pass
    assert "nodes: listing again: too old" in caplog.text
    assert "nodes: the stream broke: " in caplog.text


async def test_a_kind_that_is_not_served_is_said_to_be_taken_as_none_once(caplog):
    world = World(*[answers(404, "NotFound")] * 3)
    with caplog.at_level(logging.INFO, logger=watch.__name__):
        async with living(world, kind=POD_GROUP):
            pass
    said = f"the server does not serve podgroups ({POD_GROUP.group_version}); taken as none"
    assert caplog.text.count(said) == 1


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (Status(code=500, reason="InternalError", message="confused"), "confused"),
        (Status(code=500, reason="InternalError"), "InternalError"),
        (Status(code=500), "500"),
    ],
)
async def test_why_a_server_ended_a_stream_is_said_in_its_words(told, why, session):
    error = Reflector(NODE, session.general, [].append)._stream_error(told)
    assert str(error) == f"the server ended the stream: {why}"


@pytest.mark.parametrize("wait_s", [9, 0])
async def test_too_many_requests_within_a_stream_are_waited_out_and_no_list_is_made(wait_s):
    details = {"details": {"retryAfterSeconds": wait_s}} if wait_s else {}
    busy = streams(("ERROR", status(429, "TooManyRequests", "slow down", **details)))
    world = World(initial(), *[busy] * 5, streams(("ADDED", node("b", 11))))
    async with living(world) as reflector:
        assert world.told == [(), "+b@11"]
        assert reflector.list_count == 1
    _, error = world.failures[0]
    assert isinstance(error, TooManyRequests)
    assert (error.code, error.message) == (429, "slow down")
    if wait_s:
        assert all(wait_s <= one <= wait_s + INITIAL_S for one in world.waits_s)
    else:
        assert max(world.waits_s) > 2 * INITIAL_S, "longer each time"
