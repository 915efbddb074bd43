"""`asched drain NODE`: move the pods of a node away, each after a place is held for its successor.

  kubectl asched drain n1 --dry-run    show where each pod would go; nothing is changed
  kubectl asched drain n1              cordon n1, move its pods, and wait until they have left

The scheduler moves the pods (plugin Rebalance): through the Eviction API, so within disruption
budgets, and within the limits of the plugin. Nothing is changed if a pod cannot move or finds no
place, unless --partial is given. Pods of DaemonSets and static pods stay, as with kubectl drain; so
do pods that have ended. Pods without a controller, of other schedulers, and with hostPath volumes
cannot move: kubectl drain deletes such pods.

The node stays cordoned afterwards. If the command is interrupted, no further pod is moved; pods
that were evicted are scheduled as usual. You need the right to get and patch nodes.

Exit status: 0 all pods have left that can move, or with --dry-run can; 1 a pod cannot move or finds
no place, the time is over, or no permission; 2 wrong usage; 130 interrupted.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, Final

import orjson

from asched.cli.arguments import add_output_flag, counted, fail, plain, whole, written
from asched.cli.commands import COMMANDS
from asched.cli.pages import PageError, quoted
from asched.cli.sources import ClusterSource, add_page_parser, add_source_flags, opened, read_page
from asched.host.event_loop import run_on_loop
from asched.kube.errors import ApiError, ClientError
from asched.kube.session import ConnectionOptions, Session, connect, read_json
from asched.names import DRAIN_TAINT

PATH: Final = "/debug/asched/nodes/{}/drain"
MERGE: Final = "application/merge-patch+json"
#: A request ends that long after it was last renewed: if this command dies, the drain ends, too.
REQUEST_S: Final = 120
RENEW_S: Final = 40.0
POLL_S: Final = 2.0
TIMEOUT_S_MAX: Final = 7 * 86_400
CONFLICT: Final = 409
TRIES: Final = 5
#: What the page says of pods (`batch/rebalance/draining.py`).
STAYS, MOVES, WAITS = "stays", "moves", "waits"


def add_parser(subparsers: Any) -> None:
    parser = add_page_parser(subparsers, "drain", COMMANDS["drain"], __doc__)
    parser.add_argument("node", metavar="NODE")
    parser.add_argument("--dry-run", action="store_true", help="show where each pod would go")
    parser.add_argument(
        "--partial", action="store_true", help="move the pods that can; others stay on the node"
    )
    parser.add_argument(
        "--delete-emptydir-data",
        action="store_true",
        help="also pods with emptyDir volumes, whose data is deleted",
    )
    parser.add_argument(
        "--timeout",
        type=whole(0, TIMEOUT_S_MAX),
        default=0,
        metavar="SECONDS",
        help="how long to wait for all pods to leave; 0: without limit (default %(default)s)",
    )
    add_output_flag(parser)
    add_source_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        return run_on_loop(_run(args))
    except (PageError, ClientError) as error:
        return fail("drain", plain(str(error)), 1)


async def _run(args: argparse.Namespace) -> int:
    async with opened(args) as source:
        page = await _read(source, args)
        if page["requested"] and not args.dry_run:
            _say(f"node {args.node} is being drained already; this command joins")
        else:
            sys.stdout.write(printed(page, args.output))
        if page["why"] and not (args.dry_run and page["pods"]):
            raise PageError(page["why"])
        stuck = _stuck(page)
        if args.dry_run:
            return int(bool(stuck))
        if stuck and not args.partial:
            what = counted(len(stuck), "pod")
            raise PageError(
                f"nothing was changed, because {what} cannot move (--partial moves the others)"
            )
        if not any(pod["fate"] in (MOVES, WAITS) for pod in page["pods"]) and stuck:
            raise PageError("no pod can move; nothing was changed")
        options = ConnectionOptions(kubeconfig=args.kubeconfig, context=args.context)
        session = await connect(options, handshake=False)
        try:
            return await Drain(args, source, session).run(page)
        finally:
            await session.close()


class Drain:
    """Asks for the drain of a node, and waits for its end."""

    def __init__(self, args: argparse.Namespace, source: ClusterSource, session: Session) -> None:
        self._args, self._source, self._session = args, source, session
        self._path = f"/api/v1/nodes/{quoted(args.node)}"
        self._renewed_s = float("-inf")

    async def run(self, page: dict[str, Any]) -> int:
        """Wait until the pods have left. Raises PageError, ClientError."""
        args, began_s = self._args, monotonic()
        on_node = _names(page)
        try:
            while True:
                await self._renew(page)
                await asyncio.sleep(POLL_S)
                page = await self._page(page)
                for name in sorted(on_node - _names(page)):
                    _say(f"{name} has left the node")
                on_node = _names(page)
                remaining = [p for p in page["pods"] if p["fate"] in (MOVES, WAITS)]
                stuck = _stuck(page)
                is_over = page["requested"] and not remaining
                if is_over and (args.partial or not stuck):
                    break
                if args.timeout and monotonic() - began_s >= args.timeout:
                    sys.stderr.writelines(f"{line}\n" for line in lines_of([*remaining, *stuck]))
                    pods = counted(len(remaining) + len(stuck), "pod")
                    raise PageError(f"{pods} did not leave within {args.timeout} s")
        finally:
            with suppress(ClientError, PageError):  # the request ends without it, too
                await self._patch(None)
        more = f"; {counted(len(stuck), 'pod')} cannot move" if stuck else ""
        print(f"node {args.node} is cordoned, and drained{more}")
        return 0

    async def _page(self, last: dict[str, Any]) -> dict[str, Any]:
        """The page; the last one while no replica leads, or none answers."""
        try:
            page = await _read(self._source, self._args)
        except PageError as error:
            _say(str(error))
            return {**last, "requested": False}
        if page["why"]:
            raise PageError(page["why"])
        return page

    async def _renew(self, page: Mapping[str, Any]) -> None:
        """Raises PageError, ClientError, if the first request cannot be written."""
        if monotonic() - self._renewed_s < RENEW_S:
            return
        deletes = ".delete-emptydir-data" if self._args.delete_emptydir_data else ""
        try:
            await self._patch(f"{int(page['now']) + REQUEST_S}{deletes}")
        except (PageError, ClientError) as error:
            if self._renewed_s < 0:
                raise
            _say(str(error))
        else:
            self._renewed_s = monotonic()

    async def _patch(self, value: str | None) -> None:
        """Cordon the node and set the taint, or remove the taint."""
        for _ in range(TRIES):
            reply = await self._session.general.request("GET", self._path)
            node = read_json(reply)
            taints = [t for t in node["spec"].get("taints") or () if t["key"] != DRAIN_TAINT]
            if value is not None:
                taints.append({"key": DRAIN_TAINT, "value": value, "effect": "PreferNoSchedule"})
            spec: dict[str, Any] = {"taints": taints or None}
            if value is not None:
                spec["unschedulable"] = True
            version = node["metadata"]["resourceVersion"]
            body = orjson.dumps({"metadata": {"resourceVersion": version}, "spec": spec})
            reply = await self._session.general.request(
                "PATCH", self._path, body, content_type=MERGE
            )
            try:
                read_json(reply)
            except ApiError as error:
                if error.code == CONFLICT:
                    continue
                raise PageError(f"cannot change node {self._args.node}: {error.message}") from error
            return
        raise PageError(f"node {self._args.node} changes too often to be changed")


async def _read(source: ClusterSource, args: argparse.Namespace) -> dict[str, Any]:
    path = PATH.format(quoted(args.node))
    if args.delete_emptydir_data:
        path += "?deleteEmptydirData=yes"
    reply = await source.page(path)
    if reply.status == 404:
        raise PageError(f"the scheduler does not know node {args.node}, or cannot drain nodes")
    return read_page(reply, "drain", lambda page: printed(page, "text"))


def _names(page: Mapping[str, Any]) -> set[str]:
    return {pod["pod"] for pod in page["pods"]}


def _stuck(page: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [pod for pod in page["pods"] if pod["fate"] not in (STAYS, MOVES, WAITS)]


def lines_of(pods: list[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each pod: what becomes of it, and why."""
    width = max((len(pod["pod"]) for pod in pods), default=0)
    for pod in pods:
        where = f"to {pod['node']}" if pod["node"] else pod["fate"]
        why = f"  {pod['why']}" if pod["why"] else ""
        yield plain(f"{pod['pod']:{width}}  {where}{why}").replace("\n", "?")


def printed(page: Mapping[str, Any], output: str) -> str:
    """A page in a form of `OUTPUTS`."""
    if output in ("json", "yaml"):
        return written(page, output)
    pods = page["pods"]
    counts = {fate: sum(pod["fate"] == fate for pod in pods) for fate in (STAYS, MOVES, WAITS)}
    stuck = len(pods) - sum(counts.values())
    moving = counts[MOVES] + counts[WAITS]
    total = f"{counted(moving, 'pod')} can move, {stuck} cannot, {counts[STAYS]} stay on the node"
    return "\n".join([*lines_of(pods), total, ""])


def _say(line: str) -> None:
    sys.stderr.write(f"asched drain: {plain(line)}\n")
