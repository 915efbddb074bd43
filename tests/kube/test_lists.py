"""Lists: refused and broken ones, and in which order pages are asked for and read."""

import asyncio
import json
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from asched.core.model.kinds import NODE, POD
from asched.kube import list_parser
from asched.kube import lists as listing
from asched.kube.codec import KindCodec
from asched.kube.doubt import Doubt
from asched.kube.errors import (
    Forbidden,
    ProtocolBroken,
    ServerFailed,
    Status,
    TooManyRequests,
    read_status,
)
from asched.kube.transport import Reply
from asched.kube.turns import NoStreaming, Relist
from tests.kube.scripted import status
from tests.kube.watch_world import World, bookmark, initial, lists, living, node, page, streams


async def test_the_list_goes_over_the_connection_on_which_streaming_was_refused():
    """A handshake for each kind is as much work as its list."""

    async def refusal(_seen, wire):
        await wire.start_stream()
        await wire.event("ERROR", status(500, "InternalError", "etcd has no progress notification"))
        await asyncio.sleep(0.02)
        await wire.end_stream()

    world = World(refusal, lists(node("a", 1)))
    async with living(world):
        assert world.told == [("a",)]
        assert [seen.connection for seen in world.server.seen] == [1, 1, 1]


async def test_a_refusal_that_does_not_end_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(listing, "ERROR_END_S", 0.02)
    refusal = streams(("ERROR", status(500, "InternalError", "confused")), end="open")
    world = World(refusal, lists(node("a", 1)))
    async with living(world):
        assert world.told == [("a",)]


# --- what a server says of a list -----------------------------------------------------------------


TOO_LARGE = {"details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}}


@pytest.mark.parametrize(
    ("told", "error"),
    [
        (status(410, "Expired", "too old"), Relist),
        (status(504, "Timeout", "future", **TOO_LARGE), Relist),
        (status(429, "TooManyRequests", "slow down"), TooManyRequests),
        (status(500, "InternalError", "confused"), NoStreaming),
    ],
)
def test_what_an_error_among_the_initial_events_leads_to(told, error):
    found = listing._initial_error(read_status(json.dumps(told).encode()))
    assert type(found) is error
    assert str(getattr(found, "message", found)) == told["message"]
    if error is Relist:
        assert found.version == ""
    if error is TooManyRequests:
        assert (found.code, found.reason) == (429, "TooManyRequests")


def test_an_error_without_a_message_is_said_to_be_one():
    assert str(listing._initial_error(Status(code=500))) == "an ERROR event without a message"


@pytest.mark.parametrize(
    ("code", "body", "error"),
    [
        (410, status(410, "Expired", "too old"), Relist),
        (504, status(504, "Timeout", "future", **TOO_LARGE), Relist),
        (403, status(403, "Forbidden", "no"), Forbidden),
        (502, None, ServerFailed),
    ],
)
def test_what_a_refused_page_leads_to(code, body, error):
    said = b"<html>" if body is None else json.dumps(body).encode()
    assert type(listing._refused(code, said, None)) is error


async def test_an_initial_event_of_an_object_that_nobody_knew_takes_nothing_away():
    events = [("DELETED", node("z", 2)), ("ADDED", node("a", 3))]
    world = World(streams(*events, ("BOOKMARK", bookmark(5, end=True))))
    async with living(world):
        assert world.told == [("a",)]


def test_only_pods_are_handed_on_in_parts():
    assert listing.parts_to([].append, NODE) is None
    assert listing.parts_to([].append, POD) is not None


# --- pages ----------------------------------------------------------------------------------------


class Paging:
    """Three pages; notes when each is asked for."""

    def __init__(self, *bodies):
        self.bodies, self.told = list(bodies), []
        codec = KindCodec(NODE, lambda *_: None)
        read = codec.page

        def page(body):
            self.told.append("read")
            return read(body)

        codec.page = page
        self.lister = listing.Lister(
            self, codec, lambda _query: "/", lambda: self.told.append("heard")
        )

    @asynccontextmanager
    async def stream(self, _path, **_):
        async def chunks():
            yield self.bodies.pop(0)

        self.told.append("asked")
        yield SimpleNamespace(status=200, chunks=chunks)

    async def request(self, *_, **__):
        self.told.append("asked")
        if not self.bodies:
            await asyncio.Event().wait()
        return Reply(200, self.bodies.pop(0))


def body(*items, **more):
    return json.dumps(page(*items, **more)).encode()


async def test_a_page_is_asked_for_before_the_one_before_it_is_read():
    paging = Paging(
        body(node("a", 1), token="two"), body(node("b", 1), token="three"), body(node("c", 1))
    )
    found = await paging.lister.pages("0")
    assert [one.metadata.name for one in found.objects] == ["a", "b", "c"]
    assert paging.told.count("heard") == 3
    at = {what: [i for i, one in enumerate(paging.told) if one == what] for what in paging.told}
    assert at["read"][0] < at["asked"][1] < at["asked"][2] < at["read"][1]


async def test_a_page_that_cannot_be_read_leaves_no_request_behind():
    paging = Paging(body(token="two"), b'{"metadata":{"continue":"three"},"items":1}')
    before = asyncio.all_tasks()
    with pytest.raises(ProtocolBroken):
        await paging.lister.pages("0")
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_of_a_large_first_page_nothing_is_lost(monkeypatch):
    monkeypatch.setattr(list_parser, "PART_BYTES", 100)
    names = [f"n{number}" for number in range(40)]
    whole = json.dumps(page(*(node(name, 1) for name in names)), separators=(",", ":")).encode()
    found = await Paging(whole).lister.pages("0")
    assert [one.metadata.name for one in found.objects] == names


async def test_each_piece_of_a_streaming_list_is_a_sign_of_life(monkeypatch):
    heard = []
    monkeypatch.setattr(Doubt, "listening", lambda _self: heard.append("life"))
    world = World(initial(node("a", 1)))
    async with living(world):
        assert heard
