"""Clients of kubernetes-asyncio over asched's connections: of a plugin in a scheduler that runs,
and of commands. They override parts of the library that its versions may change.
"""

from typing import Any

import orjson
import pytest
from kubernetes_asyncio.client import ApiClient, CoreV1Api, V1Node, V1ObjectMeta

from asched.kube.credentials import load_credentials
from asched.kube.errors import ConnectError, NotFound, ProtocolBroken
from asched.kube.transport import Reply
from asched.kube.typed import ApiAccess, client_over


async def test_another_client_follows_where_the_credentials_change(
    tmp_path: Any, server: Any
) -> None:
    kubeconfig = tmp_path / "kubeconfig"

    def write(url: str) -> None:
        kubeconfig.write_text(
            "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
            f"clusters: [{{name: k, cluster: {{server: '{url}'}}}}]\n"
            "users: [{name: u, user: {}}]\n"
        )

    write(server.url)
    access, credentials = ApiAccess(), await load_credentials(str(kubeconfig))
    access.open(credentials)
    async with access() as first, access() as same:
        assert first is same
        write(f"{server.url}/moved")
        await credentials.renew()
        async with access() as moved:
            assert moved.configuration.host == f"{server.url}/moved"
            assert not first.rest_client.pool_manager.closed, "blocks still use it"
    assert first.rest_client.pool_manager.closed
    await moved.close()  # a plugin may do so
    async with access() as again:
        assert not again.rest_client.pool_manager.closed
    await access.close()
    assert again.rest_client.pool_manager.closed
    with pytest.raises(ConnectError):
        async with access():
            pass


async def test_a_client_that_cannot_say_who_asks_asks_nothing(tmp_path: Any, server: Any) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
        f"clusters: [{{name: k, cluster: {{server: '{server.url}'}}}}]\n"
        "users: [{name: u, user: {token: t, as: them, as-groups: [g, h]}}]\n"
    )
    access = ApiAccess()
    access.open(await load_credentials(str(kubeconfig)))
    async with access() as client:
        with pytest.raises(ConnectError, match="impersonates several groups"):
            await client.update_params_for_auth({}, {}, [])
    await access.close()


class Answering:
    """A transport that records requests and gives one answer to all."""

    def __init__(self, status: int, document: Any) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json"
        self.reply = Reply(status, orjson.dumps(document), head)
        self.sent: list[tuple[str, str, Any]] = []

    async def request(self, method: str, path: str, body: Any = None, **_: Any) -> Reply:
        self.sent.append((method, path, body and orjson.loads(body)))
        return self.reply


async def core_over(transport: Any) -> CoreV1Api:
    client: ApiClient = await client_over(transport, 1.0)
    return CoreV1Api(client)


async def test_requests_of_the_library_go_over_our_connections() -> None:
    transport = Answering(200, {"metadata": {}, "items": [{"metadata": {"name": "n"}}]})
    core = await core_over(transport)
    listed = await core.list_node(limit=5)
    assert [node.metadata.name for node in listed.items] == ["n"]
    await core.create_node(V1Node(metadata=V1ObjectMeta(name="m")))
    raw: Any = await core.list_node(_preload_content=False)
    assert raw is transport.reply
    assert transport.sent == [
        ("GET", "/api/v1/nodes?limit=5", None),
        ("POST", "/api/v1/nodes", {"metadata": {"name": "m"}}),
        ("GET", "/api/v1/nodes", None),
    ]


async def test_errors_of_the_library_are_ours() -> None:
    absent = {"kind": "Status", "reason": "NotFound", "message": "nodes not found", "code": 404}
    with pytest.raises(NotFound):
        await (await core_over(Answering(404, absent))).list_node()
    with pytest.raises(ProtocolBroken):
        await (await core_over(Answering(200, {"items": 5}))).list_node()
