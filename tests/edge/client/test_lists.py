"""What becomes of the connection on which a streaming list was refused."""

from asched.edge.client import lists as listing
from tests.edge.client.scripted import status
from tests.edge.client.watch_world import World, lists, living, node, streams


async def test_the_list_goes_over_the_connection_on_which_streaming_was_refused():
    """A handshake for each kind is as much work as its list."""
    refusal = streams(("ERROR", status(500, "InternalError", "etcd has no progress notification")))
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
