"""`asched top`: show waiting pods with reasons, rates, and the scarcest resources of nodes.

On a terminal the view is redrawn every --every seconds until q or Ctrl-C; elsewhere one text
follows the other. --once prints it once, for people (-o text, wide) or programs (-o json, yaml).
--web serves it as a page for a browser on this machine, at a secret address, until Ctrl-C.

Exit status: 0, also after q or Ctrl-C; 1 no answer, no permission, or the port is in use; 2 wrong
usage.
"""

import argparse
import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from asched.cli.arguments import port
from asched.cli.output import add_output_flag, written
from asched.cli.pages import PageError
from asched.cli.sources import HOW, ClusterSource, add_source_flags, open_source, read_page
from asched.cli.top_text import screen
from asched.host.process import runner

VIEW: Final = "/debug/asched/view"
EVERY_S: Final = 2.0
#: The rows of a terminal that does not report its size.
ROWS: Final = 24


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "top",
        help="show queues, rates, reasons of waiting pods, and nodes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=HOW,
    )
    add_output_flag(parser, "every reason and the fullest 100 nodes")
    add = parser.add_mutually_exclusive_group().add_argument
    add("--once", action="store_true", help="print the view once and exit")
    add("--web", action="store_true", help="show the view in a browser")
    parser.add_argument(
        "--every",
        type=_seconds,
        default=EVERY_S,
        metavar="S",
        help="seconds between updates (default %(default)s)",
    )
    parser.add_argument(
        "--port", type=port, metavar="N", help="port of --web; default: any free port"
    )
    parser.add_argument(
        "--open", action="store_true", help="with --web: open the address in a browser"
    )
    add_source_flags(parser)
    parser.set_defaults(run=run)


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0.5 <= found <= 3600:
        shown = repr(text[:40])
        raise argparse.ArgumentTypeError(f"{shown} is not a number of seconds from 0.5 to 3600")
    return found


def run(args: argparse.Namespace) -> int:
    """Read and print, or serve, until interrupted."""
    if not args.web and (args.open or args.port is not None):
        sys.stderr.write("asched top: --port and --open need --web\n")
        return 2
    try:
        if args.web:
            from asched.cli.top_web import serve  # aiohttp, for this flag only

            return runner()(serve(args))
        return runner()(_top(args))
    except PageError as error:
        sys.stderr.write(f"asched top: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 0


async def _top(args: argparse.Namespace) -> int:
    source = await open_source(args)
    try:
        if args.once:
            print(printed(await _view(source), args.output), end="", flush=True)
        elif args.output in ("text", "wide") and _is_terminal():
            await _live(args, source)
        else:
            async for view, error_text in _views(args, source):
                if error_text:
                    print(f"asched top: {error_text}", file=sys.stderr, flush=True)
                else:
                    print(printed(view, args.output), flush=True)
    finally:
        await source.close()
    return 0


async def _view(source: ClusterSource) -> dict[str, Any]:
    return read_page(await source.page(VIEW), "live view", lambda view: printed(view, "wide"))


async def _views(
    args: argparse.Namespace, source: ClusterSource
) -> AsyncIterator[tuple[dict[str, Any], str]]:
    """(last view, why it could not be updated). Raises PageError if the first read fails."""
    view = await _view(source)
    error_text = ""
    while True:
        yield view, error_text
        await asyncio.sleep(args.every)
        try:
            view, error_text = await _view(source), ""
        except PageError as error:
            error_text = str(error)


def printed(view: dict[str, Any], output: str) -> str:
    """A view in a form of `OUTPUTS`."""
    if output in ("json", "yaml"):
        return written(view, output)
    return "\n".join(screen(view, is_wide=output == "wide")) + "\n"


# --- a terminal ----------------------------------------------------------------------------------


def _is_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


async def _live(args: argparse.Namespace, source: ClusterSource) -> None:
    """Draw on the alternate screen, so that the terminal is restored at the end."""
    ended = asyncio.Event()
    with _keys(ended), _other_screen():
        drawing = asyncio.ensure_future(_draw(args, source))
        waiting = asyncio.ensure_future(ended.wait())
        try:
            await asyncio.wait((drawing, waiting), return_when=asyncio.FIRST_COMPLETED)
            if drawing.done():
                drawing.result()
        finally:
            drawing.cancel()
            waiting.cancel()
            await asyncio.gather(drawing, waiting, return_exceptions=True)


async def _draw(args: argparse.Namespace, source: ClusterSource) -> None:
    async for view, error_text in _views(args, source):
        _paint(args, view, error_text)


def _paint(args: argparse.Namespace, view: dict[str, Any], error_text: str) -> None:
    """Draw the whole view at once, cut to the terminal, without scrolling or flicker."""
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
        columns, rows = size.columns or 80, size.lines or ROWS
    except OSError:
        columns, rows = 80, ROWS
    last = f"{error_text}; retrying" if error_text else f"every {args.every:g} s; q ends"
    lines = [*screen(view, is_wide=args.output == "wide", columns=columns)][: rows - 1]
    lines += [""] * (rows - 1 - len(lines)) + [last]
    drawn = "\n".join(f"{line[:columns]}\x1b[K" for line in lines)
    sys.stdout.write(f"\x1b[H{drawn}")
    sys.stdout.flush()


@contextlib.contextmanager
def _other_screen() -> Iterator[None]:
    sys.stdout.write("\x1b[?1049h\x1b[?25l\x1b[2J")
    try:
        yield
    finally:
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()


@contextlib.contextmanager
def _keys(ended: asyncio.Event) -> Iterator[None]:
    """End on q, Escape and Ctrl-C; other keys are not echoed."""
    if not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)

    def typed() -> None:
        if set(os.read(number, 64)) & set(b"qQ\x03\x1b\x04"):
            ended.set()

    tty.setcbreak(number)
    loop = asyncio.get_running_loop()
    loop.add_reader(number, typed)
    try:
        yield
    finally:
        loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)
