"""`asched simulate`: schedule hypothetical changes on a live cluster or a snapshot of it.

  asched simulate -f web.yaml --replicas 40          which pods fit, where, and why others wait
  asched simulate --drain node-7 --like node-1=2     drain a node, with two more copies of another
  asched simulate --lose node-7                      the node is gone with its pods
  asched simulate --config new.yaml --against-config now.yaml    where two schedulers differ
  asched simulate --snapshot cluster.json.gz -f web.yaml   on a snapshot, without a cluster

The scheduler's own machine decides, on the objects that a scheduler reads; nothing is written to
the cluster. Pods that wait there already are tried as well. No time passes: starting and ending of
containers is not simulated.

Exit status: 0 computed and printed; 1 the cluster or a file cannot be read; 2 wrong usage.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from asched.cli.arguments import NODES_MAX, add_output_flag, plain, whole, written
from asched.cli.commands import LAB_COMMANDS
from asched_lab.commands.simulate_text import result_lines
from asched_lab.commands.supposed import (
    INPUT_ERRORS,
    USAGE_ERRORS,
    add_input_flags,
    fail,
    manifests,
    scheduler,
    snapshot,
)
from asched_lab.whatif.changes import Scenario
from asched_lab.whatif.engine import suppose
from asched_lab.whatif.picture import picture
from asched_lab.whatif.result import Result, differences


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
        asked = manifests(args.filename)
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
    for kind, why in cluster.left_out.items():
        sys.stderr.write(f"asched simulate: not read: {kind}: {why}\n")
    sys.stdout.write(printed(args, result, other))
    return 0


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
