"""kubernetes-asyncio's typed client, logged in as asched: what plugins talk to the API server with.

What scheduling itself reads and writes goes other ways (`session.py`), because building the
library's models costs a hundred times what decoding our records does. A plugin that looks up a
ConfigMap in `permit` has that time, and its author knows the library. It is imported when a plugin
asks for a client, which takes half a second: once, in a process that has such a plugin.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from asched.edge.client.credentials import Credentials
from asched.edge.client.errors import ConnectError

if TYPE_CHECKING:
    from kubernetes_asyncio.client import ApiClient

    from asched.core.state.cluster import Cluster


class ApiAccess:
    """What a plugin's `__init__` is given as `api`: `async with self.api() as client: ...`.

    A client uses the address, proxy, certificates and tokens of the scheduler, renewed ones
    included. It lives as long as the block.
    """

    def __init__(self, _cluster: "Cluster | None" = None) -> None:
        self._credentials: Credentials | None = None

    def open(self, credentials: Credentials) -> None:
        """From now on clients can be had."""
        self._credentials = credentials

    @asynccontextmanager
    async def __call__(self) -> "AsyncIterator[ApiClient]":
        """A client. Raises ConnectError before the scheduler has connected."""
        if self._credentials is None:
            raise ConnectError("there is no API server here; ask for a client in a point that runs")
        import aiohttp

        made = _client(self._credentials)
        # The library makes a TLS context of its own from files; ours needs none.
        await made.rest_client.pool_manager.close()
        connector = aiohttp.TCPConnector(ssl=self._credentials.tls() or True)
        made.rest_client.pool_manager = aiohttp.ClientSession(connector=connector)
        async with made:
            yield made


def _client(credentials: Credentials) -> "ApiClient":
    from kubernetes_asyncio.client import ApiClient, Configuration

    class Client(ApiClient):
        async def update_params_for_auth(self, headers: dict[str, str], *_: Any, **__: Any) -> None:
            """Say who asks as the scheduler's own requests do at that moment."""
            credentials.keep_fresh()
            named = dict(credentials.headers)
            if len(named) < len(credentials.headers):
                raise ConnectError(
                    "the kubeconfig impersonates several groups, which plugins' clients cannot send"
                )
            headers.update(named)

    configuration = Configuration(host=f"{credentials.url}{credentials.base_path}")
    configuration.proxy = credentials.proxy
    configuration.tls_server_name = credentials.server_name
    return Client(configuration)
