"""`asched trace`: offer the pods of a recorded GPU cluster to a placement policy.

Every pod is offered once, in the published order of the seed; none ends.
docs/results/gpu-traces.md has the policies and what they reach.

Exit status: 0 done; 1 a trace cannot be read; 2 wrong usage.
"""

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from asched.cli.arguments import seed_number, whole
from asched.cli.commands import LAB_COMMANDS
from asched_lab.bench.report import Curve, picture
from asched_lab.trace.engine import STRATEGIES
from asched_lab.trace.moves import WithMoves, play_with_moves
from asched_lab.trace.openb import TraceError, default_folder, known, load, one_of
from asched_lab.trace.policies import POLICIES, policy_named
from asched_lab.trace.run import LAST_PERCENT, POINTS, Outcome, simulate

#: Names of the policies in the published table.
PUBLISHED: Final = {
    "random": "01-Random",
    "dotprod": "02-DotProd",
    "gpuclustering": "03-GpuClustering",
    "gpupacking": "04-GpuPacking",
    "bestfit": "05-BestFit",
    "fgd": "06-FGD",
}


DEFAULT_POLICY: Final = "fgd"
MOVES_MAX: Final = 16
#: 42 to 51 are published.
DEFAULT_SEED: Final = 42


def add_parser(subparsers: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "trace",
        help=LAB_COMMANDS["trace"],
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("trace", nargs="?", metavar="NAME", help="for example openb:default")
    parser.add_argument("--policy", default="", metavar="NAME", help="see --list (fgd)")
    parser.add_argument(
        "--engine",
        action="store_true",
        help="decide with the scheduler's own engine and the plugin GpuSharing",
    )
    parser.add_argument(
        "--moves",
        type=whole(1, MOVES_MAX),
        metavar="N",
        help="with --engine: move up to N placed pods for each pod that was dropped, as Rebalance",
    )
    parser.add_argument("--seed", type=seed_number, metavar="N", help="42 to 51 are published (42)")
    parser.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text")
    parser.add_argument("--json", dest="output", action="store_const", const="json", help="-o json")
    parser.add_argument("--list", action="store_true", help="print traces and policies")
    parser.add_argument(
        "--traces",
        type=Path,
        metavar="DIR",
        help="folder with openb/ (default: tests/recordings/traces)",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write the curve to FILE, as SVG")
    parser.add_argument(
        "--published",
        type=Path,
        metavar="FILE",
        help="the published analysis_allo_discrete.csv, to draw as well",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Play one run, or list traces and policies."""
    folder = args.traces or default_folder()
    policy = args.policy or DEFAULT_POLICY
    seed = DEFAULT_SEED if args.seed is None else args.seed
    if args.trace is None and not args.list:
        return _refuse("which trace? --list shows them", 2)
    if policy_named(policy) is None:
        return _refuse(f"no policy {one_of(policy, list(POLICIES))}", 2)
    if args.moves and not (args.engine and policy_named(policy) in STRATEGIES):
        return _refuse(f"--moves needs --engine and a policy of {', '.join(STRATEGIES)}", 2)
    if args.published and not args.plot:
        return _refuse("--published is drawn by --plot FILE, which is missing", 2)
    if args.plot and not args.plot.absolute().parent.is_dir():
        return _refuse(f"cannot write {args.plot}: there is no folder {args.plot.parent}", 1)
    try:
        if args.list:
            return _list(folder)
        if args.moves:
            found = play_with_moves(
                load(args.trace, folder), policy_named(policy) or "", seed, args.moves
            )
            print(_moves_text(found) if args.output == "text" else _moves_json(found, args.output))
            return 0
        beside = _published(args.published, args.trace, policy, seed)
        outcome = simulate(args.trace, policy, seed, folder, by_engine=args.engine)
        if args.plot:
            curves = [*beside, _drawn("asched", outcome.curve)]
            title = f"{outcome.trace}, {outcome.policy}, seed {outcome.seed}: GPUs in use (%)"
            args.plot.write_text(picture(title, "GPUs requested (%)", curves), encoding="utf-8")
    except TraceError as problem:
        return _refuse(str(problem), 1)
    except OSError as problem:
        return _refuse(f"cannot write {args.plot}: {problem.strerror}", 1)
    if args.output == "json":
        print(json.dumps(_fields(outcome)))
    elif args.output == "yaml":
        print(yaml.safe_dump(_fields(outcome), sort_keys=False), end="")
    else:
        print(_text(outcome))
    return 0


def _refuse(text: str, status: int) -> int:
    print(f"asched trace: {text}", file=sys.stderr)
    return status


def _list(folder: Path) -> int:
    print("\n".join(["traces", *(f"  {name}" for name in known(folder)), "policies"]))
    for name, (summary, _) in POLICIES.items():
        print(f"  {name:14} {summary}")
    return 0


def _fields(outcome: Outcome) -> dict[str, Any]:
    return {
        "trace": outcome.trace,
        "policy": outcome.policy,
        "seed": outcome.seed,
        "pods": outcome.pods,
        "gpu_allocation": {str(percent): outcome.curve[percent] for percent in POINTS},
        "curve": outcome.curve,
        "seconds": round(outcome.seconds, 3),
    }


def _text(outcome: Outcome) -> str:
    allocated = ", ".join(f"{outcome.curve[percent]} % at {percent} %" for percent in POINTS)
    return (
        f"{outcome.trace} by {outcome.policy}, seed {outcome.seed}: {outcome.pods} pods"
        f" in {outcome.seconds:.1f} s\n"
        f"  GPUs in use, by GPUs asked for: {allocated}\n"
        f"  placed {outcome.placed} pods on {outcome.nodes_used} nodes,"
        f" {outcome.placed_plain} of {outcome.plain} that request no GPU;"
        f" {outcome.kept_out} rejected although a node had room"
    )


def _moves_text(found: WithMoves) -> str:
    return (
        f"GPUs in use: {found.before} %, with moves {found.after} %\n"
        f"  {found.placed} of {found.dropped} dropped pods placed by {found.moves} moves,"
        f" {found.searches} searches"
    )


def _moves_json(found: WithMoves, output: str) -> str:
    fields = found._asdict()
    return json.dumps(fields) if output == "json" else yaml.safe_dump(fields, sort_keys=False)


def _published(path: Path | None, trace: str, policy: str, seed: int) -> list[Curve]:
    """The published curve of the same run; for a policy of asched, of the best published one."""
    if path is None:
        return []
    name = PUBLISHED.get(policy_named(policy) or "", PUBLISHED["fgd"])
    wanted = f"openb_pod_list_{trace.partition(':')[2]}", name, str(seed)
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            for line in csv.DictReader(stream):
                if (line["workload"], line["sc_policy"], line["seed"]) == wanted:
                    values = [line[str(at)] for at in range(LAST_PERCENT + 1)]
                    found = [float(value) if value else None for value in values]
                    return [_drawn(f"published, {name[3:]}", found)]
    except OSError as problem:
        raise TraceError(f"cannot read {path}: {problem.strerror}") from None
    except KeyError as missing:
        raise TraceError(f"{path}: no table of published curves: no column {missing}") from None
    except ValueError as problem:
        raise TraceError(f"{path}: no table of published curves: {problem}") from None
    raise TraceError(f"{path}: no published curve of {' '.join(wanted)}; seeds are 42 to 51")


def _drawn(name: str, values: list[float | None]) -> Curve:
    points = [(float(at), value) for at, value in enumerate(values) if value is not None]
    return name, points, 0.0
