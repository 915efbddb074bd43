"""`asched simulate`: schedule hypothetical changes on a live cluster or a snapshot of it.

  asched simulate -f web.yaml --replicas 40          which pods fit, where, and why others wait
  asched simulate --drain node-7 --like node-1=2     drain a node, with two more copies of another
  asched simulate --lose node-7                      the node is gone with its pods
  asched simulate --config new.yaml --against-config now.yaml    where two schedulers differ
  asched simulate --snapshot cluster.json.gz -f web.yaml   on a snapshot, without a cluster

The scheduler's own machine decides, on the objects that a scheduler reads; nothing is written to
the cluster. Pods that wait there already are tried as well. No time passes: starting and ending of
containers is not simulated.

Exit status: 0 computed and printed; 1 the cluster or a file cannot be read, or an object of the
files is refused, so that there are no pods of it; 2 wrong usage.
"""

import argparse
import asyncio
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

from asched.cli.arguments import (
    NODES_MAX,
    PODS_MAX,
    add_output_flag,
    add_plugin_flags,
    plain,
    seed_number,
    whole,
    written,
)
from asched.cli.commands import LAB_COMMANDS
from asched.core.config.gates import GateError
from asched.core.config.gates import parse as parse_gates
from asched.core.model.requests import CPU, MEMORY
from asched.host.assemble import BUILD_ERRORS
from asched.host.configuration.file import ConfigError, UnreadableFileError
from asched.host.user_plugins.catalogue import PluginLoadError, discover
from asched.kube.errors import ClientError
from asched_lab.whatif.changes import Scenario, ScenarioError
from asched_lab.whatif.engine import ExtendersError, scheduler_of, suppose
from asched_lab.whatif.fullness import Room
from asched_lab.whatif.manifests import STDIN, Manifests, Validate, read_manifests
from asched_lab.whatif.objects import Json, SnapshotError
from asched_lab.whatif.picture import picture
from asched_lab.whatif.result import Place, Result, counted, differences
from asched_lab.whatif.snapshot import Snapshot, read
from asched_lab.whatif.world import Scheduler

#: Errors in the request: exit status 2.
USAGE_ERRORS: Final[tuple[type[Exception], ...]] = (
    *BUILD_ERRORS,
    ConfigError,
    ExtendersError,
    GateError,
    PluginLoadError,
    ScenarioError,
    UnreadableFileError,
)
#: Errors in the cluster or the snapshot: exit status 1.
INPUT_ERRORS: Final[tuple[type[Exception], ...]] = (ClientError, SnapshotError)


