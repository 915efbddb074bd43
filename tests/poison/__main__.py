"""Random lives without end, or the objects that cost most."""

import argparse
import sys
import time
import traceback
from collections import Counter

from tests.poison.life import Life
from tests.poison.search import Search, outline


def lived(seed: int, args: argparse.Namespace, sums: Counter[str]) -> str:
    """What broke, the end of its traceback first; empty if nothing did. `sums` grow."""
    life = Life(seed, args.crowd, all_plugins=args.all_plugins)
    start = time.process_time()
    step = 0
    try:
        while step < args.steps or time.process_time() - start < args.cpu:
            life.step()
            step += 1
        sums.update(steps=step, placed=len(life.others), poison_bound=life.bound_poison)
        if life.waiting:
            return f"{len(life.waiting)} others wait, the first {life.waiting[0]}"
        life.end()
    except Exception as error:  # noqa: BLE001 - any is a finding
        frames = traceback.extract_tb(error.__traceback__)
        where = [
            f"{frame.filename.rpartition('asched/')[2]}:{frame.lineno}" for frame in frames[-3:]
        ]
        return f"{type(error).__name__}: {error} at {' < '.join(reversed(where))}"
    return ""


def main() -> int:
    """0: nothing broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.poison", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--crowd", type=int, default=40)
    parser.add_argument("--cpu", type=float, default=0, help="at least so many seconds a life")
    parser.add_argument("--all-plugins", action="store_true", help="groups, quotas, devices, ...")
    parser.add_argument("--search", type=float, default=0, help="so many seconds of CPU")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=3000)
    args = parser.parse_args()
    if args.search:
        search = Search(args.first, args.nodes, args.pods)
        search.run(args.search)
        sys.stdout.write(" turn ms    all ms       kB  object\n")
        sys.stdout.write("".join(f"{outline(cost)}\n" for cost in search.best))
        return 0
    found: Counter[str] = Counter()
    sums: Counter[str] = Counter()
    for seed in range(args.first, args.first + args.seeds):
        broke = lived(seed, args, sums)
        if broke and not found[broke]:
            sys.stdout.write(f"seed {seed}: {broke}\n")
            sys.stdout.flush()
        found[broke] += 1
    broken = sum(count for what, count in found.items() if what)
    sys.stdout.write(f"{args.seeds} lives, {broken} broken; {dict(sums)}\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
