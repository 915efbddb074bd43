"""`asched version`: print the versions of this command, the running scheduler and the API server.

The scheduler also says which minor version of Kubernetes it decides as. A version that cannot be
read is one line with the reason.

Exit status: 0, also where a server is not reachable; 2 wrong usage.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable
from typing import Any

from asched.cli.arguments import add_output_flag, plain, written
from asched.cli.commands import COMMANDS, installed_version
from asched.cli.pages import PageError
from asched.cli.reach import REQUEST_S
from asched.cli.sources import add_page_parser, add_source_flags, opened, read_page
from asched.cli.top import VIEW
from asched.host.event_loop import run_on_loop
from asched.kube.errors import ClientError
from asched.kube.session import ConnectionOptions, fetch_version


def add_parser(subparsers: Any) -> None:
    parser = add_page_parser(subparsers, "version", COMMANDS["version"], __doc__)
    add_output_flag(parser)
    add_source_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    return run_on_loop(_print(args))


async def _print(args: argparse.Namespace) -> int:
    scheduler, server = await asyncio.gather(_answer(_scheduler(args)), _answer(_api_server(args)))
    versions = {
        "client": {"version": installed_version()},
        "scheduler": scheduler,
        "apiServer": server,
    }
    if args.output in ("json", "yaml"):
        sys.stdout.write(written(versions, args.output))
        return 0
    for name, found in versions.items():
        text = found.get("version") or f"unknown: {found['error']}"
        if "rules" in found:
            text += f", decides as Kubernetes {found['rules']}"
        print(f"{name:9}  {plain(text)}")
    return 0


async def _answer(versions: Awaitable[dict[str, str]]) -> dict[str, str]:
    try:
        return await versions
    except (ClientError, PageError) as error:
        return {"error": " ".join(str(error).split())}


async def _scheduler(args: argparse.Namespace) -> dict[str, str]:
    """The version of the leading replica or of `--server`, and whose rules it follows. Raises
    PageError.
    """
    async with opened(args) as source:
        view = read_page(await source.page(VIEW), "live view", lambda view: view["version"])
    return {name: str(view[name]) for name in ("version", "rules") if name in view}


async def _api_server(args: argparse.Namespace) -> dict[str, str]:
    """The version of the context's API server. Raises ClientError."""
    options = ConnectionOptions(kubeconfig=args.kubeconfig, context=args.context)
    return {"version": await fetch_version(options, REQUEST_S)}
