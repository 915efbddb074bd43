"""`asched top`: show waiting pods with reasons, rates, and the scarcest resources of nodes.

Prints the view once, for people (-o text, wide) or programs (-o json, yaml); `watch asched top`
repeats it. --web serves it as a page for a browser on this machine, at a secret address, which
follows the scheduler until Ctrl-C.

Exit status: 0, also after Ctrl-C; 1 no answer, no permission, or the port is in use; 2 wrong usage.
"""

import argparse
import asyncio
import webbrowser
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any, Final

from asched.cli.arguments import add_output_flag, fail, plain, port, written
from asched.cli.commands import COMMANDS
from asched.cli.pages import PageError
from asched.cli.sources import add_page_parser, add_source_flags, opened, read_page
from asched.host.ending import stop_on_signals
from asched.host.event_loop import run_on_loop

REASONS: Final = 8
VERDICTS: Final = 3
GANGS: Final = 5
NODES: Final = 8
NODES_WIDE: Final = 100
RECENT_WIDE: Final = 30
CORDONED: Final = 1


def screen(view: Mapping[str, Any], *, is_wide: bool = False) -> Iterator[str]:
    for line in _lines(view, is_wide=is_wide):
        yield plain(line).replace("\n", "?")


def _lines(view: Mapping[str, Any], *, is_wide: bool) -> Iterator[str]:
    nodes, queues = view["nodes"], view["queues"]
    role = "leads" if view["leads"] else "is standby"
    role = role if view["synced"] else "is reading the cluster"
    at = datetime.fromtimestamp(view["at"], UTC).strftime("%H:%M:%SZ")
    yield (
        f"{', '.join(view['profiles'])} {role}   {nodes['count']} nodes   {view['pods']} pods,"
        f" {view['placed']} on nodes   {at}"
    )
    yield (
        f"active {queues['active']}   backoff {queues['backoff']}"
        f"   unschedulable {queues['unschedulable']}   gated {queues['gated']}"
        f"   being bound {queues['binding']}"
    )
    yield from _series(view["series"])
    yield ""
    yield from _waiting(view["waiting"], is_wide=is_wide)
    yield from _gangs(view["gangs"], is_wide=is_wide)
    yield from _pools(view.get("pools", ()))
    yield ""
    yield from _nodes(nodes, is_wide=is_wide)
    if is_wide and view["recent"]:
        yield ""
        yield "LAST DECISIONS"
        for line in view["recent"][:RECENT_WIDE]:
            when = datetime.fromtimestamp(line["at"], UTC).strftime("%H:%M:%SZ")
            where = f" to {line['node']}" if "node" in line else ""
            yield f"  {when}  {line['pod']} {line['what']}{where}"


def _series(series: Mapping[str, Sequence[float | None]]) -> Iterator[str]:
    """The last value and the maximum of each series."""

    def last(name: str) -> float | None:
        return next((value for value in reversed(series[name]) if value is not None), None)

    def most(name: str) -> float | None:
        return max((value for value in series[name] if value is not None), default=None)

    if not series["seq"]:
        return
    yield (
        f"bound {_rate(last('bound'))}   no node {_rate(last('refused'))}"
        f"   error {_rate(last('failed'))}   (at most {_rate(most('bound'))},"
        f" {_rate(most('refused'))}, {_rate(most('failed'))})"
    )
    yield (
        f"first attempt to bound: 50 % within {_duration(last('waitP50'))},"
        f" 99 % within {_duration(last('waitP99'))}   (at most {_duration(most('waitP50'))},"
        f" {_duration(most('waitP99'))})"
    )


