"""Asking a running scheduler for a page, for commands that show one.

The serving certificate of a scheduler is its own unless one was given, so a server on this host is
believed without proof as long as nothing is entrusted to it: whoever listens there could be anybody
who may log in. Any other, and whoever is sent a token, needs `--ca-file`, or
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
#: For each piece of an answer; all of it has BODY_S_MAX.
TIMEOUT_S: Final = 10.0
BODY_S_MAX: Final = 60.0
#: What is told of a queue of a hundred thousand pods is a tenth of it.
BODY_BYTES_MAX: Final = 256 << 20
PART_BYTES: Final = 1 << 20
#: Where a pod finds the token of its service account.
OWN_TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105


class PageError(Exception):
    """The page cannot be had: one line that says why and what to do."""


class _NoRedirect(HTTPRedirectHandler):
    """A token is for whom it was given to."""

    def redirect_request(self, *_: Any) -> None:
        return None


def quoted(word: str) -> str:
    """A word as a part of a path or a query, whatever bytes the command line had."""
    return quote(word, safe="", errors="surrogateescape")


def add_server_flags(parser: argparse.ArgumentParser, default: str = "") -> None:
    """The flags that say which scheduler to ask; without a default the one that leads is found."""
    unnamed = default or "the one that leads"
    parser.add_argument(
        "--server", default=default, metavar="URL", help=f"of the scheduler; default {unnamed}"
    )
    parser.add_argument("--ca-file", default="", metavar="FILE", help="CA of the server (PEM)")
    parser.add_argument(
        "--insecure-skip-tls-verify", action="store_true", help="believe any certificate"
    )


def add_token_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that say as whom to ask."""
    parser.add_argument("--token", default="", help="bearer token; kubectl create token makes one")
    parser.add_argument("--token-file", default="", metavar="FILE", help="file with the token")


def fetch(args: argparse.Namespace, path: str, *, token: str = "") -> tuple[int, bytes]:
    """Status and body of a page. Raises PageError if nobody answers."""
    reply = fetched(args, path, token=token)
    return reply.status, reply.body


def fetched(args: argparse.Namespace, path: str, *, token: str = "") -> Reply:
    """The same with its headers."""
    url = args.server.rstrip("/")
    if "://" not in url:
        url = f"https://{url}"
    try:
        request = Request(url + path)  # noqa: S310 - the user names the server
        tls = HTTPSHandler(context=_tls(args, url, entrusts=bool(token)))
    except ValueError as error:
        raise PageError(f"{url} is no address: {error}; correct --server") from error
    if token:
        if not (token.isascii() and token.isprintable()):
            raise PageError("the token is not printable: is it in another form?")
        if not url.startswith("https:") and not args.insecure_skip_tls_verify:
            raise PageError(
                f"a token is not sent to {url} without TLS, where anybody may read it; ask over"
                " https, or give --insecure-skip-tls-verify"
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
                f"{url} is not known to be a scheduler ({why.verify_message}): name its authority"
                " with --ca-file, or believe it with --insecure-skip-tls-verify"
            ) from error
        raise PageError(
            f"cannot reach {url}: {why}; is a scheduler serving there (--secure-port), and is the"
            " address right (--server)?"
        ) from error


def _body(answer: IO[bytes], url: str) -> bytes:
    """What it holds, if that comes to an end in time. Raises PageError."""
    parts, size, until_s = list[bytes](), 0, monotonic() + BODY_S_MAX
    while part := answer.read1(PART_BYTES):  # type: ignore[attr-defined]
        parts.append(part)
        size += len(part)
        if size > BODY_BYTES_MAX or monotonic() > until_s:
            raise PageError(f"what {url} answers has no end: is it a scheduler?")
    return b"".join(parts)


def _head(headers: Message) -> bytes:
    return b"".join(f"\r\n{name}: {value}".encode("latin-1") for name, value in headers.items())


def own_token(args: argparse.Namespace) -> str:
    """The token that was given, else the one of the pod we run in, else none. Raises PageError."""
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
    except OSError as error:  # ssl.SSLError is one
        why = error.strerror or error
        raise PageError(f"cannot use --ca-file {args.ca_file}: {why}") from error
