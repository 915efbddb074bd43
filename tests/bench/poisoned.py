"""How fast everybody else's pods are placed while objects that nobody would write are around.

    python -m tests.bench.poisoned [--nodes 1000] [--pods 3000] [--kinds pods,nodes]
                                   [--search 10] [--objects 20] [--batches 40]

For each kind two machines with the same nodes and placed pods; one is also shown the objects of
that kind that cost most, found by search (tests/poison/search.py, `--search` seconds of processor
time for each), and random ones beside them. Then pods of others come without a pause, a batch to
the one and a batch to the other by turns, and time passes for each as fast as it works; poison
comes with the first batch. So it is tried again as often as backoff allows in the first seconds
after it came, which is when it is tried most. What counts is all processor time of a machine from
then on, whomever it was spent on, and its longest turn. The server takes each binding of others and
refuses poison's.
The row `all` has the worst of each kind together, `pods, worst by list` those of
tests/bench/worst.py.

Exit status: 1 if others are slower than BAR of their usual rate anywhere.
"""

# ruff: noqa: T201 - a command prints

import argparse
import gc
import sys
import time
from collections.abc import Iterable
from random import Random
from typing import Any, Final

import msgspec

from asched.core.cluster.facts import Answer, Bound, Fact, Gone, Refused, Seen
from asched.core.cycle.turn_limit import TimeLimit
from asched.core.framework.effects import Bind
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod
from asched_lab.bench.report import machine_line
from tests.bench.worst import WORST, a_world
from tests.builders import a_pod
from tests.plays.playbook import Play
from tests.poison.life import GATES, POISON, tamed
from tests.poison.made import Maker, read
from tests.poison.search import BYTES_MAX, Cost, Search, outline

BATCH: Final = 200
BAR: Final = 0.9
TURNS_MAX: Final = 5_000
#: Beside poison others are `default-scheduler`'s as well, in a namespace of theirs.
OTHERS: Final = "others"


