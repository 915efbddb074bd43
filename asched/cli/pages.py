"""Read pages of a running scheduler.

The serving certificate of a scheduler is self-signed unless files were given, so a server on this
host is accepted without verification as long as no token is sent: any local user may listen there.
Every other server, and any server that gets a token, needs `--ca-file` or
`--insecure-skip-tls-verify`. Redirects are not followed.
"""

import argparse
import ssl
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from time import monotonic
from typing import IO, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    ProxyHandler,
    Request,
    build_opener,
)

from asched.kube.certificates import client_context
from asched.kube.files import file_content, file_text
from asched.kube.transport import Reply

LOCAL: Final = ("localhost", "127.0.0.1", "::1")
#: For each read of an answer; the whole answer has BODY_S_MAX.
TIMEOUT_S: Final = 10.0
BODY_S_MAX: Final = 60.0
#: A page about a queue of 100,000 pods takes a tenth of it.
BODY_BYTES_MAX: Final = 256 << 20
PART_BYTES: Final = 1 << 20
#: The token of a pod's service account.
OWN_TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105


class PageError(Exception):
    """A page could not be read: one line that says why and what to do."""


class _NoRedirect(HTTPRedirectHandler):
    """Send the token to no server but the named one."""

    def redirect_request(self, *_: Any) -> None:
        return None


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


def fetch(args: argparse.Namespace, path: str, *, token: str = "") -> tuple[int, bytes]:
    """Status and body of a page. Raises PageError without an answer."""
    reply = fetched(args, path, token=token)
    return reply.status, reply.body


def fetched(args: argparse.Namespace, path: str, *, token: str = "") -> Reply:
    """As `fetch`, with the headers."""
    url = args.server.rstrip("/")
    if "://" not in url:
        url = f"https://{url}"
    try:
        request = Request(url + path)  # noqa: S310 - the user names the server
        tls = HTTPSHandler(context=_tls(args, url, entrusts=bool(token)))
    except ValueError as error:
        raise PageError(f"{url} is not an address: {error}; correct --server") from error
    if token:
        if not (token.isascii() and token.isprintable()):
            raise PageError("the token contains unprintable characters; check --token-file")
        if not url.startswith("https:") and not args.insecure_skip_tls_verify:
            raise PageError(
                f"refusing to send a token to {url} without TLS, since it could be read on the way;"
                " use https or give --insecure-skip-tls-verify"
            )
        request.add_header("Authorization", f"Bearer {token}")
    opener = build_opener(ProxyHandler({}), _NoRedirect, tls)
    try:
        try:
            answer = opener.open(request, timeout=TIMEOUT_S)
        except HTTPError as error:
            answer = error
        with answer:
            return Reply(answer.status, _body(answer, url), _head(answer.headers))
    except (URLError, OSError, HTTPException, ValueError) as error:
        why = getattr(error, "reason", None) or error
        if isinstance(why, ssl.SSLCertVerificationError):
            raise PageError(
                f"cannot verify the certificate of {url} ({why.verify_message}): give its CA with"
                " --ca-file, or --insecure-skip-tls-verify"
            ) from error
        raise PageError(
            f"cannot reach {url}: {why}; check that a scheduler serves there (--secure-port) and"
            " that the address is right (--server)"
        ) from error


def _body(answer: IO[bytes], url: str) -> bytes:
    """The body, bounded in size and time. Raises PageError."""
    parts, size, until_s = list[bytes](), 0, monotonic() + BODY_S_MAX
    while part := answer.read1(PART_BYTES):  # type: ignore[attr-defined]
        parts.append(part)
        size += len(part)
        if size > BODY_BYTES_MAX or monotonic() > until_s:
            raise PageError(f"the answer of {url} is too long or too slow; is it a scheduler?")
    return b"".join(parts)


def _head(headers: Message) -> bytes:
    return b"".join(f"\r\n{name}: {value}".encode("latin-1") for name, value in headers.items())


def own_token(args: argparse.Namespace) -> str:
    """The given token, else the token of the pod this runs in, else none. Raises PageError."""
    if args.token:
        return str(args.token)
    file = Path(args.token_file or OWN_TOKEN)
    try:
        return file_text(file).strip()
    except (OSError, ValueError) as error:
        if args.token_file:
            why = getattr(error, "strerror", None) or error
            raise PageError(f"cannot read --token-file {file}: {why}") from error
        return ""


def _tls(args: argparse.Namespace, url: str, *, entrusts: bool) -> ssl.SSLContext:
    is_local = urlsplit(url).hostname in LOCAL and not args.ca_file
    is_believed = args.insecure_skip_tls_verify or (is_local and not entrusts)
    try:
        authorities = file_content(args.ca_file) if args.ca_file else b""
        return client_context(authorities=authorities, verify=not is_believed)
    except OSError as error:  # includes ssl.SSLError
        why = error.strerror or error
        raise PageError(f"cannot use --ca-file {args.ca_file}: {why}") from error
