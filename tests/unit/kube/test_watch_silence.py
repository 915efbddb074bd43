"""A reflector notices streams that say nothing, and takes no idle kind for one."""

import asyncio
import gc

import pytest

from asched.kube import fast, pace, watch
from asched.kube.errors import DeadlineExceeded, TransportError
from tests.unit.kube.watch_world import World, bookmark, initial, lists, living, node, streams


@pytest.fixture
def hurried(monkeypatch):
    """Streams of 0.1 s and probes of 0.05 s, taken for dead 0.05 s later."""
    monkeypatch.setattr(pace, "STREAM_S", 0.1)
    monkeypatch.setattr(pace, "PROBE_S", 0.05)
    monkeypatch.setattr(watch, "STREAM_SLACK_S", 0.05)
    monkeypatch.setattr(watch, "SHORT_STREAM_S", 0.0)


async def mute(_seen, wire):
    """A stream that says nothing and does not end."""
    await wire.start_stream()
    await asyncio.Event().wait()


async def headless(_seen, _wire):
    await asyncio.Event().wait()


async def test_streams_are_asked_to_be_short():
    """A sound one speaks within 20 s, a silent one is noticed after 25 s."""
    world = World(initial(), *[streams(("BOOKMARK", bookmark(20)))] * 8)
    async with living(world):
        asked = [int(query["timeoutSeconds"]) for query in world.queries[2:]]
    assert all(15 <= seconds <= 20 for seconds in asked)
    assert len(set(asked)) > 1


async def test_a_silent_stream_is_replaced_and_nothing_is_lost(hurried, caplog):
    spoken = initial(node("a", 1), then=[("BOOKMARK", bookmark(10))])
    world = World(spoken, mute, streams(("ADDED", node("b", 11))))
    async with living(world) as reflector:
        assert world.told == [("a",), "+b@11"]
        assert reflector.list_count == 1
        assert reflector.doubt.silent_count == 1
    assert world.queries[2]["resourceVersion"] == "10"
    assert world.waits_s == []
    assert "nodes: the watch did not end in its time" in caplog.text


async def test_a_stream_that_owes_a_binding_is_replaced(monkeypatch, caplog):
    """API servers of 1.38 say in the answer to a binding up to which version a watch has to come.
    A stream that delivers goes on, whatever it owed before.
    """
    monkeypatch.setattr(watch, "OWED_S", 0.05)

    async def owing(_seen, wire):
        await wire.start_stream()
        world.reflector.expect("12")
        await wire.event("ADDED", node("b", 12))
        await asyncio.sleep(0.1)
        world.reflector.expect("12")
        await asyncio.sleep(0.1)
        assert world.reflector.doubt.silent_count == 0
        await wire.event("ADDED", node("c", 13))
        await asyncio.sleep(0.01)
        world.reflector.expect("14")
        await asyncio.Event().wait()

    spoken = initial(node("a", 1), then=[("BOOKMARK", bookmark(10))])
    world = World(spoken, owing, streams(("ADDED", node("d", 14))))
    async with living(world) as reflector:
        assert world.told == [("a",), "+b@12", "+c@13", "+d@14"]
        assert (reflector.list_count, reflector.doubt.silent_count) == (1, 1)
    assert world.queries[2]["resourceVersion"] == "13"
    assert "did not show a change of this scheduler" in caplog.text


async def test_an_idle_kind_on_an_etcd_without_progress_is_not_silent(hurried, caplog):
    """No bookmarks, streams end in time: the server's cache knows of nothing newer either."""
    world = World(lists(node("a", 1), version=10), *[streams()] * 5)
    world.cached = 10
    async with living(world, streaming=False) as reflector:
        assert reflector.list_count == 1
        assert reflector.doubt.silent_count == 0
        assert not reflector.doubt.is_open
    assert len([query for _, query in world.reads if query.get("resourceVersion") == "0"]) == 5
    assert world.failures == []
    assert not [record for record in caplog.records if record.name.startswith("asched")]


async def test_a_cache_behind_a_list_of_the_newest_is_no_silence(hurried):
    world = World(lists(node("a", 1), version=10), *[streams()] * 3)
    world.cached = 4
    async with living(world, streaming=False) as reflector:
        assert reflector.list_count == 1
        assert not reflector.doubt.is_open


async def test_streams_that_end_in_time_and_keep_things_back_are_found_out(hurried, caplog):
    """The server's cache is ahead, a probe says nothing, and a list shows what was missed."""
    world = World(
        lists(node("a", 1), version=10),
        *[streams()] * 2,
        lists(node("a", 1), node("b", 12), version=12),
        streams(),
    )
    world.cached = 12
    async with living(world, streaming=False) as reflector:
        assert world.told == [("a",), ("a", "b")]
        assert reflector.doubt.silent_count == 1
    assert "kept back what is newer than 10" in caplog.text


async def test_lists_do_not_hide_that_streams_stay_silent(hurried):
    """`last_complete_s` stands still as long as only lists tell what is new."""
    now = [0.0]
    rounds = []
    for version in range(11, 15):
        rounds += [lists(node("b", version), version=version), mute]
    world = World(lists(node("b", 10), version=10), mute, mute, *rounds)
    async with living(world, streaming=False, clock=lambda: now[0]) as reflector:
        assert reflector.list_count == 5
        assert reflector.last_complete_s == 0.0
        now[0] = 50.0
        reflector.doubt.delivered()
        assert reflector.last_complete_s == 50.0


@pytest.mark.parametrize("end", ["reset", "half"])
async def test_streams_that_break_before_they_speak_are_opened_again_without_a_list(end):
    """A list of 20,000 pods would break, too, and be the last to get through once all is well."""
    breaks, spoken = streams(end=end), streams(("ADDED", node("b", 11)))
    world = World(initial(node("a", 1)), breaks, breaks, breaks, spoken)
    async with living(world) as reflector:
        assert world.told == [("a",), "+b@11"]
        assert reflector.list_count == 1
    assert {query["resourceVersion"] for query in world.queries[1:5]} == {"10"}
    assert len(world.waits_s) == 3


async def test_an_answer_without_an_end_to_its_header_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(fast, "HEADER_TIMEOUT_S", 0.05)
    world = World(headless, initial(node("a", 1)), headless, streams(("ADDED", node("b", 11))))
    async with living(world):
        assert world.told == [("a",), "+b@11"]
    assert [type(error) for _, error in world.failures] == [DeadlineExceeded] * 2


# --- relists -------------------------------------------------------------------------------------


async def test_how_a_stream_broke_is_nothing_for_the_collector_of_garbage():
    broken = [streams(("ADDED", node("b", version)), end="reset") for version in range(11, 16)]
    world = World(initial(node("a", 1)), *broken, streams(("ADDED", node("c", 20))))
    gc.collect()
    gc.disable()
    others = [one for one in gc.get_objects() if isinstance(one, TransportError)]
    try:
        async with living(world):
            assert world.told[-1] == "+c@20"
        left = [one for one in gc.get_objects() if isinstance(one, TransportError)]
        assert left == others, "those of other tests"
    finally:
        gc.enable()
