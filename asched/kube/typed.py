"""kubernetes-asyncio's typed client with asched's credentials, in two forms.

The commands `snapshot` and `plan --apply` use the library's APIs over connections of asched
(`client_over`): failures are ClientErrors. Plugins get a client with the library's own connections
and errors (`ApiAccess`), as its documentation describes them; its `Watch` needs answers of aiohttp.

Scheduling itself does not use the library (`session.py`), because building its models costs a
hundred times what decoding our records does. The library is imported where a client is made, which
takes half a second: never in a scheduler without a plugin that uses it.
"""

import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson

from asched.kube.credentials import Credentials
from asched.kube.errors import ConnectError, ProtocolBroken
from asched.kube.session import read_json
from asched.kube.transport import JSON, Reply, Transport

if TYPE_CHECKING:
    from kubernetes_asyncio.client import ApiClient

    from asched.core.cluster.cluster import Cluster


#: A function that lists objects and returns a Reply.
Lister = Callable[..., Awaitable[Any]]


async def client_over(transport: Transport, timeout_s: float) -> "ApiClient":
    """A client of the library whose requests `transport` sends, each within `timeout_s`.

    Its APIs raise ApiError and TransportError. With `_preload_content=False` they return the Reply
    for any status. Only the transport has to be closed.
    """
    from kubernetes_asyncio.client import ApiClient, ApiException, Configuration

    class TransportClient(ApiClient):
        async def request(
            self,
            method: str,
            url: str,
            query_params: Any = None,
            headers: Any = None,
            post_params: Any = None,  # noqa: ARG002 - forms; no Kubernetes API uses them
            body: Any = None,
            _preload_content: bool = True,
            _request_timeout: Any = None,
        ) -> Any:
            reply = await transport.request(
                method,
                f"{url}?{urlencode(query_params)}" if query_params else url,
                None if body is None else orjson.dumps(body),
                content_type=headers.get("Content-Type", JSON),
                timeout_s=_request_timeout or timeout_s,
            )
            if not _preload_content:
                return reply
            read_json(reply)  # raises for an error, and unless it is a JSON object
            return _LibraryReply(reply)

        def deserialize(self, response: Any, response_type: Any) -> Any:
            try:
                return super().deserialize(response, response_type)
            except (ApiException, AttributeError, LookupError, TypeError, ValueError) as error:
                raise ProtocolBroken(f"the answer is not a {response_type}: {error}") from error

    client = TransportClient(Configuration(host=""))
    await client.rest_client.close()  # its own connections are not used
    return client


def lister(client: "ApiClient", group_version: str, name: str, plural: str) -> Lister:
    """A function that lists a kind in all namespaces, with the library's keywords, as JSON."""
    from kubernetes_asyncio.client import CoreV1Api, CustomObjectsApi

    group, _, version = group_version.rpartition("/")
    if group:
        return partial(
            CustomObjectsApi(client).list_cluster_custom_object,
            group,
            version,
            plural,
            _preload_content=False,
        )
    core, noun = CoreV1Api(client), noun_of(name)
    of_all = getattr(core, f"list_{noun}_for_all_namespaces", None)
    return partial(of_all or getattr(core, f"list_{noun}"), _preload_content=False)


def noun_of(kind: str) -> str:
    """A kind as in method names of the APIs: PodTemplate is pod_template."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower()


class _LibraryReply:
    """A Reply in the form that the library reads."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.status = reply.status
        self.data: bytes | str = reply.body

    def getheader(self, name: str) -> str | None:
        return self._reply.header(name)


class ApiAccess:
    """The `api` parameter of a plugin's `__init__`: `async with self.api() as client: ...`.

    One client serves all plugins of the process, over connections that stay open. It uses the
    scheduler's address, proxy, certificates and tokens; when address or certificates change, a new
    client replaces it. Close it once.
    """

    def __init__(self, _cluster: "Cluster | None" = None) -> None:
        self._credentials: Credentials | None = None
        self._shared: _Shared | None = None

    def open(self, credentials: Credentials) -> None:
        """Clients are available from now on."""
        self._credentials = credentials

    @asynccontextmanager
    async def __call__(self) -> "AsyncIterator[ApiClient]":
        """The client. Raises ConnectError before the scheduler has connected."""
        shared = await self._current()
        shared.user_count += 1
        try:
            yield shared.client
        finally:
            shared.user_count -= 1
            if shared is not self._shared:
                await shared.close_unused()

    async def _current(self) -> "_Shared":
        credentials, old = self._credentials, self._shared
        if credentials is None:
            raise ConnectError(
                "not connected to an API server; request a client in an extension point"
            )
        tls = credentials.tls()  # may detect a changed file and raise the generation
        if old is not None and old.generation == credentials.generation and not old.is_closed:
            return old
        new = self._shared = _Shared(_client(credentials), credentials.generation)
        await new.connect_by(tls)
        if old is not None:
            await old.close_unused()
        return new

    async def close(self) -> None:
        """Close the client; none is available any more."""
        self._credentials, shared, self._shared = None, self._shared, None
        if shared is not None:
            await shared.client.close()


class _Shared:
    """A client, and how many blocks use it."""

    def __init__(self, client: "ApiClient", generation: int) -> None:
        self.client = client
        self.generation = generation
        self.user_count = 0

    @property
    def is_closed(self) -> bool:
        """Whether a plugin has closed the client."""
        is_closed: bool = self.client.rest_client.pool_manager.closed
        return is_closed

    async def connect_by(self, tls: ssl.SSLContext | None) -> None:
        """Use our TLS context: the library would make its own from files."""
        import aiohttp

        rest = self.client.rest_client
        unused = rest.pool_manager
        connector = aiohttp.TCPConnector(ssl=tls or True)
        rest.pool_manager = aiohttp.ClientSession(connector=connector)
        await unused.close()

    async def close_unused(self) -> None:
        if not self.user_count:
            await self.client.close()


def _client(credentials: Credentials) -> "ApiClient":
    from kubernetes_asyncio.client import ApiClient, Configuration

    class SchedulerClient(ApiClient):
        async def update_params_for_auth(self, headers: dict[str, str], *_: Any, **__: Any) -> None:
            """Authenticate as the scheduler's own requests do at this moment."""
            credentials.keep_fresh()
            named = dict(credentials.headers)
            if len(named) < len(credentials.headers):
                raise ConnectError(
                    "the kubeconfig impersonates several groups; plugins' clients support one"
                )
            headers.update(named)

    configuration = Configuration(host=f"{credentials.url}{credentials.base_path}")
    configuration.proxy = credentials.proxy
    configuration.tls_server_name = credentials.server_name
    return SchedulerClient(configuration)
