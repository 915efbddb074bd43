"""Connecting, and what a user reads when it does not work."""

import pytest

from asched.kube.errors import ConnectError, Forbidden, ProtocolBroken
from asched.kube.session import ConfigData, ConnectionOptions, connect
from tests.unit.kube.scripted import reply, status


async def test_an_unreachable_server_is_named(unused_tcp_port):
    url = f"http://127.0.0.1:{unused_tcp_port}"
    with pytest.raises(ConnectError, match=f"cannot reach {url}: connection refused; check"):
        await connect(ConnectionOptions(master=url))


async def test_refused_credentials_are_named(server):
    async def unauthorized(_seen, _wire):
        return reply(401, status(401, "Unauthorized", "Unauthorized"))

    server.handler = unauthorized
    with pytest.raises(ConnectError, match=f"{server.url} does not accept the credentials"):
        await connect(ConnectionOptions(master=server.url))


async def test_a_forbidden_version_is_no_obstacle(server):
    async def forbidden(_seen, _wire):
        return reply(403, status(403, "Forbidden", "no"))

    server.handler = forbidden
    session = await connect(ConnectionOptions(master=server.url))
    with pytest.raises(Forbidden):
        await session.get_as("/api/v1/nodes", dict)
    await session.close()


#: What a proxy, a captive portal or a broken balancer puts in the place of an object.
NO_OBJECTS = [b"", b"<html>sign in</html>", b"[]", b"7", b"{", b"\xff", b"[" * 100_000]


@pytest.mark.parametrize("body", NO_OBJECTS, ids=lambda body: repr(body[:8]))
async def test_a_200_that_is_no_object_is_a_failed_answer(session, server, body):
    async def senseless(_seen, _wire):
        return reply(200, body)

    server.handler = senseless
    with pytest.raises(ProtocolBroken, match="makes no sense"):
        await session.get_as("/x", dict)


@pytest.mark.parametrize("data", [[], 7, {"a": 1}, {"a": None}])
async def test_a_configmap_that_is_none_is_a_failed_answer(session, server, data):
    async def senseless(_seen, _wire):
        return reply(200, {"data": data})

    server.handler = senseless
    with pytest.raises(ProtocolBroken, match=r"makes no sense .*\$.data"):
        await session.get_as("/x", ConfigData)
