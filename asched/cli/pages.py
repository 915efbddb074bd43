"""Read pages of a running scheduler at a named address.

The serving certificate of a scheduler is self-signed unless files were given, so a server on this
host is accepted without verification as long as no token is sent: any local user may listen there.
Every other server, and any server that gets a token, needs `--ca-file` or
`--insecure-skip-tls-verify`. Redirects are not followed.
"""

import argparse
import ssl
from typing import Final
from urllib.parse import quote, urlsplit

from asched.kube.credentials import Credentials
from asched.kube.errors import ConnectError, TransportError
from asched.kube.fast import FastTransport
from asched.kube.kubeconfig import SERVICE_ACCOUNT, Login
from asched.kube.transport import Reply

LOCAL: Final = ("localhost", "127.0.0.1", "::1")
PAGE_S: Final = 60.0
#: A page about a queue of 100,000 pods takes a tenth of it.
BODY_BYTES_MAX: Final = 256 << 20


class PageError(Exception):
    """A page could not be read: one line that says why and what to do."""


def quoted(word: str) -> str:
    """A word escaped as a part of a path or a query; it may contain any bytes."""
    return quote(word, safe="", errors="surrogateescape")


def add_server_flags(parser: argparse.ArgumentParser, default: str = "") -> None:
    """The flags that select the scheduler; without a default the leading replica is found."""
    unnamed = default or "the leading replica"
    parser.add_argument(
        "--server",
        default=default,
        metavar="URL",
        help=f"address of the scheduler; default: {unnamed}",
    )
    parser.add_argument("--ca-file", default="", metavar="FILE", help="CA of the server (PEM)")
    parser.add_argument(
        "--insecure-skip-tls-verify", action="store_true", help="accept any certificate"
    )


def add_token_flags(parser: argparse.ArgumentParser) -> None:
    """The flags for the identity of the client."""
    parser.add_argument("--token", default="", help="bearer token, as from kubectl create token")
    parser.add_argument("--token-file", default="", metavar="FILE", help="file with the token")


class NamedServer:
    """The server of `--server`. It gets a token if the command has the flags: the given one, else
    that of the pod this runs in.
    """

    #: The namespace of names without one.
    namespace = "default"

    def __init__(self, args: argparse.Namespace) -> None:
        url = args.server.rstrip("/")
        self._url = url if "://" in url else f"https://{url}"
        self._args = args
        self._transport: FastTransport | None = None

    @classmethod
    def here(cls, url: str) -> "NamedServer":
        """A scheduler of this machine that serves its pages without authentication."""
        return cls(argparse.Namespace(server=url, ca_file="", insecure_skip_tls_verify=True))

    async def page(self, path: str) -> Reply:
        """Read a page. Raises PageError without an answer."""
        try:
            if self._transport is None:
                self._transport = await self._connect()
            return await self._transport.request("GET", path, timeout_s=PAGE_S)
        except ConnectError as error:
            raise PageError(str(error)) from error
        except TransportError as error:
            cause = error.__cause__
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise PageError(
                    f"cannot verify the certificate of {self._url} ({cause.verify_message}): give"
                    " its CA with --ca-file, or --insecure-skip-tls-verify"
                ) from error
            raise PageError(
                f"{error}; check that a scheduler serves there (--secure-port) and that the address"
                " is right (--server)"
            ) from error

    async def _connect(self) -> FastTransport:
        """Raises PageError, ConnectError."""
        args, url = self._args, self._url
        try:
            host = urlsplit(url).hostname
        except ValueError:
            host = None
        if not host:
            raise PageError(f"{url} is not an address; correct --server")
        token, token_file = getattr(args, "token", ""), getattr(args, "token_file", "")
        own = SERVICE_ACCOUNT / "token"
        if not (token or token_file) and hasattr(args, "token") and own.exists():
            token_file = str(own)
        is_entrusted = bool(token or token_file)
        if is_entrusted and not url.startswith("https:") and not args.insecure_skip_tls_verify:
            raise PageError(
                f"refusing to send a token to {url} without TLS, since it could be read on the way;"
                " use https or give --insecure-skip-tls-verify"
            )
        is_local = host in LOCAL and not args.ca_file and not is_entrusted
        login = Login(
            server=url,
            authorities_file=args.ca_file,
            verify=not (args.insecure_skip_tls_verify or is_local),
            token=token,
            token_file=token_file,
        )
        credentials = Credentials(lambda: login)
        await credentials.renew()
        return FastTransport(credentials, "asched", limit=1, answer_bytes_max=BODY_BYTES_MAX)

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.close()
