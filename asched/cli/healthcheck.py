"""`asched healthcheck`: check the health of the scheduler on this host, for Docker's HEALTHCHECK.

Exit status: 0 healthy; 1 unhealthy or no answer.
"""

import argparse
import asyncio
import sys
from typing import Any, Final

from asched.cli.arguments import fail
from asched.cli.pages import NamedServer, PageError, add_server_flags
from asched.kube.transport import Reply

SERVER: Final = "https://localhost:10259"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "healthcheck", help="check the health of the scheduler on this host", description=__doc__
    )
    add_server_flags(parser, SERVER)
    parser.add_argument("--path", default="/healthz", help="/healthz (default), /livez or /readyz")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        reply = asyncio.run(_asked(args))
    except PageError as error:
        return fail("healthcheck", error, 1)
    text = reply.body.decode(errors="replace").strip()
    sys.stdout.write(f"{text or reply.status}\n")
    return 0 if reply.status == 200 else 1


async def _asked(args: argparse.Namespace) -> Reply:
    server = NamedServer(args)
    try:
        return await server.page(args.path)
    finally:
        await server.close()
