"""`asched explain NAMESPACE/POD`: why a pod is pending, or why it was placed on its node.
`asched explain podgroup/NAME` explains a gang: what it lacks, what is reserved for it, and why the
first of its pods without a node is rejected. `asched explain deploy/NAME` explains a pod of a
workload (Deployment, ReplicaSet, StatefulSet, DaemonSet or Job): a waiting one, else the newest.

Exit status: 0 explained; 1 no answer, no permission, or the scheduler does not know the pod; 2
wrong usage.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from asched.cli.arguments import add_output_flag, counted, fail, plain, written
from asched.cli.commands import COMMANDS
from asched.cli.pages import PageError, quoted
from asched.cli.sources import add_page_parser, add_source_flags, opened, read_page
from asched.cli.workload_pods import WORKLOADS, pod_of_workload
from asched.host.event_loop import run_on_loop

#: Kinds that may precede the name.
WORDS: Final = ("podgroup", "podgroups", "pg")
GROUP_PATH: Final = "/debug/asched/groups/{}/{}?explain=yes"
GROUP_PODS_NAMED_MAX: Final = 5


def group_name(text: str) -> str:
    """The name after "podgroup/", with its namespace if given; empty for other texts."""
    word, _, name = text.partition("/")
    return name if word in WORDS else ""


def group_lines(page: Mapping[str, Any], *, is_wide: bool = False) -> Iterator[str]:
    """The lines to print, without those about the rejected pod."""
    placed, waiting, least = page["placed"], page["unplaced"], page["minCount"]
    name = page["group"].rpartition(":")[2]
    yield f"podgroup {name} of {page['api']}: {placed} of its {placed + waiting} pods are placed"
    starts = f"{least} start together" if least else "no gang, or its PodGroup does not exist"
    yield f"  {starts}"
    if page["lacks"]:
        yield f"  {page['lacks']}"
    if page.get("minResources"):
        yield f"  minResources {_amounts(page['minResources'])}"
    if page.get("start"):
        yield from start_lines(page["start"], "  ")
    if page.get("said"):
        yield ""
        yield page["said"]
    yield ""
    places = Counter(entry["place"] for entry in page["pods"])
    for place, count in places.items():
        pods = [entry for entry in page["pods"] if entry["place"] == place]
        shown = pods if is_wide else pods[:GROUP_PODS_NAMED_MAX]
        yield f"{count} {place}"
        for entry in shown:
            yield f"  {entry['pod']}" + (f" on {entry['node']}" if entry["node"] else "")
        if len(shown) < count:
            yield "  ..."
    more = placed + waiting - len(page["pods"])
    if more > 0:
        yield f"{more} more"


def start_lines(start: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    nodes = ", ".join(start["nodes"][:GROUP_PODS_NAMED_MAX])
    more = ", ..." if start["count"] > GROUP_PODS_NAMED_MAX else ""
    yield f"{indent}starts by {start['at']} ({start['certainty']}) on {nodes}{more}"
    if start["cause"]:
        yield f"{indent}  not by {start['first']}, as promised before: {start['cause']}"


def _amounts(amounts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items())


PATH: Final = "/debug/asched/pods/{}/{}"
#: Kinds that may precede a pod's name, as in kubectl.
KINDS: Final = ("pod", "pods", "po")
#: Lines of the history that are shown without -o wide.
HISTORY_LINES: Final = 8
TAINTS_LINES: Final = 5
#: The taint of a cordon.
CORDON: Final = "node.kubernetes.io/unschedulable:NoSchedule"
#: Node names shown behind a reason.
NAMED_MAX: Final = 3
#: Length of the longest plugin name.
NAME_WIDTH: Final = 32
#: Kinds of changes whose text names the node.
NAMING: Final = ("node", "label", "cordon", "eviction")


def add_parser(subparsers: Any) -> None:
    parser = add_page_parser(subparsers, "explain", COMMANDS["explain"], __doc__)
    parser.add_argument("pod", metavar="[pod/|podgroup/|deploy/][NAMESPACE/]NAME")
    parser.add_argument(
        "-n", "--namespace", default="", help="default: the namespace of the context"
    )
    add_output_flag(parser, "the whole history, and the scores of the best nodes")
    parser.add_argument(
        "--against", default="", metavar="NODE", help="explain why the pod was not placed on NODE"
    )
    add_source_flags(parser)
    parser.set_defaults(run=run)


def _split_kind(asked: str) -> tuple[str, str]:
    """The workload's kind, empty for a pod, and the name without the kind."""
    kind, slash, rest = asked.partition("/")
    word = kind.lower() if slash else ""
    if word in WORKLOADS:
        return word, rest
    return "", rest if word in KINDS else asked


