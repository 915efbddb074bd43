"""`asched ui`: show the live view in a browser, with your own credentials.

Serves the scheduler's page /ui/ on this machine at a secret address, and forwards the page's
requests, until Ctrl-C.

Exit status: 0 after Ctrl-C; 1 no answer, no permission, or the port is in use; 2 wrong usage.
"""

import argparse
import asyncio
import sys
import webbrowser
from typing import Any

from asched.cli.arguments import port
from asched.cli.forwarder import Forwarder
from asched.cli.pages import PageError
from asched.cli.sources import HOW, add_source_flags, open_source
from asched.host.ending import stop_on_signals
from asched.host.process import runner


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "ui",
        help="show the live view in a browser",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=HOW,
    )
    add = parser.add_argument
    add(
        "--port", type=port, default=0, metavar="N", help="port to serve on; default: any free port"
    )
    add("--open", action="store_true", help="open the address in a browser")
    add_source_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    try:
        return runner()(_ui(args))
    except PageError as error:
        sys.stderr.write(f"asched ui: {error}\n")
        return 1


async def _ui(args: argparse.Namespace) -> int:
    ended = asyncio.Event()
    stop_on_signals(ended.set)
    source = await open_source(args)
    forwarder = Forwarder(source)
    try:
        await forwarder.check()
        url = await forwarder.start(args.port)
        print(f"the live view is at {url} until Ctrl-C", flush=True)
        if args.open:
            await asyncio.to_thread(webbrowser.open, url)
        await ended.wait()
    finally:
        await forwarder.close()
        await source.close()
    return 0
