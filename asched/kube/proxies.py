"""The proxy for a server, and its credentials.

Source  golang.org/x/net/http/httpproxy (HTTPS_PROXY, HTTP_PROXY, NO_PROXY, upper case first), and
        client-go's `proxy-url`; SOCKS is not supported and is refused.
"""

import ipaddress
import os
from base64 import b64encode
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from asched.kube.errors import ConnectError

if TYPE_CHECKING:
    Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORTS: Final = {"http": 80, "https": 443}


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
        port = parts.port or _PORTS[parts.scheme]
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
        is_usable = bool(parts.hostname) and parts.scheme in _PORTS and parts.port != 0
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
    port = server.port or _PORTS.get(server.scheme, 0)
    address = _address(name)
    if name == "localhost" or (address is not None and address.is_loopback):
        return False
    return not any(
        _matches(word.strip().lower(), name, port, address) for word in exceptions.split(",")
    )


def _matches(word: str, name: str, port: int, address: "Address | None") -> bool:
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


def _address(text: str) -> "Address | None":
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
