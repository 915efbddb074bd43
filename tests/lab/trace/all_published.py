"""Compares runs with the published ones: python -m tests.lab.trace.all_published [--help]

Without arguments all 850 runs of the five deterministic policies (17 traces, 10 seeds; about a
quarter of an hour), the end of each; with the published table of curves all 131 points of each.
Prints a line a policy and trace, and the worst difference. Exit status 1 beyond the limit.
"""

import argparse
import csv
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from asched_lab.trace.openb import default_folder, load
from asched_lab.trace.run import play

LIMIT = 0.05
LAST = 130
#: (trace, policy as published, seed) -> percent of demand -> percent of GPUs in use.
Published = Mapping[tuple[str, str, int], Mapping[int, float]]
DRAWN = "Random"


def of_ends(path: Path) -> Published:
    """From `expected.json`: the end of each curve."""
    traces = json.loads(path.read_bytes())["traces"]
    return {
        (trace, policy, int(seed)): {LAST: value}
        for trace, policies in traces.items()
        for policy, told in policies.items()
        for seed, value in told["seeds"].items()
    }


def of_curves(path: Path) -> Published:
    """From the published `analysis_allo_discrete.csv`."""
    found = {}
    with path.open(newline="", encoding="utf-8") as stream:
        for line in csv.DictReader(stream):
            trace = line["workload"].removeprefix("openb_pod_list_")
            policy = line["sc_policy"].partition("-")[2]
            values = {at: float(line[str(at)]) for at in range(LAST + 1) if line[str(at)]}
            found[trace, policy, int(line["seed"])] = values
    return found


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, default=default_folder())
    parser.add_argument("--curves", type=Path, help="the published analysis_allo_discrete.csv")
    for what in ("trace", "policy", "seed"):
        parser.add_argument(f"--{what}", action="append", help="only these; repeatable")
    args = parser.parse_args(words)
    said = of_curves(args.curves) if args.curves else of_ends(args.traces / "openb/expected.json")
    chosen = [
        key
        for key in sorted(said)
        if key[1] != DRAWN
        and key[0] in (args.trace or [key[0]])
        and key[1] in (args.policy or [key[1]])
        and str(key[2]) in (args.seed or [str(key[2])])
    ]
    worst, points = 0.0, 0
    for trace in dict.fromkeys(key[0] for key in chosen):
        loaded = load(f"openb:{trace}", args.traces)
        for _, policy, seed in (key for key in chosen if key[0] == trace):
            curve = play(loaded, policy, seed).curve
            apart = [
                abs((curve[at] or 0.0) - value) for at, value in said[trace, policy, seed].items()
            ]
            worst, points = max(worst, *apart), points + len(apart)
            sys.stdout.write(f"{trace} {policy} {seed}: {curve[LAST]}, {max(apart):.2f} apart\n")
    sys.stdout.write(f"{len(chosen)} runs, {points} points: {worst:.2f} apart at most\n")
    return int(worst > LIMIT or not chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