def add_input_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags for cluster, workloads and scheduler."""
    cluster = parser.add_argument_group("which cluster")
    cluster.add_argument(
        *("--snapshot", "--dump"),
        dest="snapshot",
        default="",
        metavar="FILE",
        help="use a file of asched snapshot, or a List",
    )
    cluster.add_argument("--kubeconfig", default="", metavar="FILE", help="as in kubectl")
    cluster.add_argument("--context", default="", metavar="NAME", help="context of the kubeconfig")
    workloads = parser.add_argument_group("which pods")
    workloads.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE",
        help="manifests: pods, their controllers, nodes; - is standard input; repeatable",
    )
    workloads.add_argument(
        "-n", "--namespace", default="", help="for manifests without one (default)"
    )
    workloads.add_argument(
        "--replicas",
        type=whole(0, PODS_MAX),
        metavar="N",
        help="replicas of each workload in the files",
    )
    workloads.add_argument(
        "--validate",
        nargs="?",
        const=Validate.STRICT,
        default=Validate.STRICT,
        type=_validate,
        metavar="MODE",
        help="unknown and duplicate fields, as in kubectl: strict (or true) is an error, warn a"
        " warning, ignore (or false) accepts them (strict); in a --snapshot they are warnings",
    )
    deciding = parser.add_argument_group("which scheduler")
    deciding.add_argument(
        "--config", default="", metavar="FILE", help="configuration of the scheduler"
    )
    deciding.add_argument(
        "--without-extenders", action="store_true", help="ignore the extenders of the configuration"
    )
    deciding.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="GATE=BOOL,...",
        help="feature gates, as in kube-scheduler",
    )
    deciding.add_argument(
        "--seed",
        type=seed_number,
        default=0,
        metavar="N",
        help="seed for ties (0)",
    )
    add_plugin_flags(parser)


def _validate(text: str) -> Validate:
    modes = {"true": Validate.STRICT, "false": Validate.IGNORE, **{str(m): m for m in Validate}}
    if text not in modes:
        known = "strict (or true), warn, ignore (or false)"
        raise argparse.ArgumentTypeError(f"{text[:80]!r} is not one of {known}")
    return modes[text]


def snapshot(args: argparse.Namespace) -> Snapshot:
    """The cluster to simulate. Raises INPUT_ERRORS."""
    if args.snapshot:
        return load(args.snapshot)
    from asched.kube.session import ConnectionOptions  # 0.2 s, which a dump does not need
    from asched_lab.whatif.snapshot import snapshot_of

    options = ConnectionOptions(kubeconfig=args.kubeconfig, context=args.context)
    return asyncio.run(snapshot_of(options))


def load(name: str) -> Snapshot:
    """A snapshot from a file. Raises SnapshotError."""
    if name == STDIN:
        return read(sys.stdin.buffer, "<stdin>")
    try:
        with Path(name).open("rb") as stream:
            return read(stream, name)
    except OSError as error:
        raise SnapshotError(f"open {name}: {(error.strerror or str(error)).lower()}") from None


def warn(command: str, args: argparse.Namespace, cluster: Snapshot, given: Manifests) -> None:
    """Print what was read with reservations: unknown fields, kinds that are not used."""
    lines = [f"warning: {line}" for line in given.warnings]
    if args.validate is not Validate.IGNORE:
        lines += [f"warning: {args.snapshot}: {line}" for line in cluster.warnings()]
    lines += [f"not read: {kind}: {why}" for kind, why in cluster.left_out.items()]
    for line in lines:
        sys.stderr.write(plain(f"asched {command}: {line}\n"))


def scheduler(
    args: argparse.Namespace, cluster: Snapshot, workloads: Iterable[Json], config: str
) -> Scheduler:
    """The scheduler of this configuration. Raises USAGE_ERRORS."""
    gates = parse_gates(args.feature_gates)
    return scheduler_of(
        cluster,
        workloads,
        config,
        plugins=discover(args.plugin, args.plugin_dir),
        gates=gates.enabled,
        without_extenders=args.without_extenders,
        seed=args.seed,
    )


def fail(command: str, error: Any, status: int) -> int:
    for line in str(error).splitlines():
        sys.stderr.write(plain(f"asched {command}: {line}\n"))
    return status


T = TypeVar("T")

#: Nodes and reasons that are named without `-o wide`.
NAMED_MAX: Final = 5
WAITED: Final = "pods that waited already"
MOVED: Final = "pods made in place of removed pods"
_UNITS: Final = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))


def result_lines(
    result: Result, other: Result | None = None, *, against: str = "", is_wide: bool = False
) -> Iterator[str]:
    """The lines to print."""
    if result.new_nodes:
        made = _many(len(result.new_nodes), "new node")
        yield f"{made}: {_some(result.new_nodes, is_wide=is_wide)}"
    for what, said in result.refused:
        yield f"refused: {what}: {said}"
    for note in result.notes:
        yield f"note: {note}"
    if result.refused_whole:
        yield f"no pods of {_many(len(result.refused_whole), 'refused object')}"
    elif not result.places:
        yield "no pod waits: nothing to schedule"
    for name, places in _grouped(result.places).items():
        yield from _group(name, places, is_wide=is_wide)
    if result.evicted:
        yield f"{_many(len(result.evicted), 'pod')} would be preempted"
        for pod, why in _first(result.evicted.items(), is_wide=is_wide):
            yield f"  {pod}{': ' + why if why else ''}"
    if result.lost:
        named = _some(result.lost, is_wide=is_wide)
        lost = _many(len(result.lost), "pod")
        yield f"{lost} would be lost, no controller recreates them: {named}"
    for budget, (allowed, count) in result.budgets.items():
        yield f"budget {budget} lets {_many(allowed, 'pod')} go, draining takes {count}"
    yield ""
    yield from _rooms(result)
    if is_wide:
        yield ""
        yield from _nodes(result)
    if other is not None:
        yield ""
        yield from _differences(result, other, against, is_wide=is_wide)


def _grouped(places: Iterable[Place]) -> dict[str, list[Place]]:
    groups: defaultdict[str, list[Place]] = defaultdict(list)
    for place in places:
        groups[place.asked or (MOVED if place.instead_of else WAITED)].append(place)
    return dict(sorted(groups.items(), key=lambda group: (group[0] in (MOVED, WAITED), group[0])))


def _group(name: str, places: list[Place], *, is_wide: bool) -> Iterator[str]:
    nodes = counted(places)
    count = nodes.total()
    where = f" on {_many(len(nodes), 'node')}" if count else ""
    waits = f", {len(places) - count} wait" if count < len(places) else ""
    yield f"{name}: {count} of {len(places)} placed{where}{waits}"
    if is_wide:
        for place in places:
            instead = f" (was {place.instead_of})" if place.instead_of else ""
            yield f"  {place.pod}{instead}  {place.node or '-'}  {place.why}".rstrip()
        return
    if count:
        listed = [f"{node} {pods}" for node, pods in nodes.most_common(NAMED_MAX)]
        yield f"  on {', '.join(listed)}{', ...' if len(nodes) > NAMED_MAX else ''}"
    reasons = Counter(place.why for place in places if not place.node)
    for why, pods in reasons.most_common(NAMED_MAX):
        yield f"  {pods} wait{'s' if pods == 1 else ''}: {why}"
    if len(reasons) > NAMED_MAX:
        more = _many(len(reasons) - NAMED_MAX, "more reason")
        yield f"  ... and {more}; -o wide has all"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _rooms(result: Result) -> Iterator[str]:
    width = max((len(room.resource) for room in result.rooms), default=0)
    yield f"{'resource':{max(width, 8)}}  {'offered':>10}  {'before':>7}  {'after':>7}"
    for room in result.rooms:
        amount = spelt(room)
        shares = f"{room.before:7.1%}  {room.after:7.1%}"
        yield f"{room.resource:{max(width, 8)}}  {amount:>10}  {shares}"
    typical = result.typical
    if typical is not None:
        amounts = ((typical.cpu, f"{typical.cpu}m cpu"), (typical.memory, _bytes(typical.memory)))
        asked = [text for amount, text in amounts if amount > 1] or ["which asks for nothing"]
        yield (
            f"room for {typical.fits} more of the typical pod ({' and '.join(asked)}),"
            f" {typical.fits_in_one_piece} if it were in one piece:"
            f" fragmentation {typical.fragmentation:.1%}"
        )


def spelt(room: Room) -> str:
    """The allocatable amount in usual units."""
    if room.resource == CPU:
        return f"{room.offered / 1000:g}"
    is_bytes = room.resource == MEMORY or room.resource.endswith("storage")
    return _bytes(room.offered) if is_bytes else str(room.offered)


def _bytes(amount: int) -> str:
    for unit, name in _UNITS:
        if amount >= unit:
            return f"{amount / unit:.4g}{name}"
    return str(amount)


def _nodes(result: Result) -> Iterator[str]:
    names = [room.resource for room in result.rooms]
    width = max([len(node.node) for node in result.nodes] + [4])
    yield "  ".join([f"{'node':{width}}", "pods", " new", *(f"{name:>7}" for name in names)])
    for node in result.nodes:
        shares = [
            f"{node.shares[name]:>{max(len(name), 7)}.1%}" if name in node.shares else "-".rjust(7)
            for name in names
        ]
        closed = "" if node.is_open else "  closed"
        yield f"{node.node:{width}}  {node.pods:4d}  {node.new:4d}  {'  '.join(shares)}{closed}"


def _differences(result: Result, other: Result, against: str, *, is_wide: bool) -> Iterator[str]:
    found = differences(result, other)
    yield (
        f"against {against}: {len(other.placed)} placed and {len(other.pending)} wait there,"
        f" {len(result.placed)} and {len(result.pending)} here"
    )
    if not found:
        yield "every pod has the same place"
        return
    yield "1 pod differs" if len(found) == 1 else f"{len(found)} pods differ"
    for pod in _first(found, is_wide=is_wide):
        yield f"  {pod.pod}: {_or_nothing(pod.first)}, there {_or_nothing(pod.second)}"


def _or_nothing(place: str) -> str:
    return place or "is not there"


def _some(listed: list[str], *, is_wide: bool) -> str:
    more = ", ..." if len(listed) > NAMED_MAX and not is_wide else ""
    return ", ".join(_first(listed, is_wide=is_wide)) + more


def _first(listed: Iterable[T], *, is_wide: bool) -> list[T]:
    found = list(listed)
    return found if is_wide else found[:NAMED_MAX]


def add_parser(subparsers: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "simulate",
        help=LAB_COMMANDS["simulate"],
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_input_flags(parser)
    parser.add_argument(
        "--against-config",
        default="",
        metavar="FILE",
        help="report where this configuration differs",
    )
    supposed = parser.add_argument_group("changes to the nodes")
    supposed.add_argument(
        "--like",
        action="append",
        type=_like,
        default=[],
        metavar="NODE=N",
        help="add N copies of the node, with its DaemonSets' pods only; repeatable",
    )
    for name, text in (
        ("drain", "cordon the node and move its pods elsewhere; repeatable"),
        ("lose", "remove the node with everything on it; repeatable"),
    ):
        supposed.add_argument(f"--{name}", action="append", default=[], metavar="NODE", help=text)
    add_output_flag(parser, "every pod and every node")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="draw the nodes by fullness, as SVG"
    )
    parser.set_defaults(run=run)


def _like(text: str) -> tuple[str, int]:
    node, _, count = text.rpartition("=")
    if not node or not count.isdecimal():
        raise argparse.ArgumentTypeError(f"{text[:80]!r} is not of the form NODE=N")
    return node, whole(1, NODES_MAX)(count)


def run(args: argparse.Namespace) -> int:
    """Simulate and print the result."""
    try:
        given = read_manifests(args.filename, args.validate)
        asked = tuple(given.objects)
        cluster = snapshot(args)
        scenario = Scenario(
            like=dict(args.like),
            drain=tuple(args.drain),
            lose=tuple(args.lose),
            workloads=asked,
            replicas=args.replicas,
            namespace=args.namespace,
        )
        result = suppose(cluster, scenario, scheduler(args, cluster, asked, args.config))
        other = None
        if args.against_config:
            against = scheduler(args, cluster, asked, args.against_config)
            other = suppose(cluster, scenario, against)
    except INPUT_ERRORS as error:
        return fail("simulate", error, 1)
    except USAGE_ERRORS as error:
        return fail("simulate", error, 2)
    if args.picture:
        try:
            args.picture.write_text(picture(_title(args), result), encoding="utf-8")
        except OSError as error:
            return fail("simulate", f"cannot write {args.picture}: {error.strerror}", 1)
    warn("simulate", args, cluster, given)
    sys.stdout.write(printed(args, result, other))
    return 1 if result.refused_whole else 0


def printed(args: argparse.Namespace, result: Result, other: Result | None) -> str:
    """The result, and its differences from `other`, in the requested form."""
    if args.output in ("text", "wide"):
        lines = result_lines(
            result, other, against=args.against_config, is_wide=args.output == "wide"
        )
        return plain("\n".join(lines) + "\n")
    body = result.document()
    if other is not None:
        body["against"] = other.document()
        body["differences"] = [
            {"pod": pod.pod, "here": pod.first, "against": pod.second}
            for pod in differences(result, other)
        ]
    return written(body, args.output)


def _title(args: argparse.Namespace) -> str:
    supposed = [
        *(f"{count} more like {node}" for node, count in args.like),
        *(f"{node} drained" for node in args.drain),
        *(f"{node} lost" for node in args.lose),
        *(Path(name).name for name in args.filename),
    ]
    return f"changes: {', '.join(supposed)}" if supposed else "the cluster as it is"