def _waiting(waiting: Mapping[str, Any], *, is_wide: bool) -> Iterator[str]:
    if not waiting["pods"]:
        yield "no pod is waiting"
        return
    yield f"{'PODS':>7}  {'OLDEST':>7}  WHY"
    groups = waiting["groups"]
    shown = groups if is_wide else groups[:REASONS]
    for group in shown:
        reasons = group["reasons"] if is_wide else group["reasons"][:VERDICTS]
        left = len(group["reasons"]) - len(reasons) + group["otherReasons"]
        first, *further = map(_reason, reasons)
        yield f"{group['pods']:7d}  {_duration(group['oldestSeconds']):>7}  {first}"
        yield from (f"{'':18}{text}" for text in further)
        more = f"{left} more reasons; " if left else ""
        yield f"{'':18}{more}such as {', '.join(group['examples'][: 10 if is_wide else 1])}"
    hidden = len(groups) - len(shown) + waiting["otherGroups"]
    if hidden:
        pods = waiting["pods"] - sum(group["pods"] for group in shown)
        yield f"{pods:7d}  {'':7}  {hidden} other reasons"


def _reason(reason: Mapping[str, Any]) -> str:
    said = f"{reason['plugin']}: {reason['reason']}" if reason["plugin"] else reason["reason"]
    return said + (f" ({reason['nodes']})" if reason["nodes"] else "")


def _gangs(gangs: Mapping[str, Any], *, is_wide: bool) -> Iterator[str]:
    if not gangs["gangs"]:
        return
    yield ""
    yield f"{'PLACED':>7}  {'NEEDS':>5}  WAITING GANG"
    shown = gangs["gangs"] if is_wide else gangs["gangs"][:GANGS]
    for gang in shown:
        total = gang["placed"] + gang["unplaced"]
        needs = gang["minCount"] or ""
        yield f"{gang['placed']:3d}/{total:<3d}  {needs:>5}  {gang['group']}"
    if gangs["count"] > len(shown):
        yield f"{'':16}{gangs['count'] - len(shown)} more"


def _pools(pools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Pods that wait in each pool, those with rules that reach across pools, and how long no
    replica decided for the pool before it was taken.
    """
    if not pools:
        return
    yield ""
    width = max(len(pool["name"]) for pool in pools)
    yield f"{'WAITING':>7}  {'STOPPED':>7}  {'GAP':>7}  {'POOL':{width}}  HELD BY"
    for pool in pools:
        name = pool["name"] or "several"
        gap = _duration(pool.get("gapSeconds"))
        counts = f"{pool['waiting']:7d}  {pool['stopped']:7d}  {gap:>7}"
        yield f"{counts}  {name:{width}}  {pool['holder']}".rstrip()


def _nodes(nodes: Mapping[str, Any], *, is_wide: bool) -> Iterator[str]:
    """The number of nodes by scarcest resource, then the fullest nodes."""
    names, shares = nodes["names"], nodes["share"]
    if not names:
        yield "no nodes"
        return
    scarce = [nodes["resources"][at] for at in nodes["scarce"]]
    counts = ", ".join(f"{name} on {count}" for name, count in Counter(scarce).most_common())
    yield f"scarcest resource of nodes: {counts}"
    full = sum(share >= 90 for share in shares)
    kept = sum(flags != 0 for flags in nodes["flags"])
    yield f"90 % or more of it in use: {full}   cordoned or tainted: {kept}"
    yield f"{'IN USE':>7}  {'SCARCE':20}  FULLEST NODES"
    fullest = sorted(range(len(names)), key=lambda at: (-shares[at], names[at]))
    for at in fullest[: NODES_WIDE if is_wide else NODES]:
        flags = nodes["flags"][at]
        note = "  cordoned" if flags & CORDONED else "  tainted" if flags else ""
        yield f"{shares[at]:5d} %  {scarce[at]:20}  {names[at]}{note}"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}/s" if value >= 10 else f"{value:.2g}/s"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.0f} h"


VIEW: Final = "/debug/asched/view"


def add_parser(subparsers: Any) -> None:
    parser = add_page_parser(subparsers, "top", COMMANDS["top"], __doc__)
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
        return fail("top", "--port and --open need --web", 2)
    if args.web and find_spec("aiohttp") is None:
        return fail("top", "--web needs the whole of asched: pip install asched", 2)
    try:
        return run_on_loop(_serve(args) if args.web else _print(args))
    except PageError as error:
        return fail("top", error, 1)
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
