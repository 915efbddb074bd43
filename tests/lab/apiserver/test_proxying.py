"""Requests to pods through the server."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from asched_lab.apiserver.call import User
from asched_lab.apiserver.server import ApiServer
from tests.lab.apiserver.client import MERGE, PODS, Client, a_pod


@pytest.fixture
async def page() -> AsyncIterator[TestServer]:
    """What runs in the pod: it repeats the request."""

    async def repeat(request: web.BaseRequest) -> web.Response:
        named = {name: request.headers.get(name) for name in ("Authorization", "X-Mine")}
        body = await request.text()
        return web.json_response(
            {"target": str(request.rel_url), "body": body, **named}, status=418
        )

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", repeat)
    async with TestServer(application) as server:
        yield server


async def has_address(client: Client, address: str) -> None:
    await client.ask("PATCH", f"{PODS}/web/status", {"status": {"podIP": address}}, media=MERGE)


async def test_a_pod_gets_the_request_without_the_clients_token(page: TestServer) -> None:
    server = ApiServer()
    await server.start(token="secret")
    server.create("pods", a_pod("web"))
    try:
        async with Client(server.url, "secret") as client:
            await has_address(client, "127.0.0.1")
            path = f"{PODS}/web:{page.port}/proxy/a%20b/?x=1&y="
            mine = {"Authorization": "Bearer secret", "X-Mine": "yes"}
            async with client.session.post(server.url + path, data=b"hello", headers=mine) as seen:
                assert seen.status == 418
                told = await seen.json()
    finally:
        await server.stop()
    assert told == {
        "target": "/a%20b/?x=1&y=",
        "body": "hello",
        "Authorization": None,
        "X-Mine": "yes",
    }


async def test_a_port_of_the_pod_is_used_where_none_is_named(
    server: ApiServer, client: Client, page: TestServer
) -> None:
    ports = [{"containerPort": page.port}]
    server.create("pods", a_pod("web", containers=[{"name": "c", "image": "i", "ports": ports}]))
    await has_address(client, "127.0.0.1")
    assert (await client.get(f"{PODS}/web/proxy/"))[0] == 418


@pytest.mark.parametrize(
    ("named", "address", "code", "words"),
    [
        ("web:1", "127.0.0.1", 503, "error trying to reach service"),
        ("web", "", 400, "address not allowed"),
        ("gone", "", 404, 'pods "gone" not found'),
        ("ftp:web:1", "127.0.0.1", 400, 'invalid pod request "ftp:web:1"'),
    ],
)
async def test_requests_that_reach_no_pod_are_refused(
    named: str, address: str, code: int, words: str, server: ApiServer, client: Client
) -> None:
    server.create("pods", a_pod("web"))
    await has_address(client, address)
    status, answer = await client.get(f"{PODS}/{named}/proxy/")
    assert status == code
    assert words in answer["message"]


async def test_it_takes_the_right_to_the_proxy() -> None:
    server = ApiServer(users={"weak": User("somebody", ("system:authenticated",))})
    await server.start()
    server.create("pods", a_pod("web"))
    try:
        async with Client(server.url, "weak") as client:
            status, answer = await client.get(f"{PODS}/web/proxy/")
    finally:
        await server.stop()
    assert status == 403
    assert 'cannot get resource "pods/proxy"' in answer["message"]
