"""How often a kubelet refuses somebody beside a foreign binder, with and without the room we leave.

    python -m tests.sim.clash_rate BINDINGS

Both live the same lives of the scenario Contested, one after the other, until so many pods of both
schedulers were bound.
"""

import logging
import sys
from collections import Counter
from unittest.mock import patch

from asched.core.cluster.refusals import Refusals
from asched_lab.sim.scenario import play
from asched_lab.sim.scenarios import SCENARIOS


def clashes(seed: int, *, leaves_room: bool) -> Counter[str]:
    """What one life of the scenario counted: pods bound by each (`ours`, `theirs`), `refused`."""
    if leaves_room:
        return play(SCENARIOS["Contested"], seed).figures
    with patch.object(Refusals, "crowded", lambda *_: []):
        return play(SCENARIOS["Contested"], seed).figures


def rate(figures: Counter[str]) -> float:
    return figures["refused"] / (figures["ours"] + figures["theirs"])


def main(bindings: int) -> None:
    logging.getLogger("asched").addHandler(logging.NullHandler())
    logging.getLogger("asched").propagate = False
    for leaves_room in (False, True):
        found: Counter[str] = Counter()
        seed = 0
        while found["ours"] + found["theirs"] < bindings:
            found += clashes(seed, leaves_room=leaves_room)
            seed += 1
        how = "room left" if leaves_room else "no room left"
        sys.stdout.write(
            f"{how}: {seed} lives, {dict(found)}, {rate(found):.2%} of all bindings refused\n"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]))
