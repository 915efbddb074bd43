"""`asched plan`: compute a placement plan and apply it later, all or nothing.

  asched plan -f web.yaml --replicas 40 --out web.plan    write a plan with a place for every pod
  asched plan --check web.plan                            check that the plan is still valid
  asched plan --apply web.plan                            create the pods, each on its node
  asched plan --rebalance --config FILE                   which pods would move for those that wait

A plan is made for Pods, Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and
ReplicationControllers that do not exist yet. To apply it, pods are created with their node in the
required node affinity and with the scheduling gate asched.dev/plan, which is removed when all of
them exist; then the pods' scheduler places them, with all its checks. If a place is no longer free,
a quota or a webhook refuses an object, or another pod was faster, everything is deleted again.

Exit status: 0 planned, valid, applied; 1 no plan was found, or it is not valid; 2 wrong usage.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

from asched.cli.arguments import add_output_flag, plain, whole, written
from asched.cli.commands import LAB_COMMANDS
from asched.core.model.decode import MalformedError, parse
from asched.kube.files import file_content, write_private
from asched_lab.commands.simulate import (
    INPUT_ERRORS,
    USAGE_ERRORS,
    add_input_flags,
    fail,
    result_lines,
    scheduler,
    snapshot,
    warn,
)
from asched_lab.whatif.makers import NoPlanError
from asched_lab.whatif.manifests import MANIFEST_BYTES_MAX, read_manifests
from asched_lab.whatif.moves import find_moves, json_of, text_of
from asched_lab.whatif.objects import Json
from asched_lab.whatif.plan import Plan, holds, planned
from asched_lab.whatif.result import Result
from asched_lab.whatif.snapshot import Snapshot

PATIENCE_S: Final = 60

#: One day.
TIMEOUT_S_MAX: Final = 86_400


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "plan",
        help=LAB_COMMANDS["plan"],
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--out", default="", metavar="PLAN", help="write the plan to this file")
    which.add_argument("--check", default="", metavar="PLAN", help="check that it is still valid")
    which.add_argument("--apply", default="", metavar="PLAN", help="create its pods on their nodes")
    which.add_argument(
        "--rebalance",
        action="store_true",
        help="show the pods that Rebalance would move for pods that wait; nothing is changed",
    )
    parser.add_argument(
        "--timeout",
        type=whole(1, TIMEOUT_S_MAX),
        default=PATIENCE_S,
        metavar="SECONDS",
        help="limit for the adoption of the pods, and again for placing them (default %(default)s)",
    )
    add_output_flag(parser, "every pod and every node")
    add_input_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plan, check, or apply."""
    file = args.check or args.apply
    if args.rebalance:
        return _rebalanced(args)
    if bool(file) == bool(args.filename):
        return fail("plan", "give either -f FILE, or --check PLAN, or --apply PLAN", 2)
    if args.apply and args.snapshot:
        return fail("plan", "--apply needs the live cluster, not a --snapshot", 2)
    if file and args.replicas is not None:
        return fail("plan", f"--replicas has no effect with {file}: it is in the plan", 2)
    try:
        given = read_manifests(args.filename, args.validate)
        cluster = snapshot(args)
        warn("plan", args, cluster, given)
        objects = given.objects
        plan, result = _checked(args, cluster, file) if file else _planned(args, cluster, objects)
        if args.apply:
            asyncio.run(_apply(args, plan))
    except NoPlanError as error:
        what = f"{file} is refused" if file else "there is no plan"
        return fail("plan", f"{what}\n{error}", 1)
    except INPUT_ERRORS as error:
        return fail("plan", error, 1)
    except USAGE_ERRORS as error:
        return fail("plan", error, 2)
    if args.out:
        try:
            _write(Path(args.out), plan)
        except OSError as error:
            return fail("plan", f"cannot write {args.out}: {error.strerror}", 1)
    sys.stdout.write(_printed(args, plan, result, cluster))
    return 0


def _rebalanced(args: argparse.Namespace) -> int:
    """Print the moves for the pods that wait in the cluster."""
    if args.filename or args.replicas is not None:
        return fail("plan", "--rebalance takes the pods that wait in the cluster, not -f", 2)
    try:
        cluster = snapshot(args)
        found = find_moves(cluster, scheduler(args, cluster, (), args.config))
    except NoPlanError as error:
        return fail("plan", error, 1)
    except INPUT_ERRORS as error:
        return fail("plan", error, 1)
    except USAGE_ERRORS as error:
        return fail("plan", error, 2)
    if args.output in ("json", "yaml"):
        sys.stdout.write(written(json_of(found), args.output))
    else:
        sys.stdout.write(plain(text_of(found)))
    return int(any(moves.plan is None for moves in found))


def _planned(
    args: argparse.Namespace, cluster: Snapshot, workloads: list[Json]
) -> tuple[Plan, Result]:
    decides = scheduler(args, cluster, workloads, args.config)
    return planned(cluster, workloads, decides, replicas=args.replicas, namespace=args.namespace)


def _checked(args: argparse.Namespace, cluster: Snapshot, file: str) -> tuple[Plan, Result]:
    try:
        document = parse(json.loads, file_content(file, MANIFEST_BYTES_MAX))
    except OSError as error:
        raise NoPlanError(f"open {file}: {(error.strerror or str(error)).lower()}") from None
    except MalformedError as error:
        raise NoPlanError(f"this is no plan: {error}") from None
    plan = Plan.of(document)
    decides = scheduler(args, cluster, [pod for pod, _ in plan.pods], args.config)
    return plan, holds(plan, cluster, decides)


async def _apply(args: argparse.Namespace, plan: Plan) -> None:
    from asched.kube.session import ConnectionOptions, connect
    from asched_lab.whatif.applying import Applying

    options = ConnectionOptions(kubeconfig=args.kubeconfig, context=args.context)
    session = await connect(options)
    try:
        await Applying(session, plan, args.timeout, _say).run()
    finally:
        await session.close()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _write(path: Path, plan: Plan) -> None:
    write_private(path, f"{json.dumps(plan.document(), indent=1)}\n".encode())


def _printed(args: argparse.Namespace, plan: Plan, result: Result, cluster: Snapshot) -> str:
    if args.output in ("json", "yaml"):
        return written(plan.document(), args.output)
    since = f" (made at {plan.version})" if plan.version != cluster.version else ""
    where = f" at resourceVersion {cluster.version}" if cluster.version else ""
    did = "applied" if args.apply else "holds" if args.check else "planned"
    head = f"{did}: {len(plan.pods)} pods on {len({n for _, n in plan.pods})} nodes{where}{since}"
    lines = list(result_lines(result, is_wide=args.output == "wide"))
    return plain("\n".join([head, *lines]) + "\n")
