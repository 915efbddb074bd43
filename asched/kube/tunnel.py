"""Connections through a proxy: CONNECT, and TLS with the server inside of the tunnel.

Only the server's name and the proxy's credentials are written before the server's certificate is
verified, so no request has been sent when an error is raised here.

Source  RFC 9110, 9.3.6 (CONNECT); net/http of Go 1.25, Transport.dialConn (which authorities a
        proxy that speaks TLS itself is verified with: those of the server)
"""

import asyncio
import ssl
from http import HTTPStatus
from typing import Final

from asched.kube.certificates import client_context
from asched.kube.proxies import Proxy

#: Limit of the head of a proxy's answer; only its status is used.
HEAD_BYTES_MAX: Final = 1 << 16
_HEAD_END: Final = b"\r\n\r\n"


class _ProxyHead(asyncio.Protocol):
    """Collects the head of the proxy's answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.head: asyncio.Future[bytes] = loop.create_future()
        self._got = b""

    def data_received(self, data: bytes) -> None:
        self._got += data
        if not self.head.done() and (_HEAD_END in self._got or len(self._got) > HEAD_BYTES_MAX):
            self.head.set_result(self._got)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if not self.head.done():
            self.head.set_result(self._got)


async def open_tunnel(proxy: Proxy, target: str, tls: ssl.SSLContext | None) -> asyncio.Transport:
    """A transport to `target` (host:port). Raises OSError. `tls` also verifies a proxy that uses
    TLS.
    """
    loop = asyncio.get_running_loop()
    answer = _ProxyHead(loop)
    context, name = verification(proxy, tls)
    transport, _ = await loop.create_connection(
        lambda: answer, proxy.host, proxy.port, ssl=context, server_hostname=name
    )
    try:
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", *proxy.headers]
        transport.write("".join(f"{line}\r\n" for line in (*lines, "")).encode())
        _check(await answer.head)
    except BaseException:
        transport.abort()
        raise
    return transport


def verification(
    proxy: Proxy, tls: ssl.SSLContext | None
) -> tuple[ssl.SSLContext | None, str | None]:
    """TLS context and server name for the proxy itself; nothing without TLS."""
    return (tls or client_context(), proxy.host) if proxy.is_tls else (None, None)


def _check(head: bytes) -> None:
    """Raises OSError unless the tunnel is open and no further bytes have arrived."""
    line, _, _ = head.partition(b"\r\n")
    version, _, rest = line.partition(b" ")
    code = rest[:3]
    if not version.startswith(b"HTTP/1.") or not code.isdigit() or _HEAD_END not in head:
        raise OSError("the proxy gave no HTTP answer to CONNECT")
    if not code.startswith(b"2"):
        is_known = int(code) in HTTPStatus._value2member_map_
        words = f" {HTTPStatus(int(code)).phrase}" if is_known else ""
        cure = "; name a user and a password in its address" if code == b"407" else ""
        raise OSError(f"the proxy answered {code.decode()}{words}{cure}")
    if not head.endswith(_HEAD_END):
        raise OSError("the proxy wrote into the tunnel before the server was asked")
