"""The proxy for a server, its credentials, and connections through it.

Only the server's name and the proxy's credentials are written before the server's certificate is
verified, so no request has been sent when an error is raised here.

Source  golang.org/x/net/http/httpproxy (HTTPS_PROXY, HTTP_PROXY, NO_PROXY, upper case first), and
        client-go's `proxy-url`; SOCKS is not supported and is refused. RFC 9110, 9.3.6 (CONNECT);
        net/http of Go 1.25, Transport.dialConn (which authorities a proxy that speaks TLS itself is
        verified with: those of the server)
"""

import asyncio
import ipaddress
import os
import ssl
from base64 import b64encode
from http import HTTPStatus
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from asched.kube.certificates import client_context
from asched.kube.errors import ConnectError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: By scheme.
PORTS: Final = {"http": 80, "https": 443}


class Proxy(msgspec.Struct, frozen=True):
    """A proxy's address. `headers`: its authentication, as lines of a request."""

    host: str
    port: int
    is_tls: bool = False
    headers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """For messages, without credentials."""
        return f"{self.host}:{self.port}"

    @classmethod
    def of(cls, url: str) -> "Proxy":
        """The proxy of a URL validated by `checked`."""
        parts = urlsplit(url)
        headers: tuple[str, ...] = ()
        if parts.username is not None:
            both = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers = (f"Proxy-Authorization: Basic {b64encode(both.encode()).decode()}",)
        port = parts.port or PORTS[parts.scheme]
        return cls(parts.hostname or "", port, parts.scheme == "https", headers)


def environment_proxy(url: str) -> str | None:
    """The proxy that the environment sets for this server. Raises ConnectError for an unsupported
    scheme.
    """
    server = urlsplit(url)
    for name in (f"{server.scheme.upper()}_PROXY", f"{server.scheme}_proxy"):
        proxy = os.environ.get(name, "")
        if proxy:
            break
    else:
        return None
    if not _is_proxied(server, os.environ.get("NO_PROXY") or os.environ.get("no_proxy") or ""):
        return None
    return checked(proxy if "://" in proxy else f"http://{proxy}", name)


def checked(proxy: str, source: str) -> str:
    """The proxy, if it can be used. Messages do not show its password."""
    try:
        parts = urlsplit(proxy)
        is_usable = bool(parts.hostname) and parts.scheme in PORTS and parts.port != 0
    except ValueError:
        parts, is_usable = SplitResult("", "", "", "", ""), False
    if not is_usable:
        raise ConnectError(
            f"{source} names a proxy that cannot be used ({parts.scheme or 'no'} scheme,"
            f" host {parts.hostname!r}); name one as http://host:port or https://host:port"
        )
    return proxy


def _is_proxied(server: SplitResult, exceptions: str) -> bool:
    name = (server.hostname or "").rstrip(".").lower()
    port = server.port or PORTS.get(server.scheme, 0)
    address = _address(name)
    if name == "localhost" or (address is not None and address.is_loopback):
        return False
    return not any(
        _matches(word.strip().lower(), name, port, address) for word in exceptions.split(",")
    )


def _matches(word: str, name: str, port: int, address: Address | None) -> bool:
    """Whether one entry of NO_PROXY matches this server."""
    if not word:
        return False
    if word == "*":
        return True
    if "/" in word:
        try:
            return address is not None and address in ipaddress.ip_network(word, strict=False)
        except ValueError:
            return False
    if _address(word) is None:
        host, colon, wanted = word.rpartition(":")
        if colon and wanted.isdigit():
            word = host
            if int(wanted) != port:
                return False
    literal = _address(word.strip("[]"))
    if literal is not None:
        return literal == address
    suffix = word.removeprefix("*")
    if suffix.startswith("."):
        return name.endswith(suffix)
    return name == suffix or name.endswith(f".{suffix}")


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


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
