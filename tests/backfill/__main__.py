"""Replays batch workloads with Backfill and prints what was kept, beside EASY.

    python -m tests.backfill --jobs 10000 --processors 48 --load 0.9 --seed 1

Two things are judged: no start comes later than it was first promised without a named cause, and
the cluster is not emptier than with EASY, less three points. The exit status is 0 if both hold.
"""

import argparse
import sys
import time
from statistics import fmean

from asched.batch.backfill.expected_ends import GRACE_S
from tests.backfill.easy import Easy, utilisation
from tests.backfill.replay import Replay
from tests.backfill.workload import Job, jobs

#: Points (per cent of the cluster) that may be lost.
POINTS_MAX = 3.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.backfill", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--processors", type=int, default=48)
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pace", type=float, default=10.0, help="times are divided by it")
    parser.add_argument("--reservations", type=int, default=1)
    options = parser.parse_args(arguments)
    drawn = jobs(options.seed, options.jobs, options.processors, options.load, options.pace)
    ours = Replay(
        options.processors, {"reservations": options.reservations, "horizonSeconds": 31 * 86_400}
    )
    began_s = time.process_time()
    started = ours.run(drawn)
    cpu_s = time.process_time() - began_s
    easy = Easy(options.processors, GRACE_S).run(drawn)
    say = sys.stdout.write
    say(
        f"seed {options.seed}: {len(drawn)} jobs, {options.processors} processors,"
        f" load {options.load}\n"
    )
    shares = []
    for name, starts in (("Backfill", started), ("EASY", easy)):
        share = 100 * utilisation(drawn, starts, options.processors)
        shares.append(share)
        say(f"{name:9} utilisation {share:5.1f} %  {_waits(drawn, starts)}\n")
    broken = ours.broken()
    promised = [kept for kept in ours.kept.values() if kept.promises]
    say(f"promised to {len(promised)}; {ours.outcomes}; {ours.turns} turns, {cpu_s:.0f} s of CPU\n")
    for line in broken[:20]:
        say(f"BROKEN {line}\n")
    missing = len(drawn) - len(started)
    say(f"{len(broken)} broken promises, {missing} jobs never started\n")
    return int(bool(broken) or bool(missing) or shares[0] < shares[1] - POINTS_MAX)


def _waits(drawn: list[Job], starts: dict[str, float]) -> str:
    waits = {job.name: starts[job.name] - job.arrives_s for job in drawn if job.name in starts}
    large = sorted(drawn, key=lambda job: -job.size)[: max(len(drawn) // 10, 1)]
    worst = max((waits[job.name] for job in large if job.name in waits), default=0.0)
    return f"mean wait {fmean(waits.values()):7.0f} s, largest tenth at most {worst:8.0f} s"


if __name__ == "__main__":
    sys.exit(main())
