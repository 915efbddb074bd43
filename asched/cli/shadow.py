"""`asched shadow`: compare the decisions of another scheduler with asched's.

`asched shadow run --shadow=NAME` runs a shadow of the scheduler NAME, with the flags of `asched
run`; it places no pods. `asched shadow report` prints the report of a running shadow.

Exit status: 0; 1 no answer, no permission, or no shadow running; 2 wrong usage. run: as `asched
run`.
"""

import argparse
import sys
from typing import Any, Final

from asched.cli.arguments import add_output_flag, fail, written
from asched.cli.commands import COMMANDS
from asched.cli.pages import PageError
from asched.cli.sources import add_page_parser, add_source_flags, opened, read_page
from asched.host.event_loop import run_on_loop
from asched.insight.shadow.finding import text

PAGE: Final = "/debug/asched/shadow"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "shadow",
        help=COMMANDS["shadow"],
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("run", help="run a shadow (flags: asched shadow run --help)")
    report = add_page_parser(actions, "report", "print the report of a running shadow")
    add_output_flag(report, "all stored examples")
    add_source_flags(report)
    report.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        report = run_on_loop(_report(args))
    except PageError as error:
        return fail("shadow report", error, 1)
    if args.output in ("text", "wide"):
        sys.stdout.write(text(report, is_wide=args.output == "wide"))
    else:
        sys.stdout.write(written(report, args.output))
    return 0


async def _report(args: argparse.Namespace) -> dict[str, Any]:
    async with opened(args) as source:
        reply = await source.page(PAGE)
    if reply.status == 404:
        raise PageError(
            "the process is not a shadow: start it with asched shadow run --shadow=NAME"
        )
    return read_page(reply, "shadow report", lambda report: text(report, is_wide=True))
