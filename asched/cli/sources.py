"""Sources of pages: the leading replica or a named server."""

import argparse
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

import orjson

from asched.cli.arguments import plain
from asched.cli.pages import NamedServer, PageError, add_server_flags, add_token_flags
from asched.cli.reach import Leader, add_cluster_flags
from asched.kube.errors import api_error
from asched.kube.transport import Reply

#: Raised by code that reads an object with missing or unexpected fields.
SENSELESS: Final = (AttributeError, LookupError, TypeError, ValueError)
HOW: Final = """\
Asks the leading replica through the API server of the current context, with your own
credentials; nothing is stored. deploy/components/explain grants the rights.

--server asks a process directly and needs --token or --token-file of a user who may get the
nonResourceURLs /ui/ and /debug/asched/*. Add --ca-file or --insecure-skip-tls-verify, since the
scheduler's certificate is self-signed by default.
"""


class ClusterSource(Protocol):
    #: The namespace of names without one.
    namespace: str

    async def page(self, path: str) -> Reply:
        """Raises PageError without an answer."""

    async def close(self) -> None: ...


def add_page_parser(subparsers: Any, name: str, text: str, about: str | None = None) -> Any:
    """The parser of a command that reads pages; `text` is its summary."""
    return subparsers.add_parser(
        name,
        help=text,
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=HOW,
    )


def add_source_flags(parser: argparse.ArgumentParser) -> None:
    add_cluster_flags(parser)
    add_server_flags(parser)
    add_token_flags(parser)


@asynccontextmanager
async def opened(args: argparse.Namespace) -> AsyncIterator[ClusterSource]:
    """The source that the flags name. Raises PageError."""
    source: ClusterSource
    if args.server:
        source = NamedServer(args)
    else:
        source = leader = await Leader.open(args)
        if leader.pages:
            args.server = leader.pages
            await leader.close()
            source = NamedServer(args)
    try:
        yield source
    finally:
        await source.close()


def read_page(reply: Reply, what: str, show: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """The object of a page. Raises PageError for every other answer, and if `show` fails."""
    if reply.status in (401, 403):
        raise PageError(
            f"the scheduler denies access to the {what}; give the --token of a user who may get"
            " the nonResourceURLs /ui/ and /debug/asched/*"
        )
    if reply.status == 404:
        raise PageError(f"the scheduler has no {what}; it is older than this command")
    if reply.status != 200:
        said = plain(api_error(reply.status, reply.body).message[:200])
        raise PageError(f"the scheduler answered {reply.status}: {said}")
    try:
        found = orjson.loads(reply.body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        start = reply.body[:200].decode(errors="replace")
        raise PageError(f"the server is not asched; its answer starts with {start!r}")
    try:
        show(found)
    except SENSELESS as error:
        raise PageError(
            f"cannot read the {what}; the server has another version, or is not asched: {error!r}"
        ) from error
    return found
