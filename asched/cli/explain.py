"""`asched explain NAMESPACE/POD`: why a pod is where it is, told by the scheduler that decides.
`asched explain podgroup/NAME` tells of a gang: what it lacks, what is held for it, and why the
first of its pods that no node takes is refused.

Exit status: 0 if it could be told, 1 if nobody answered, may be asked, or knows the pod; 2 for
usage.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from asched.cli.explain_group import PATH as GROUP_PATH
from asched.cli.explain_group import group_lines, group_name, start_lines
from asched.cli.output import add_output_flag, plain, written
from asched.cli.pages import PageError, fetch, own_token, quoted
from asched.cli.reach import leaders_page, named_pages
from asched.cli.sources import SENSELESS, add_source_flags
from asched.core.model.decode import MalformedError, parse
from asched.kube.errors import api_error

PATH: Final = "/debug/asched/pods/{}/{}"
HOW: Final = """\
Asks the replica that leads, through the API server of the current context and with your own
credentials; nothing is stored. deploy/components/explain grants the rights to whom you name there.
docs/operate.md has it step by step ("Ask why").

--server asks a process directly, and needs --token or --token-file of somebody who may get the
nonResourceURL /debug/asched/*; its own certificate proves nothing, so --ca-file or
--insecure-skip-tls-verify goes with it.
"""
#: Before a pod's name, as kubectl prints and takes it.
KINDS: Final = ("pod", "pods", "po")
#: What each page must have at least.
POD: Final = {"pod", "place", "story"}
GROUP: Final = {"group", "placed", "unplaced", "minCount", "lacks", "pods"}
#: Lines of the history that are shown unless all are asked for.
HISTORY_LINES: Final = 8
TAINTS_LINES: Final = 5
#: Nodes named behind a reason.
NAMED_MAX: Final = 3
#: Of the longest plugin's name.
NAME_WIDTH: Final = 32
#: Changes whose words name the node.
NAMING: Final = ("node", "label", "eviction")


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "explain",
        help="tell why a pod is where it is",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=HOW,
    )
    parser.add_argument("pod", metavar="[pod/|podgroup/][NAMESPACE/]NAME")
    parser.add_argument("-n", "--namespace", default="", help="default: the context's")
    add_output_flag(parser, "the whole history, and the scores of the best nodes")
    parser.add_argument("--against", default="", metavar="NODE", help="why not on that node")
    parser.add_argument("--all", dest="output", action="store_const", const="wide", help="-o wide")
    parser.add_argument("--json", dest="output", action="store_const", const="json", help="-o json")
    add_source_flags(parser)
    parser.set_defaults(run=run)


def _without_kind(asked: str) -> str:
    """As kubectl writes pods: pod/NAME."""
    kind, slash, rest = asked.partition("/")
    return rest if slash and kind.lower() in KINDS else asked


def run(args: argparse.Namespace) -> int:
    """Fetch the explanation and print it."""
    group = group_name(args.pod)
    namespace, slash, name = (group or _without_kind(args.pod)).rpartition("/")
    namespace = namespace if slash else args.namespace
    if not name or (slash and not namespace) or "/" in namespace:
        return _fail(f"{args.pod!r} is no pod; write POD or NAMESPACE/POD, or podgroup/NAME", 2)
    try:
        args.server = args.server or named_pages(args)
        if args.server:
            namespace = namespace or "default"
            where = quoted(namespace)
            status, body = fetch(args, _path(args, where, name), token=own_token(args))
        else:
            where = quoted(namespace) or "{namespace}"
            status, body = leaders_page(args, _path(args, where, name))
    except PageError as error:
        return _fail(str(error), 1)
    if status in (401, 403):
        return _fail(
            "the scheduler does not show this to you; give --token of somebody who may get the"
            " nonResourceURL /debug/asched/*",
            1,
        )
    if status == 404:
        what = f"{'podgroup' if group else 'pod'} {namespace and namespace + '/'}{name}"
        whose = "" if namespace else " in the namespace of your context"
        ask = ", and ask the replica that holds the lease" if args.server else ""
        return _fail(
            f"the scheduler knows nothing of {what}{whose}; check name and namespace{ask}", 1
        )
    if status != 200:
        said = api_error(status, body).message[:200]
        return _fail(f"the scheduler answered {status}: {said}", 1)
    try:
        told = parse(json.loads, body)
    except MalformedError:
        told = None
    if not isinstance(told, dict) or not (GROUP if group else POD) <= told.keys():
        start = body[:200].decode(errors="replace")
        where = args.server or "the port of the pod that leads"
        return _fail(f"what answers at {where} is no asched, it says {start!r}", 1)
    try:
        sys.stdout.write(printed(told, args.output))
    except SENSELESS as error:
        return _fail(f"what answers is of another version, or no asched: {error!r}", 1)
    return 0


def _path(args: argparse.Namespace, namespace: str, name: str) -> str:
    if group_name(args.pod):
        return GROUP_PATH.format(namespace, quoted(name))
    query = f"?against={quoted(args.against)}" if args.against else ""
    return PATH.format(namespace, quoted(name)) + query


def printed(told: Mapping[str, Any], output: str) -> str:
    """An explanation as one of `OUTPUTS`."""
    if output in ("json", "yaml"):
        return written(told, output)
    is_wide = output == "wide"
    if "story" in told:
        return plain("\n".join(_of_pod(told, is_wide=is_wide)) + "\n")
    lines = [*group_lines(told, is_wide=is_wide)]
    if told.get("rejectedPod"):
        lines += ["", *_of_pod(told["rejectedPod"], is_wide=is_wide)]
    return plain("\n".join(lines) + "\n")


def _of_pod(told: Mapping[str, Any], *, is_wide: bool) -> Iterator[str]:
    lines = len(told["story"]) if is_wide else HISTORY_LINES
    return explanation(told, lines, is_wide=is_wide)


def explanation(
    told: Mapping[str, Any], history_lines: int = HISTORY_LINES, *, is_wide: bool = False
) -> Iterator[str]:
    """The lines to print."""
    where = f" on {told['node']}" if told.get("node") else ""
    yield f"pod {told['pod']}: {told['place']}{where}"
    facts = [
        _attempts(told["attempts"]) if "attempts" in told else "",
        f"rejected by {', '.join(told['rejectedBy'])}" if told.get("rejectedBy") else "",
        f"held by {told['gatedBy']}" if told.get("gatedBy") else "",
        f"profile {told['schedulerName']}" if "schedulerName" in told else "",
        f"priority {told['priority']}" if "priority" in told else "",
        f"woken last by {told['wokenBy']}" if told.get("wokenBy") else "",
    ]
    yield "  " + ", ".join(filter(None, facts))
    if told.get("alike", 1) > 1:
        yield f"  {told['alike']} equal pods wait for the same thing"
    last = next((line for line in reversed(told["story"]) if "reasons" in line), None)
    if last is not None:
        yield ""
        yield f"last rejection, {_time(last['at'])}"
        yield from _reasons(last["reasons"])
    if "now" in told:
        yield ""
        yield from _now(told["now"])
        for one in told.get("missing", ()):
            most = f"{one['mostFree']} on {one['node']}"
            yield f"needs {one['asked']} {one['resource']}, the most that is free is {most}"
        for one in told.get("taints", ())[:TAINTS_LINES]:
            yield f"taint {one['taint']} on {_nodes(one['nodes'])} is not tolerated"
        for one in told.get("holds", ()):
            whose = "the pod's own " if one["own"] else ""
            where = f"{one['places']} places on {_nodes(one['nodes'])}"
            yield f"held for {whose}{one['owner']}: {where}, {one['seconds']} s more"
        for one in told.get("promised", ()):
            yield f"promised to {one['owner']} from {one['at']} on: room on {_nodes(one['nodes'])}"
    if told.get("start"):
        yield from start_lines(told["start"])
    yield from _changes(told)
    yield from _scores(told, is_wide=is_wide)
    if told["story"]:
        yield ""
        yield "story"
        for line in told["story"][-history_lines:]:
            yield f"  {_time(line['at'])}  #{line['attempt']}  {line['what']}{_details(line)}"


def _attempts(number: int) -> str:
    return "1 attempt" if number == 1 else f"{number} attempts"


def _nodes(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"


def _reasons(reasons: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in sorted(reasons, key=lambda one: -one["nodes"]):
        named = one.get("named", ())[:NAMED_MAX]
        which = f" ({', '.join(named)}{', ...' if len(named) < one['nodes'] else ''})"
        said = f"{one['plugin'] or 'PreFilter'}: {one['reason']}{which if named else ''}"
        yield f"  {one['nodes']:7d} {'node ' if one['nodes'] == 1 else 'nodes'}  {said}"


def _now(now: Mapping[str, Any]) -> Iterator[str]:
    if "error" in now:
        says = "the node says" if now["nodes"] == 1 else f"the {now['nodes']} nodes say"
        yield f"now: what {says} of it could not be told: {now['error']}"
        return
    if "preFilter" in now:
        yield f"now: {now['plugin']} rules out all {now['nodes']} nodes: {now['preFilter']}"
        return
    if not now["nodes"]:
        yield "now: the cluster has no nodes"
        return
    yield f"now: {now['feasible']} of {now['nodes']} nodes fit"
    width = max((len(step["plugin"]) for step in now["funnel"]), default=0)
    for step in now["funnel"]:
        stopped = step["of"] - step["left"]
        if stopped:
            yield f"  {step['plugin']:{width}}  stops {stopped:6d}, leaves {step['left']:6d}"
    if not now["feasible"] and now["nearestMisses"]:
        yield "nearest misses"
        for miss in now["nearestMisses"]:
            said = "; ".join(f"{one['plugin']}: {one['reason']}" for one in miss["objections"])
            yield f"  {miss['node']}: {said}{_exactly(miss)}"


def _exactly(miss: Mapping[str, Any]) -> str:
    """How much is missing, and which taints."""
    amounts = [
        f"{name}: {one['free']} free, {one['asked']} asked"
        for name, one in miss.get("missing", {}).items()
    ]
    found = "; ".join((*amounts, *miss.get("taints", ())))
    return f" ({found})" if found else ""


def _changes(told: Mapping[str, Any]) -> Iterator[str]:
    if "changes" not in told:
        return
    yield ""
    if not told["changes"]:
        yield "no single change of a known kind makes it fit"
        return
    together = told.get("together", 1)
    gang = f"and {together - 1} others of its gang " if together > 1 else ""
    yield f"any of these alone makes it {gang}fit"
    width = max(len(one["kind"]) for one in told["changes"])
    for one in told["changes"]:
        where = f"on {one['node'] if one['nodes'] == 1 else _nodes(one['nodes'])}"
        about = [] if one["kind"] in NAMING else [where]
        if "takes" in one:
            about.append(f"with it {one['takes']} of {one['of']} that wait")
        said = f"  ({', '.join(about)})" if about else ""
        yield f"  {one['kind']:{width}}  {one['text']}{said}"


def _scores(told: Mapping[str, Any], *, is_wide: bool) -> Iterator[str]:
    """The last choice among several nodes, plugin by plugin, and what spoke against another."""
    line = next((one for one in reversed(told["story"]) if one.get("scores")), None)
    against = told.get("against")
    if line is not None and (is_wide or against is not None):
        yield ""
        others = f"of the {line['feasible']} nodes that fit"
        lot = ", by lot among those with as many" if _was_drawn(line) else ""
        yield f"{line['node']} was chosen with {line['score']} points, {others}{lot}"
        yield f"  {'':{NAME_WIDTH}}  raw, normalized, weighted"
        yield from _points(line["scores"])
        for one in line.get("best", ()):
            if is_wide and one["node"] != line["node"]:
                yield f"  {one['node']} had {one['score']} points at attempt #{line['bestAsOf']}"
                yield from _points(one["scores"])
    if against is not None:
        yield ""
        if line is not None and against["node"] == line["node"]:
            yield f"{line['node']} is the node that was chosen; --against another one compares both"
            return
        yield from _then(against["node"], against.get("then") or {})
        said = against.get("refused")
        yield f"{against['node']} would {f'not take it now: {said}' if said else 'take it now'}"
        if {"score", "refused"} & (against.get("then") or {}).keys():
            return
        if against.get("scored"):
            assert line is not None
            yield f"  it had {against['scored']['score']} points at attempt #{line['bestAsOf']}"
            yield from _points(against["scored"]["scores"])
        elif "below" in against:
            yield f"  it was not among the best, the last of which had {against['below']} points"


def _was_drawn(line: Mapping[str, Any]) -> bool:
    """Whether another node is known to have had as many points at this very choice."""
    best = line.get("best", ()) if line.get("bestAsOf") == line["attempt"] else ()
    return any((one["node"] != line["node"]) & (one["score"] == line["score"]) for one in best)


def _then(node: str, then: Mapping[str, Any]) -> Iterator[str]:
    """What a node came to at the decision."""
    if "unknown" in then:
        yield f"what {node} came to at the decision is not known: {then['unknown']}"
        return
    if "refused" in then:
        yield f"{node} did not fit when the node was chosen: {then['refused']}"
    elif "score" in then:
        yield f"{node} had {then['score']} points when the node was chosen"
        yield from _points(then["scores"])
    if then.get("why"):
        yield f"  not surely: {then['why']}"


def _points(scores: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in scores:
        numbers = f"{one['raw']}, {one['normalized']}, {one['weighted']}"
        yield f"  {one['plugin']:{NAME_WIDTH}}  {numbers}"


def _details(line: Mapping[str, Any]) -> str:
    if "reasons" in line:
        count = sum(one["nodes"] for one in line["reasons"])
        return f": {_nodes(count)} said no"
    if "victims" in line:
        leaving = ", ".join(f"{one['pod']} ({one['priority']})" for one in line["victims"])
        return f" to {line['node']}" + (f", for which go: {leaving}" if leaving else "")
    if "feasible" in line:
        return f": {line['node']}, one of {line['feasible']} that fit"
    details = line.get("details")
    if isinstance(details, list):
        return ": " + ", ".join(str(part) for part in details if part is not None)
    return f": {details}" if details is not None else ""


def _time(at_s: float) -> str:
    """With its day, unless that is today."""
    at = datetime.fromtimestamp(at_s, UTC)
    day = "" if at.date() == datetime.now(UTC).date() else f"{at:%Y-%m-%d} "
    return day + at.strftime("%H:%M:%S.%f")[:-3] + "Z"


def _fail(message: str, status: int) -> int:
    sys.stderr.write(plain(f"asched explain: {message}\n"))
    return status