class Stream:
    """Others' pods on one machine."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._number = 0
        self.answers: list[Fact] = []  # to what was asked for in the last turn
        self._began_s = self._took_s = self._worked_s = 0.0
        self.spent_s = self.longest_s = 0.0
        play.machine.limit = TimeLimit(self._own_s)

    def _own_s(self) -> float:
        """A clock that stands while the other machine works."""
        return self._worked_s + time.thread_time() - self._began_s

    def batch(self) -> None:
        """BATCH pods of two shapes until all are placed; then they are seen there, and go again."""
        pods = []
        for _ in range(BATCH):
            self._number += 1
            pod = a_pod(f"other-{self._number}", OTHERS).priority(1_000).requests(cpu="1m")
            if self._number % 4 == 0:
                pod = pod.selects(zone=f"z{self._number % 10}")
            pods.append(pod.spec(schedulerName="default-scheduler").build())
        node_of: dict[str, str] = {}
        facts: list[Fact] = [*self.answers, *(Seen(POD, pod) for pod in pods)]
        for _ in range(TURNS_MAX):
            effects = self._turn(facts)
            self.answers = facts = [_answer(effect) for effect in effects if effect.answers]
            binds = [effect for effect in effects if isinstance(effect, Bind)]
            node_of |= {one.pod.uid: one.node for one in binds if one.pod.namespace == OTHERS}
            if len(node_of) == BATCH:
                break
        else:
            raise AssertionError(f"{BATCH - len(node_of)} others wait")
        placed = [pod.on(node_of[pod.uid]) for pod in pods]
        for kind in (Seen, Gone):
            effects = self._turn([*self.answers, *(kind(POD, pod) for pod in placed)])
            self.answers = [_answer(effect) for effect in effects if effect.answers]

    def _turn(self, facts: Iterable[Fact]) -> list[Any]:
        self._began_s = time.thread_time()
        effects = self._play.turn(*facts, after_s=self._took_s)
        self._took_s = time.thread_time() - self._began_s
        self._worked_s += self._took_s
        self.spent_s += self._took_s
        self.longest_s = max(self.longest_s, self._took_s)
        return list(effects)


def _answer(effect: Any) -> Answer:
    if isinstance(effect, Bind) and effect.pod.namespace == OTHERS:
        return Bound(effect.id)
    return Refused(effect.id, 404 if isinstance(effect, Bind) else 409, "no")


def poison(seed: int, worst: Iterable[Cost], random_ones: int, kinds: list[Any]) -> list[Fact]:
    """The worst ones, and as many random ones."""
    random = Random(seed)
    maker = Maker(random)
    found = [(cost.kind, cost.document) for cost in worst]
    for _ in range(random_ones):
        kind = random.choice(kinds)
        found.append((kind, tamed(random, kind, maker.document(kind))))
    facts: list[Fact] = []
    for number, (kind, document) in enumerate(found):
        document["metadata"]["name"] = f"poison-{number}"
        document["metadata"]["uid"] = f"uid-poison-{number}"
        obj = read(kind, document)
        if obj is not None:
            facts.append(Seen(kind, obj))
    return facts


def listed() -> list[Fact]:
    """Pods of every shape of tests/bench/worst.py, as large as the search makes them; decoded, with
    maps in the order of the API server.
    """
    facts: list[Fact] = []
    for number, shape in enumerate(WORST.values()):
        each = len(msgspec.json.encode(shape(a_pod("one"), 1000).build())) / 1000
        pod = shape(a_pod(f"listed-{number}"), int(BYTES_MAX / each)).build()
        written = msgspec.json.encode(pod, order="deterministic")
        facts.append(Seen(POD, msgspec.json.decode(written, type=Pod)))
    return facts


def measured(name: str, facts: list[Fact], size: tuple[int, int], batches: int) -> float:
    """The rate as a share of the one without; prints a line."""
    plays = [a_world(*size, gates=GATES) for _ in range(2)]
    streams = [Stream(play) for play in plays]
    for stream in streams:
        stream.batch()  # what is made once
        stream.spent_s = stream.longest_s = 0.0
    streams[1].answers += facts
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection is nobody's cost
    for _ in range(batches):
        for stream in streams:
            stream.batch()
            gc.collect(0)
    gc.enable()
    clean, poisoned = streams
    share = clean.spent_s / poisoned.spent_s
    rates = [BATCH * batches / stream.spent_s for stream in streams]
    print(
        f"{name:24} {len(facts):7} {rates[0]:9,.0f} {rates[1]:9,.0f} {share:6.0%}"
        f" {clean.longest_s * 1000:8.0f} {poisoned.longest_s * 1000:8.0f}",
        flush=True,
    )
    gc.unfreeze()
    return share


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.poisoned",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--kinds", default="", help="plurals, comma-separated (all)")
    parser.add_argument("--search", type=float, default=10.0, help="seconds for each kind")
    parser.add_argument("--objects", type=int, default=20, help="the worst, and random ones")
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="which objects these are")
    args = parser.parse_args()
    size = args.nodes, args.pods
    kinds = list(dict.fromkeys(POISON))
    if args.kinds:
        kinds = [kind for kind in kinds if kind.plural in args.kinds.split(",")]
    print(machine_line())
    print(f"{'kind':24} objects  others/s      with  share  turn ms     with")
    shares, everything = [], list[Cost]()
    for kind in kinds:
        search = Search(args.seed, *size, kinds=(kind,))
        search.run(args.search)
        gc.enable()
        gc.unfreeze()
        worst = search.best[: args.objects]
        everything += worst[:3]
        if args.show:
            print("".join(f"{outline(cost)}\n" for cost in worst), end="")
        del search
        facts = poison(args.seed, worst, args.objects, [kind])
        shares.append(measured(kind.plural, facts, size, args.batches))
    if POD in kinds:
        shares.append(measured("pods, worst by list", listed(), size, args.batches))
    if len(kinds) > 1:
        facts = poison(args.seed, everything, args.objects, kinds)
        shares.append(measured("all", facts, size, args.batches))
    return 1 if min(shares) < BAR else 0


if __name__ == "__main__":
    sys.exit(main())
