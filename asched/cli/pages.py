"""Asking a running scheduler for a page, for commands that show one.

The serving certificate of a scheduler is its own unless one was given, so a server on this host is
believed without proof; any other needs `--ca-file`, or `--insecure-skip-tls-verify`.
"""

import argparse
import ssl
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

SERVER: Final = "https://localhost:10259"
LOCAL: Final = ("localhost", "127.0.0.1", "::1")
TIMEOUT_S: Final = 10.0
#: Where a pod finds the token of its service account.
OWN_TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105


class PageError(Exception):
    """The page cannot be had: one line that says why and what to do."""


def add_server_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that say which scheduler to ask, and as whom."""
    parser.add_argument("--server", default=SERVER, metavar="URL", help="default %(default)s")
    parser.add_argument("--token", default="", help="bearer token; kubectl create token makes one")
    parser.add_argument("--token-file", default="", metavar="FILE", help="file with the token")
    parser.add_argument("--ca-file", default="", metavar="FILE", help="CA of the server (PEM)")
    parser.add_argument(
        "--insecure-skip-tls-verify", action="store_true", help="believe any certificate"
    )


def fetch(args: argparse.Namespace, path: str) -> tuple[int, bytes]:
    """Status and body of a page. Raises PageError if nobody answers."""
    url = args.server.rstrip("/")
    if "://" not in url:
        url = f"https://{url}"
    request = Request(url + path)  # noqa: S310 - the user names the server
    token = _token(args)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=_tls(args, url)))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            return answer.status, answer.read()
    except HTTPError as error:
        return error.code, error.read()
    except (URLError, OSError, HTTPException, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise PageError(
            f"cannot reach {url}: {why}; is a scheduler serving there (--secure-port), and is the"
            " address right (--server)?"
        ) from error


def _token(args: argparse.Namespace) -> str:
    if args.token:
        return str(args.token)
    file = Path(args.token_file or OWN_TOKEN)
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        if args.token_file:
            raise PageError(f"cannot read --token-file {file}: {error.strerror}") from error
        return ""


def _tls(args: argparse.Namespace, url: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=args.ca_file or None)
    except OSError as error:
        raise PageError(f"cannot read --ca-file {args.ca_file}: {error.strerror}") from error
    is_local = urlsplit(url).hostname in LOCAL and not args.ca_file
    if is_local or args.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
