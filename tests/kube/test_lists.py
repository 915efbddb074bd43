"""Lists: refused and broken ones, and in which order pages are asked for and read."""

import asyncio

from tests.kube.scripted import status
from tests.kube.watch_world import World, lists, living, node


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


# --- what a server says of a list -----------------------------------------------------------------


# --- pages ----------------------------------------------------------------------------------------