def run(args: argparse.Namespace) -> int:
    group = group_name(args.pod)
    word, asked = _split_kind(args.pod)
    namespace, slash, name = (group or asked).rpartition("/")
    namespace = namespace if slash else args.namespace
    if not name or (slash and not namespace) or "/" in namespace:
        message = f"{args.pod!r} is not a pod; use POD, NAMESPACE/POD, podgroup/NAME or deploy/NAME"
        return fail("explain", plain(message), 2)
    try:
        page = run_on_loop(_page(args, namespace, name, word, is_group=bool(group)))
    except PageError as error:
        return fail("explain", plain(str(error)), 1)
    sys.stdout.write(printed(page, args.output))
    return 0


async def _page(
    args: argparse.Namespace, namespace: str, name: str, word: str, *, is_group: bool
) -> dict[str, Any]:
    if word:
        namespace, name = await pod_of_workload(args, word, namespace, name)
    async with opened(args) as source:
        namespace = namespace or source.namespace
        path = (GROUP_PATH if is_group else PATH).format(quoted(namespace), quoted(name))
        if args.against and not is_group:
            path += f"?against={quoted(args.against)}"
        reply = await source.page(path)
    if reply.status == 404:
        what = f"{'podgroup' if is_group else 'pod'} {namespace}/{name}"
        ask = ", and use the replica that holds the lease" if args.server else ""
        raise PageError(f"the scheduler does not know {what}; check name and namespace{ask}")
    return read_page(reply, "explanation", lambda page: printed(page, "wide"))


def printed(page: Mapping[str, Any], output: str) -> str:
    """An explanation in a form of `OUTPUTS`."""
    if output in ("json", "yaml"):
        return written(page, output)
    is_wide = output == "wide"
    if "story" in page:
        return plain("\n".join(_of_pod(page, is_wide=is_wide)) + "\n")
    lines = [*group_lines(page, is_wide=is_wide)]
    if page.get("rejectedPod"):
        lines += ["", *_of_pod(page["rejectedPod"], is_wide=is_wide)]
    return plain("\n".join(lines) + "\n")


def _of_pod(page: Mapping[str, Any], *, is_wide: bool) -> Iterator[str]:
    lines = len(page["story"]) if is_wide else HISTORY_LINES
    return explanation(page, lines, is_wide=is_wide)


def explanation(
    page: Mapping[str, Any], history_lines: int = HISTORY_LINES, *, is_wide: bool = False
) -> Iterator[str]:
    where = f" on {page['node']}" if page.get("node") else ""
    name = page.get("schedulerName", "")
    profile = page.get("profile", name)
    yield f"pod {page['pod']}: {page['place']}{where}"
    facts = [
        counted(page["attempts"], "attempt") if "attempts" in page else "",
        f"rejected by {', '.join(page['rejectedBy'])}" if page.get("rejectedBy") else "",
        f"gated by {page['gatedBy']}" if page.get("gatedBy") else "",
        f"profile {profile}" if profile else "",
        f"priority {page['priority']}" if "priority" in page else "",
        f"last requeued by {page['wokenBy']}" if page.get("wokenBy") else "",
    ]
    if any(facts):
        yield "  " + ", ".join(filter(None, facts))
    if pool := page.get("pool"):
        yield f"  pool {pool['name'] or 'none'}: {pool['why']}"
        if pool.get("profile"):
            instead = f" in place of {name}" if profile != name else ""
            yield f"  profile {profile} decides{instead}, since the pool names it"
        if not pool.get("is_decided_here", True):
            yield "  another replica decides about it, or none has let go of it yet"
            if lease := pool.get("lease"):
                yield f"  ask the holder with --lease {lease}"
    for awaited in page.get("awaits", ()):
        yield f"  waits for {awaited}"
    for obstacle in page.get("obstacles", ()):
        yield f"  {obstacle}"
    if page.get("nomination"):
        yield from _nominated(page["nomination"])
    if page.get("alike", 1) > 1:
        yield f"  {page['alike']} equal pods wait for the same reason"
    last = next((line for line in reversed(page["story"]) if "reasons" in line), None)
    if last is not None:
        yield ""
        yield f"last rejection, {_time(last['at'])}"
        yield from _reasons(last["reasons"])
    if "now" in page:
        yield ""
        yield from _now(page["now"], "gang" in page)
        yield from _missing(page.get("missing", ()))
        if "gang" in page:
            yield from _gang(page["gang"])
        yield from _taints(page.get("taints", ()), page.get("otherTaints", 0))
        for entry in page.get("holds", ()):
            whose = "the pod's own " if entry["own"] else ""
            where = f"{entry['places']} places on {counted(entry['nodes'], 'node')}"
            yield f"reserved for {whose}{entry['owner']}: {where}, for {entry['seconds']} s more"
        for entry in page.get("promised", ()):
            where = counted(entry["nodes"], "node")
            yield f"promised to {entry['owner']} from {entry['at']}: room on {where}"
    if page.get("start"):
        yield from start_lines(page["start"])
    if page.get("moves"):
        yield _moves(page["moves"])
    if page.get("drain"):
        place = page["drain"]["place"]
        what = f"a place is held on {place}" if place else "no place is held"
        yield f"drain: {page['drain']['node']} is drained; {what} for the pod's successor"
    yield from _changes(page)
    yield from _scores(page, is_wide=is_wide)
    if page["story"]:
        yield ""
        yield "history"
        for line in page["story"][-history_lines:]:
            attempt = f"#{line['attempt']}  " if line["attempt"] else ""
            yield f"  {_time(line['at'])}  {attempt}{line['what']}{_details(line)}"


