"""`asched sim`: live through simulated bad days, or repeat one of them by its seed.

Exit status: 0 if no rule was broken, 1 if one was (the first line names scenario and seed), 2 for
wrong usage.
"""

import argparse
import logging
import sys
from typing import Any

from asched.lab.sim.scenario import Broken, play
from asched.lab.sim.scenarios import SCENARIOS


def add_parser(subparsers: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "sim",
        help="live through simulated bad days, or repeat one by its seed",
        description="The scheduler in virtual time, and a server on which everything goes wrong.",
        epilog="scenarios: " + ", ".join(SCENARIOS),
    )
    parser.add_argument(
        "--scenario", default="", metavar="NAME", help="one of those below (all of them)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first seed (0)")
    parser.add_argument(
        "--runs", type=int, default=1, metavar="N", help="how many seeds, from the first on (1)"
    )
    parser.add_argument("--steps", action="store_true", help="print everything that happened")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Play the scenarios, one line each."""
    if args.scenario and args.scenario not in SCENARIOS:
        known = ", ".join(SCENARIOS)
        print(f"asched sim: no scenario {args.scenario!r}; there are {known}", file=sys.stderr)
        return 2
    if args.runs < 1:
        print("asched sim: --runs must be at least 1", file=sys.stderr)
        return 2
    logging.getLogger("asched").addHandler(logging.NullHandler())
    logging.getLogger("asched").propagate = False  # bad days are what it is for
    status = 0
    for name in [args.scenario] if args.scenario else SCENARIOS:
        status = max(status, _play(name, range(args.seed, args.seed + args.runs), args.steps))
    return status


def _play(name: str, seeds: range, shows_steps: bool) -> int:
    bound = 0
    for seed in seeds:
        try:
            world = play(SCENARIOS[name], seed)
        except Broken as broken:
            if shows_steps:
                print("\n".join(broken.world.trace))
            print(broken, file=sys.stderr)
            return 1
        bound += world.ledger.bound_count
        if shows_steps:
            print("\n".join(world.trace))
    print(f"{name}: {len(seeds)} lives, {bound} pods bound, no rule broken")
    return 0
