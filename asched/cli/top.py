"""`asched top`: show waiting pods with reasons, rates, and the scarcest resources of nodes.

Prints the view once, for people (-o text, wide) or programs (-o json, yaml); `watch asched top`
repeats it. --web serves it as a page for a browser on this machine, at a secret address, which
follows the scheduler until Ctrl-C.

Exit status: 0, also after Ctrl-C; 1 no answer, no permission, or the port is in use; 2 wrong usage.
"""

import argparse
import asyncio
import sys
import webbrowser
from typing import Any, Final

from asched.cli.arguments import port
from asched.cli.output import add_output_flag, written
from asched.cli.pages import PageError
from asched.cli.sources import HOW, add_source_flags, opened, read_page
from asched.cli.top_text import screen
from asched.host.ending import stop_on_signals
from asched.host.process import run_on_loop

VIEW: Final = "/debug/asched/view"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "top",
        help="show queues, rates, reasons of waiting pods, and nodes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=HOW,
    )
    add_output_flag(parser, "every reason and the fullest 100 nodes")
    parser.add_argument("--web", action="store_true", help="show the view in a browser")
    parser.add_argument(
        "--port", type=port, metavar="N", help="port of --web; default: any free port"
    )
    parser.add_argument(
        "--open", action="store_true", help="with --web: open the address in a browser"
    )
    add_source_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print once, or serve until interrupted."""
    if not args.web and (args.open or args.port is not None):
        sys.stderr.write("asched top: --port and --open need --web\n")
        return 2
    try:
        return run_on_loop(_serve(args) if args.web else _print(args))
    except PageError as error:
        sys.stderr.write(f"asched top: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 0


async def _print(args: argparse.Namespace) -> int:
    async with opened(args) as source:
        reply = await source.page(VIEW)
    view = read_page(reply, "live view", lambda view: printed(view, "wide"))
    print(printed(view, args.output), end="", flush=True)
    return 0


def printed(view: dict[str, Any], output: str) -> str:
    """A view in a form of `OUTPUTS`."""
    if output in ("json", "yaml"):
        return written(view, output)
    return "\n".join(screen(view, is_wide=output == "wide")) + "\n"


async def _serve(args: argparse.Namespace) -> int:
    """Serve the scheduler's page /ui/ and what it requests."""
    from asched.cli.forwarder import Forwarder  # aiohttp, needed here only

    ended = asyncio.Event()
    stop_on_signals(ended.set)
    async with opened(args) as source:
        forwarder = Forwarder(source)
        try:
            await forwarder.check()
            url = await forwarder.start(args.port or 0)
            print(f"the live view is at {url} until Ctrl-C", flush=True)
            if args.open:
                await asyncio.to_thread(webbrowser.open, url)
            await ended.wait()
        finally:
            await forwarder.close()
    return 0
