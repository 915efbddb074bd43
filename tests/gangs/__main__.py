"""Plays gangs that are hard to place and prints what became of them.

    python -m tests.gangs FILE...                 instances from files (README.md has the format)
    python -m tests.gangs --small 1000            small random ones, against brute force
    python -m tests.gangs --planted 20            large ones around a hidden placement, and twins
                          --nodes 5000 --pods 600

The exit status is 0 only if nothing is wrong: nothing placed against the rules or although it was
not expected, nothing that can be placed called infeasible, no pod elsewhere than without the
search where it was not needed. What stays unknown is counted.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from tests.conformance.twins.gang import is_placeable
from tests.gangs.controllers import complete
from tests.gangs.instances import Instance, read, small
from tests.gangs.planted import planted
from tests.gangs.playing import Played, play


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gangs", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--small", type=int, default=0, metavar="COUNT")
    parser.add_argument("--planted", type=int, default=0, metavar="COUNT")
    parser.add_argument("--seed", type=int, default=0, help="of the first drawn instance")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=600, help="of a planted gang, about; 0: full")
    parser.add_argument("--load", type=float, default=0.95)
    parser.add_argument("--verbose", action="store_true", help="a line for each instance")
    options = parser.parse_args(arguments)
    seeds = range(options.seed, options.seed + options.small)
    large = range(options.seed, options.seed + options.planted)
    try:
        every = chain(
            chain.from_iterable(read(path) for path in options.files),
            (decided(seed) for seed in seeds),
            _planted(large, options.nodes, options.load, options.pods),
        )
        return report(every, verbose=options.verbose)
    except (OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"gangs: {error!r}\n")
        return 2


def decided(seed: int) -> Instance:
    """A small instance with brute force's answer."""
    drawn = small(seed)
    complete(drawn)
    world = drawn.namespaces, drawn.objects
    can = is_placeable(drawn.nodes, drawn.others, drawn.gang, drawn.needed, *world)
    drawn.expected = {None: "", True: "feasible", False: "infeasible"}[can]
    return drawn


def _planted(seeds: range, nodes: int, load: float, pods: int) -> Iterator[Instance]:
    for seed in seeds:
        for satisfiable in (True, False):
            yield planted(seed, nodes, load=load, pods_max=pods, satisfiable=satisfiable)


def report(instances: Iterator[Instance], *, verbose: bool) -> int:
    """Play all of them; 1 if anything is wrong."""
    counts: Counter[str] = Counter()
    wrong = 0
    within_1_s = 0
    for instance in instances:
        try:
            played = play(instance)
        except Exception as error:  # noqa: BLE001 - to the others of the corpus it does not matter
            ended = f"the scheduler ended: {error!r}"
            played = Played(instance.name, "ended", "", 0.0, instance.expected, broken=ended)
        # What one pod after the other finds stands: then there was nothing to search.
        may_be = not played.broken and (played.places or instance.expected != "infeasible")
        plain = play(instance, search=False) if may_be else None
        if plain and plain.places and plain.places != played.places:
            played.broken = "pods one after the other were placed elsewhere"
        counts[f"{instance.expected or 'not decided'}: {played.result}"] += 1
        counts["found by the search"] += bool(played.places and plain and not plain.places)
        searched_s = played.seconds - (plain.seconds if plain else 0.0)
        within_1_s += played.result == "placed" and searched_s <= 1.0
        if played.is_wrong:
            wrong += 1
        if verbose or played.is_wrong:
            sys.stdout.write(_line(played, searched_s))
    for what, count in sorted(counts.items()):
        sys.stdout.write(f"{count:8d}  {what}\n")
    sys.stdout.write(f"{within_1_s:8d}  placed after at most a second of processor time\n")
    sys.stdout.write(f"{wrong:8d}  wrong\n")
    return 1 if wrong else 0


def _line(played: Played, searched_s: float) -> str:
    why = played.broken or played.said
    took = f"{played.seconds - searched_s:.2f} s + {searched_s:.2f} s"
    return f"{played.name}: {played.result}, expected {played.expected}, {took}. {why}\n"


if __name__ == "__main__":
    sys.exit(main())
