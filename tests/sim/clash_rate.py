"""How often a kubelet refuses a pod beside another scheduler that binds at random.

    python -m tests.sim.clash_rate BINDINGS

Runs the scenario Contested, seed after seed, until so many pods of both schedulers were bound.
"""

import logging
import sys
from collections import Counter

from asched_lab.sim.scenario import play
from asched_lab.sim.scenarios import SCENARIOS


def main(bindings: int) -> None:
    logging.getLogger("asched").addHandler(logging.NullHandler())
    logging.getLogger("asched").propagate = False
    counts: Counter[str] = Counter()
    seed = 0
    while counts["ours"] + counts["theirs"] < bindings:
        counts += play(SCENARIOS["Contested"], seed).figures
        seed += 1
    share = counts["refused"] / (counts["ours"] + counts["theirs"])
    sys.stdout.write(f"{seed} runs, {dict(counts)}, {share:.2%} of all bindings refused\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
