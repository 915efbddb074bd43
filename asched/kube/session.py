"""A connected cluster, and transports to it.

`connect` loads the configuration, reads the server's version as a first request, and turns failures
into one line for the user (ConnectError). Forbidden lists show later, per kind, in `watch.py`.
"""

import asyncio
from collections.abc import Callable
from math import inf
from typing import Any, Final, TypeVar

import msgspec

from asched.core.model.decode import MalformedError
from asched.kube.credentials import Credentials, load_credentials
from asched.kube.errors import (
    ConnectError,
    ProtocolBroken,
    TransportError,
    Unauthorized,
    api_error,
)
from asched.kube.fast import FastTransport
from asched.kube.parsing import read
from asched.kube.transport import (
    ANSWER_BYTES_MAX,
    JSON,
    Observer,
    Reply,
    StreamingTransport,
    Transport,
    no_fence,
    observe_nothing,
    successful,
)

#: How long the first handshake may take before start-up is given up.
HANDSHAKE_TIMEOUT_S: Final = 10.0
#: A start does not wait longer for the version; the scheduler itself waits for its API server.
VERSION_S: Final = 5.0
#: An invalid answer is shown up to this length.
_SHOWN: Final = 100

T = TypeVar("T")


class ConfigData(msgspec.Struct):
    """The data of a ConfigMap."""

    data: dict[str, str] | None = None


class ConnectionOptions(msgspec.Struct, frozen=True):
    """How to reach the cluster. Empty strings mean "not given"."""

    kubeconfig: str = ""
    context: str = ""
    #: Address that overrides the kubeconfig's `server`.
    master: str = ""
    #: Requests per second of the writing lanes; 0 and negative: no limit of our own.
    qps: float = 0.0
    burst: int = 0
    user_agent: str = "asched"
    #: The Accept header of lists and watches.
    stream_accept: str = JSON


class Session:
    """Transports to one cluster. Close it once."""

    def __init__(
        self, credentials: Credentials, options: ConnectionOptions, observe: Observer
    ) -> None:
        self.credentials = credentials
        self.options = options
        self._observe = observe
        self._pools: list[FastTransport] = []
        #: For watches and rare requests.
        self.general = self._streaming()

    def _streaming(self) -> StreamingTransport:
        return FastTransport(
            self.credentials,
            self.options.user_agent,
            limit=inf,
            stream_accept=self.options.stream_accept,
            observe=self._observe,
            answer_bytes_max=ANSWER_BYTES_MAX,
            distrusted=self._distrust_pools,
        )

    @property
    def url(self) -> str:
        return self.credentials.url

    def pool(
        self, limit: int, *, purpose: str = "", may_send: Callable[[], bool] = no_fence
    ) -> Transport:
        """A transport with at most `limit` connections of its own, independent of other pools.

        `purpose` is appended to the user agent, for the server's audit log. While `may_send` is
        False a request ends in ConnectFailed.
        """
        agent = self.options.user_agent + (f"/{purpose}" if purpose else "")
        made = FastTransport(
            self.credentials, agent, limit=limit, observe=self._observe, may_send=may_send
        )
        self._pools.append(made)
        return made

    def _distrust_pools(self) -> None:
        """A silent watch suggests that the connections of other pools are broken, too."""
        now_s = asyncio.get_running_loop().time()
        for pool in self._pools:
            pool.distrust(now_s)

    async def get_as(
        self, path: str, shape: type[T], *, timeout_s: float = HANDSHAKE_TIMEOUT_S
    ) -> T:
        """GET one object. Raises ApiError or TransportError."""
        return read_as(await self.general.request("GET", path, timeout_s=timeout_s), shape)

    async def close(self) -> None:
        for pool in self._pools:
            await pool.close()
        await self.general.close()
        await self.credentials.close()


def read_as(reply: Reply, shape: type[T]) -> T:
    """Decode a successful answer. Raises ApiError for any other, and ProtocolBroken for another
    shape, which callers can handle like a missing answer.
    """
    body = successful(reply)
    try:
        return read(msgspec.json.Decoder(shape).decode, body)
    except MalformedError as error:
        start = body[:_SHOWN].decode("utf-8", "replace")
        raise ProtocolBroken(f"the answer makes no sense ({error}): {start!r}") from error


def read_json(reply: Reply) -> dict[str, Any]:
    """The JSON object of a successful answer. Raises as `read_as` does."""
    return read_as(reply, dict[str, Any])


async def connect(
    options: ConnectionOptions, *, observe: Observer = observe_nothing, handshake: bool = True
) -> Session:
    """A session with the cluster that the options name.

    `handshake=False` leaves out the first request: like kube-scheduler, the host may wait for an
    unreachable server. Raises ConnectError.
    """
    credentials = await load_credentials(options.kubeconfig, options.context, options.master)
    session = Session(credentials, options, observe)
    if not handshake:
        return session
    try:
        reply = await session.general.request("GET", "/version", timeout_s=HANDSHAKE_TIMEOUT_S)
    except TransportError as error:
        await session.close()
        raise ConnectError(f"{error}; check the address and that the API server runs") from error
    if reply.status == 401:
        await session.close()
        refused = api_error(reply.status, reply.body)
        assert isinstance(refused, Unauthorized)
        raise ConnectError(
            f"{session.url} does not accept the credentials ({refused.message}); "
            "renew the token or certificate in the kubeconfig"
        )
    # Any other error proves that a server answers; permissions show per kind.
    return session


class ServerVersion(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of the answer."""

    git_version: str


async def read_version(transport: Transport, timeout_s: float = VERSION_S) -> str:
    """The version as `v1.36.3`. Raises ApiError, TransportError."""
    reply = await transport.request("GET", "/version", timeout_s=timeout_s)
    return read_as(reply, ServerVersion).git_version


async def fetch_version(connection: ConnectionOptions, timeout_s: float = VERSION_S) -> str:
    """The same over a connection of its own. Raises ConnectError, ApiError, TransportError."""
    session = await connect(connection, handshake=False)
    try:
        return await read_version(session.general, timeout_s)
    finally:
        await session.close()
