"""The small reads beside the streams, one by one."""

import asyncio

import pytest

from asched.core.model.kinds import NAMESPACE, NODE, POD
from asched.core.model.meta import ObjectMeta
from asched.core.model.node import Node
from asched.kube import history
from asched.kube.errors import HistoryChanged, ServerFailed
from asched.kube.history import History
from asched.kube.transport import Reply


class Server:
    """At version 7 with a cache at `cached`; answers once `open` is set."""

    def __init__(self, *, cached="7", status=200, **reached):
        self.cached, self.status, self.asked = cached, status, []
        self.open = asyncio.Event()
        self.open.set()
        self.history = History(self)
        self.reached = {POD: "", NODE: "", **reached}
        for kind in (NODE, POD):
            self.history.follow(kind, lambda kind=kind: self.reached[kind])

    async def request(self, _method, path, **_):
        self.asked.append(path)
        await self.open.wait()
        version = self.cached if "resourceVersion=0" in path else "7"
        return Reply(self.status, b'{"metadata": {"resourceVersion": "%s"}}' % version.encode())


def kube_system(uid):
    return Node(metadata=ObjectMeta(name="kube-system", uid=uid))


async def test_each_read_asks_for_one_object_by_its_name():
    server = Server()
    await server.history.check()
    await server.history.cached(POD)
    by_name = "?fieldSelector=metadata.name%3D"
    assert server.asked == [
        f"/api/v1/namespaces{by_name}kube-system",
        f"/api/v1/namespaces/default/pods{by_name}asched-canary&resourceVersion=0",
    ]


async def test_a_server_that_refuses_a_read_has_said_nothing_of_itself():
    with pytest.raises(ServerFailed):
        await Server(status=503).history.check()


@pytest.mark.parametrize(("node", "pod", "reads"), [("5", "5", 1), ("5", "9", 2), ("", "9", 2)])
async def test_each_kind_is_compared_with_its_own_version(node, pod, reads):
    server = Server()
    server.reached = {NODE: node, POD: pod}
    if reads == 1:
        await server.history.check()
    else:
        with pytest.raises(HistoryChanged, match="pods had been followed up to 9"):
            await server.history.check()
    assert len(server.asked) == reads


def test_a_list_without_its_witness_says_nothing_of_the_cluster():
    told = Server().history
    told.listed(NAMESPACE, [Node(metadata=ObjectMeta(name="other", uid="x")), kube_system("one")])
    told.listed(NODE, [kube_system("of a node")])
    told.listed(NAMESPACE, [])
    with pytest.raises(HistoryChanged, match="was one, now it is two"):
        told.listed(NAMESPACE, [kube_system("two")])


@pytest.mark.parametrize(
    ("reached", "cached", "version", "told", "reads"),
    [
        ("7", "9", "7", True, 0),
        ("8", "9", "7", True, 0),
        ("5", "5", "7", True, 1),
        ("5", "6", "7", False, 1),
    ],
)
async def test_streams_have_told_all_that_the_kind_has_seen(reached, cached, version, told, reads):
    """Of an idle kind the cache knows nothing newer, however far the server has come."""
    server = Server(cached=cached)
    server.reached[POD] = reached
    assert await server.history.has_told(POD, version) is told
    assert len(server.asked) == reads


async def test_streams_that_tell_it_soon_are_not_helped_by_a_list(monkeypatch):
    monkeypatch.setattr(history, "CATCH_UP_S", 0.05)
    server = Server()
    server.reached[POD] = "5"
    asyncio.get_running_loop().call_later(0.01, server.reached.__setitem__, POD, "7")

    async def list_again():
        raise AssertionError("they were not waited for")

    await server.history.catch_up(POD, list_again)


async def test_how_far_it_has_to_come_is_asked_once(monkeypatch):
    """Else one would run after a busy cluster without end."""
    monkeypatch.setattr(history, "CATCH_UP_S", 0.0)
    server, lists = Server(), []
    server.reached[POD] = "5"

    async def list_again():
        lists.append("list")
        server.reached[POD] = "6" if len(lists) < 3 else "7"

    await server.history.catch_up(POD, list_again)
    assert (len(server.asked), len(lists)) == (1, 3)


async def asking(server, count):
    server.open.clear()
    asks = [asyncio.ensure_future(server.history.check()) for _ in range(count)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return asks


async def test_whoever_asks_meanwhile_shares_the_answer_though_the_first_gave_up():
    server = Server()
    first, other = await asking(server, 2)
    first.cancel()
    await asyncio.sleep(0)
    server.open.set()
    await other
    assert len(server.asked) == 1
    await server.history.check()
    assert len(server.asked) == 2


async def test_a_check_that_nobody_waits_for_any_more_ends(caplog):
    server = Server()
    before = asyncio.all_tasks()
    asks = await asking(server, 2)
    for ask in asks:
        ask.cancel()
    await asyncio.gather(*asks, return_exceptions=True)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    server.open.set()
    await server.history.check()
    assert len(server.asked) == 2
    assert not caplog.records