def _moves(moves: Mapping[str, Any]) -> str:
    """What is known of moves that would make room."""
    if moves["underWay"]:
        return f"moves: {moves['text']}; under way, {counted(moves['moved'], 'pod')} evicted so far"
    before = f"{moves['text']}; " if moves["text"] else ""
    return f"moves: {before}the next search for a plan is due in {moves['seconds']} s"


def _taints(taints: Sequence[Mapping[str, Any]], more: int) -> Iterator[str]:
    for entry in taints[:TAINTS_LINES]:
        where = counted(entry["nodes"], "node")
        if entry["taint"] == CORDON:
            yield f"{where} {'is' if entry['nodes'] == 1 else 'are'} cordoned"
        else:
            yield f"taint {entry['taint']} on {where} is not tolerated"
    more += len(taints[TAINTS_LINES:])
    if more:
        yield f"nor {'is' if more == 1 else 'are'} {counted(more, 'further taint')}"


def _nominated(nomination: Mapping[str, Any]) -> Iterator[str]:
    since = f" since {_time(nomination['since'])}" if nomination["since"] is not None else ""
    count, victims = nomination["victimCount"], nomination["victims"]
    waits = f"; waits for {counted(count, 'victim')} to end" if count else ""
    yield f"  nominated to {nomination['node']}{since}{waits}"
    for victim in victims:
        state = "terminating" if victim["isTerminating"] else "to be evicted"
        yield f"    {victim['pod']} (priority {victim['priority']}), {state}"
    if len(victims) < count:
        yield "    ..."


