"""`asched top`: what waits and why, how fast it goes, and which nodes are short of what.

On a terminal it is drawn anew every --every seconds until q or Ctrl-C; elsewhere one text follows
the other. --once prints it once, for people (-o text, wide) or programs (-o json, yaml).

Exit status: 0, also after q or Ctrl-C; 1 if nobody answered or it may not be asked; 2 for usage.
"""

import argparse
import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from asched.cli.output import add_output_flag, written
from asched.cli.pages import PageError
from asched.cli.sources import HOW, ClusterSource, add_source_flags, open_source, told
from asched.cli.top_text import screen
from asched.host.process import runner

VIEW: Final = "/debug/asched/view"
EVERY_S: Final = 2.0
#: The rows of a terminal that does not tell.
ROWS: Final = 24


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "top",
        help="watch queues, rates, why pods wait, and nodes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=HOW,
    )
    add_output_flag(parser, "every reason and the fullest 100 nodes")
    parser.add_argument("--once", action="store_true", help="print it once and end")
    parser.add_argument(
        "--every", type=_seconds, default=EVERY_S, metavar="S", help="seconds (default %(default)s)"
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
        raise argparse.ArgumentTypeError(f"{shown} is no number of seconds from 0.5 to 3600")
    return found


def run(args: argparse.Namespace) -> int:
    """Ask and print until told to stop."""
    try:
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
            async for view, trouble in _views(args, source):
                if trouble:
                    print(f"asched top: {trouble}", file=sys.stderr, flush=True)
                else:
                    print(printed(view, args.output), flush=True)
    finally:
        await source.close()
    return 0


async def _view(source: ClusterSource) -> dict[str, Any]:
    return told(await source.page(VIEW), "live view", lambda view: printed(view, "wide"))


async def _views(
    args: argparse.Namespace, source: ClusterSource
) -> AsyncIterator[tuple[dict[str, Any], str]]:
    """(what was told last, why there is nothing newer). The first one has to come."""
    view = await _view(source)
    trouble = ""
    while True:
        yield view, trouble
        await asyncio.sleep(args.every)
        try:
            view, trouble = await _view(source), ""
        except PageError as error:
            trouble = str(error)


def printed(view: dict[str, Any], output: str) -> str:
    """A view as one of the outputs."""
    if output in ("json", "yaml"):
        return written(view, output)
    return "\n".join(screen(view, is_wide=output == "wide")) + "\n"


# --- a terminal ----------------------------------------------------------------------------------


def _is_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


async def _live(args: argparse.Namespace, source: ClusterSource) -> None:
    """Draw on the other screen of the terminal, which gives the first one back at the end."""
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
    async for view, trouble in _views(args, source):
        _paint(args, view, trouble)


def _paint(args: argparse.Namespace, view: dict[str, Any], trouble: str) -> None:
    """Everything at once, cut to the terminal, so that nothing scrolls and nothing flickers."""
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
        columns, rows = size.columns or 80, size.lines or ROWS
    except OSError:
        columns, rows = 80, ROWS
    last = f"{trouble}; trying again" if trouble else f"every {args.every:g} s; q ends"
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
    """q, Escape and Ctrl-C end it; what else is typed is not shown."""
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
