"""Trouble on purpose, as clients meet it."""

import aiohttp
import pytest

from asched.lab.apiserver.faults import Fault, Faults
from asched.lab.apiserver.server import ApiServer
from tests.lab.apiserver.client import PODS, Client, a_binding, a_pod


async def bind_without_answer(client: Client) -> None:
    with pytest.raises(aiohttp.ClientError):
        await client.post(f"{PODS}/web/binding", a_binding("web", "n1"))


async def node_of(client: Client) -> str:
    _, pod = await client.get(f"{PODS}/web")
    return str(pod["spec"].get("nodeName", ""))


async def test_a_lost_answer_may_hide_a_binding(server: ApiServer, client: Client) -> None:
    """1. The binding is written. 2. Its answer is lost. 3. Asking again looks like a conflict."""
    server.create("pods", a_pod("web"))
    server.faults.add(Fault("reset_after", path="/binding$", count=1))

    await bind_without_answer(client)

    assert await node_of(client) == "n1"
    status, answer = await client.post(f"{PODS}/web/binding", a_binding("web", "n1"))
    assert (status, answer["reason"]) == (409, "Conflict")


async def test_a_lost_request_hides_nothing(server: ApiServer, client: Client) -> None:
    server.create("pods", a_pod("web"))
    server.faults.add(Fault("reset_before", path="/binding$", method="POST", count=1))

    await bind_without_answer(client)

    assert await node_of(client) == ""
    status, _ = await client.post(f"{PODS}/web/binding", a_binding("web", "n1"))
    assert status == 201


async def test_overload_is_text_with_a_waiting_time(server: ApiServer, client: Client) -> None:
    server.faults.add(Fault("refuse", path="/pods$", count=1, retry_after_s=3))
    async with client.session.get(server.url + PODS) as answer:
        assert answer.status == 429
        assert answer.headers["Retry-After"] == "3"
        assert answer.content_type == "text/plain"
    assert (await client.get(PODS))[0] == 200


async def test_a_delayed_write_is_done_at_once(server: ApiServer, client: Client) -> None:
    fault = server.faults.add(Fault("delay", method="POST", path="/pods$", seconds=0.01))
    status, _ = await client.post(PODS, a_pod("web"))
    assert status == 201
    assert fault.hits == 1


async def test_a_dropped_watch_goes_on_from_its_last_version(
    server: ApiServer, client: Client
) -> None:
    server.create("pods", a_pod("a"))
    server.faults.add(Fault("drop_watch", path="/pods$", count=1))
    with pytest.raises(aiohttp.ClientError):
        await client.watch(PODS)
    assert [e["object"]["metadata"]["name"] for e in await client.watch(PODS)] == ["a"]


async def test_a_watch_may_expire_midway(server: ApiServer, client: Client) -> None:
    server.create("pods", a_pod("a"))
    server.faults.add(Fault("expire_watch", path="/pods$", count=1))
    events = await client.watch(PODS)
    assert [event["type"] for event in events] == ["ADDED", "ERROR"]
    assert (events[-1]["object"]["code"], events[-1]["object"]["reason"]) == (410, "Expired")


def test_a_rate_is_a_seeded_share() -> None:
    def hits(seed: int) -> list[bool]:
        faults = Faults(seed)
        faults.add(Fault("refuse", rate=0.3))
        return [faults.hit("GET", "/x") is not None for _ in range(200)]

    assert hits(1) == hits(1)
    assert hits(1) != hits(2)
    assert 30 < sum(hits(1)) < 90
