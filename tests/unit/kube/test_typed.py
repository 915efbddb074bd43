"""A plugin that asks the API server by kubernetes-asyncio, in a scheduler that runs."""

from typing import Any

import pytest

from asched.kube.credentials import load_credentials
from asched.kube.errors import ConnectError
from asched.kube.typed import ApiAccess


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
