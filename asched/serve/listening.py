"""Bind a port. The kernel queues connections until a `ConnectionServer` accepts them."""

import asyncio
import errno
import socket
from collections.abc import Iterable
from typing import Any, Final

from asched.serve.options import CannotServeError

BACKLOG: Final = 128


async def listen(
    host: str, port: int, *, cure: str, reuse_port: bool = False
) -> list[socket.socket]:
    """Listening sockets. Raises CannotServeError, whose message ends with `cure`."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        return _listen(found, reuse_port=reuse_port)
    except OSError as error:
        raise CannotServeError(
            f"cannot listen on {host}:{port}: {error.strerror}; {cure}"
        ) from error


def _listen(found: Iterable[tuple[Any, ...]], *, reuse_port: bool) -> list[socket.socket]:
    """A socket for each address that this machine has. Raises OSError."""
    listening: list[socket.socket] = []
    error_found = OSError(errno.EADDRNOTAVAIL, "no such address")
    for family, _, _, _, address in found:
        try:
            sock = socket.create_server(
                address[:2], family=family, backlog=BACKLOG, reuse_port=reuse_port
            )
        except OSError as error:
            error_found = error
            if error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                continue  # for instance no IPv6
            for other in listening:
                other.close()
            raise
        sock.setblocking(False)
        listening.append(sock)
    if not listening:
        raise error_found
    return listening
