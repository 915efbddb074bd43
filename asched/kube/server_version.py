"""The version of the API server, by its `/version`."""

from typing import Final

import msgspec

from asched.kube.session import ConnectionOptions, connect, read_as
from asched.kube.transport import Transport

#: A start does not wait longer for it; the scheduler itself waits for its API server.
READ_S: Final = 5.0


class ServerVersion(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of the answer."""

    git_version: str


async def read_version(transport: Transport, timeout_s: float = READ_S) -> str:
    """The version as `v1.36.3`. Raises ApiError, TransportError."""
    reply = await transport.request("GET", "/version", timeout_s=timeout_s)
    return read_as(reply, ServerVersion).git_version


async def fetch_version(connection: ConnectionOptions, timeout_s: float = READ_S) -> str:
    """The same over a connection of its own. Raises ConnectError, ApiError, TransportError."""
    session = await connect(connection, handshake=False)
    try:
        return await read_version(session.general, timeout_s)
    finally:
        await session.close()
