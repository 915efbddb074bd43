"""Trouble on purpose, as clients meet it."""

import aiohttp
import pytest

from asched_lab.apiserver.faults import Fault, Faults, named
from asched_lab.apiserver.server import ApiServer
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


async def test_a_dropped_watch_goes_on_from_its_last_version(
    server: ApiServer, client: Client
) -> None:
    server.create("pods", a_pod("a"))
    server.faults.add(Fault("drop_watch", path="/pods$", count=1))
    with pytest.raises(aiohttp.ClientError):
        await client.watch(PODS)
    assert [e["object"]["metadata"]["name"] for e in await client.watch(PODS)] == ["a"]


@pytest.mark.parametrize(("action", "is_written"), [("black_hole", False), ("half_open", True)])
async def test_a_silent_connection_tells_nothing(
    server: ApiServer, client: Client, action: str, is_written: bool
) -> None:
    server.create("pods", a_pod("web"))
    server.faults.add(Fault(action, path="/binding$", count=1))
    body, patience = a_binding("web", "n1"), aiohttp.ClientTimeout(total=0.2)
    with pytest.raises(TimeoutError):
        await client.ask("POST", f"{PODS}/web/binding", body, timeout=patience)
    assert await node_of(client) == ("n1" if is_written else "")


async def test_a_stale_list_shows_the_past(server: ApiServer, client: Client) -> None:
    server.create("pods", a_pod("old"))
    then = server.store.revision
    for number in range(3):
        server.create("pods", a_pod(f"new-{number}"))
    server.faults.add(Fault("stale_list", changes=3))
    _, shown = await client.get(PODS, limit="500")
    assert [pod["metadata"]["name"] for pod in shown["items"]] == ["old"]
    assert shown["metadata"]["resourceVersion"] == str(then)
    status, _ = await client.get(PODS, watch="1", sendInitialEvents="true")
    assert status == 400


async def test_a_version_may_be_lower_than_what_is_shown(server: ApiServer, client: Client) -> None:
    server.create("pods", a_pod("web"))
    server.faults.add(Fault("lower_version", changes=2))
    _, shown = await client.get(PODS)
    assert len(shown["items"]) == 1
    assert int(shown["metadata"]["resourceVersion"]) == server.store.revision - 2


@pytest.mark.parametrize(
    ("name", "code"),
    [("conflict", 409), ("gone", 410), ("overload", 429), ("server-error", 500)],
)
async def test_named_refusals(server: ApiServer, client: Client, name: str, code: int) -> None:
    server.faults.add(named(name))
    read, _ = await client.get(PODS)
    written, _ = await client.post(PODS, a_pod("web"))
    assert read == (200 if name == "conflict" else code)
    assert written == (201 if name == "gone" else code)


def test_a_rate_is_a_seeded_share() -> None:
    def hits(seed: int) -> list[bool]:
        faults = Faults(seed)
        faults.add(Fault("refuse", rate=0.3))
        return [faults.hit("GET", "/x") is not None for _ in range(200)]

    assert hits(1) == hits(1)
    assert hits(1) != hits(2)
    assert 30 < sum(hits(1)) < 90