def _reasons(reasons: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for entry in sorted(reasons, key=lambda entry: -entry["nodes"]):
        named = entry.get("named", ())[:NAMED_MAX]
        which = f" ({', '.join(named)}{', ...' if len(named) < entry['nodes'] else ''})"
        said = f"{entry['plugin'] or 'PreFilter'}: {entry['reason']}{which if named else ''}"
        yield f"  {entry['nodes']:7d} {'node ' if entry['nodes'] == 1 else 'nodes'}  {said}"


def _missing(missing: Sequence[Mapping[str, Any]], when: str = "") -> Iterator[str]:
    for entry in missing:
        most = f"{entry['mostFree']} on {entry['node']}"
        asked = f"{entry['asked']} {entry['resource']}"
        yield f"requests {asked}; the largest free amount{when} is {most}"


def _gang(gang: Mapping[str, Any]) -> Iterator[str]:
    """How many of the pods that have to start together find room, and what the next one lacks."""
    needed = counted(gang["needed"], "pod")
    if "takes" not in gang:
        yield f"its gang still needs room for {needed} at once"
        return
    takes = gang["takes"]
    find = "1 of them finds" if takes == 1 else f"{takes or 'none'} of them find"
    yield f"its gang still needs room for {needed} at once: {find} a node"
    if takes and gang.get("reasons"):
        yield f"the next one finds none, with {'that one' if takes == 1 else 'those'} in place"
        yield from _reasons(gang["reasons"])
        yield from _missing(gang["missing"], " then")


def _now(now: Mapping[str, Any], is_gang: bool = False) -> Iterator[str]:
    if "error" in now:
        those = "the node" if now["nodes"] == 1 else f"the {now['nodes']} nodes"
        yield f"now: {those} could not be evaluated: {now['error']}"
        return
    if "preFilter" in now:
        yield f"now: {now['plugin']} excludes all {now['nodes']} nodes: {now['preFilter']}"
        return
    if not now["nodes"]:
        yield "now: the cluster has no nodes"
        return
    alone = " this pod alone" if is_gang else ""
    yield f"now: {now['feasible']} of {now['nodes']} nodes fit{alone}"
    width = max((len(step["plugin"]) for step in now["funnel"]), default=0)
    for step in now["funnel"]:
        stopped = step["of"] - step["left"]
        if stopped:
            yield f"  {step['plugin']:{width}}  rejects {stopped:6d}, leaves {step['left']:6d}"
    for entry in now.get("avoided", ()):
        why = "its kubelet refused a pod of the same owner"
        yield f"  {entry['node']} is left out for {entry['seconds']} s more: {why}"
    if not now["feasible"] and now["nearestMisses"]:
        yield "nearest misses"
        for miss in now["nearestMisses"]:
            said = "; ".join(
                f"{entry['plugin']}: {entry['reason']}" for entry in miss["objections"]
            )
            yield f"  {miss['node']}: {said}{_exactly(miss)}"


def _exactly(miss: Mapping[str, Any]) -> str:
    """The missing amounts, and the taints."""
    amounts = [
        f"{name}: {entry['free']} free, {entry['asked']} requested"
        for name, entry in miss.get("missing", {}).items()
    ]
    found = "; ".join((*amounts, *miss.get("taints", ())))
    return f" ({found})" if found else ""


def _changes(page: Mapping[str, Any]) -> Iterator[str]:
    if "changes" not in page:
        return
    yield ""
    if not page["changes"]:
        yield "no single change of a known kind makes the pod fit"
        return
    together = page.get("together", 1)
    gang = f"and {together - 1} more pods of its gang " if together > 1 else ""
    yield f"any one of these changes makes the pod {gang}fit"
    width = max(len(entry["kind"]) for entry in page["changes"])
    for entry in page["changes"]:
        where = f"on {entry['node'] if entry['nodes'] == 1 else counted(entry['nodes'], 'node')}"
        about = [] if entry["kind"] in NAMING else [where]
        if "takes" in entry:
            about.append(f"enough for {entry['takes']} of {entry['of']} waiting pods")
        said = f"  ({', '.join(about)})" if about else ""
        yield f"  {entry['kind']:{width}}  {entry['text']}{said}"


def _scores(page: Mapping[str, Any], *, is_wide: bool) -> Iterator[str]:
    """The last choice among several nodes by plugin, and how the node of --against compares."""
    line = next((entry for entry in reversed(page["story"]) if entry.get("scores")), None)
    against = page.get("against")
    if line is not None and (is_wide or against is not None):
        yield ""
        among = f"of the {line['feasible']} nodes that fit"
        lot = ", at random among nodes with equal points" if _was_drawn(line) else ""
        yield f"{line['node']} was chosen with {line['score']} points {among}{lot}"
        yield f"  {'':{NAME_WIDTH}}  raw, normalized, weighted"
        yield from _points(line["scores"])
        for entry in line.get("best", ()):
            if is_wide and entry["node"] != line["node"]:
                scored = f"{entry['node']} had {entry['score']} points"
                yield f"  {scored} at attempt #{line['bestAsOf']}"
                yield from _points(entry["scores"])
    if against is not None:
        yield ""
        if line is not None and against["node"] == line["node"]:
            yield f"{line['node']} is the chosen node; name another node with --against to compare"
            return
        said = against.get("refused")
        yield f"{against['node']} {f'rejects the pod now: {said}' if said else 'fits now'}"
        if against.get("scored"):
            assert line is not None
            yield f"  it had {against['scored']['score']} points at attempt #{line['bestAsOf']}"
            yield from _points(against["scored"]["scores"])
        elif "below" in against:
            yield f"  it was not among the best nodes, which had at least {against['below']} points"


def _was_drawn(line: Mapping[str, Any]) -> bool:
    """Whether another node had as many points at this choice."""
    best = line.get("best", ()) if line.get("bestAsOf") == line["attempt"] else ()
    return any(
        (entry["node"] != line["node"]) & (entry["score"] == line["score"]) for entry in best
    )


def _points(scores: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for entry in scores:
        numbers = f"{entry['raw']}, {entry['normalized']}, {entry['weighted']}"
        yield f"  {entry['plugin']:{NAME_WIDTH}}  {numbers}"


def _details(line: Mapping[str, Any]) -> str:
    if "reasons" in line:
        count = sum(entry["nodes"] for entry in line["reasons"])
        return f": {counted(count, 'node')} rejected the pod"
    if "victims" in line:
        leaving = ", ".join(f"{entry['pod']} ({entry['priority']})" for entry in line["victims"])
        return f" on {line['node']}" + (f", evicting: {leaving}" if leaving else "")
    if "feasible" in line:
        return f": {line['node']}, one of {line['feasible']} feasible nodes"
    details = line.get("details")
    if isinstance(details, list):
        return ": " + ", ".join(str(part) for part in details if part is not None)
    if line["what"] == "refused":
        return f" {details}"
    return f": {details}" if details is not None else ""


def _time(at_s: float) -> str:
    """The time of day; with the date unless that is today."""
    at = datetime.fromtimestamp(at_s, UTC)
    day = "" if at.date() == datetime.now(UTC).date() else f"{at:%Y-%m-%d} "
    return day + at.strftime("%H:%M:%S.%f")[:-3] + "Z"
