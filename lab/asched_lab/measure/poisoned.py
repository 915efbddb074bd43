"""How fast ordinary pods are placed beside pods that are made to be expensive.

    python -m asched_lab.measure.poisoned [--nodes 1000] [--pods 3000] [--kilobytes 500]
                                          [--batches 40]

Two machines have the same nodes and placed pods; one of them also gets a pod of every shape of
`worst_pods.py`, as large as given. Then ordinary pods of another namespace come without a pause, a
batch for each machine, alternating, and the time of each advances as fast as it works. The large
pods come with the first batch, so they are tried again as often as backoff allows in the first
seconds. All processor time of a machine counts, and its longest turn. Bindings of ordinary pods
succeed, those of the large pods are refused.

Exit status: 1 if ordinary pods are placed at less than BAR of their usual rate.
"""

# ruff: noqa: T201 - a command prints

import argparse
import gc
import sys
import time
from collections.abc import Iterable
from typing import Final

import msgspec

from asched.core.cluster.facts import Answer, Bound, Fact, Gone, Refused, Seen
from asched.core.cycle.turn_limit import TurnLimit
from asched.core.framework.effects import Bind, Effect
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod
from asched_lab.bench.report import machine_line
from asched_lab.measure.stepped import (
    GANG_GATES,
    ZONES,
    Json,
    SteppedMachine,
    a_pod,
    a_world,
    on_node,
    record_of,
)
from asched_lab.measure.worst import filled
from asched_lab.measure.worst_pods import SHAPES

BATCH: Final = 200
BAR: Final = 0.9
TURNS_MAX: Final = 5_000
NAMESPACE: Final = "ordinary"


class Stream:
    """Ordinary pods on one machine."""

    def __init__(self, world: SteppedMachine) -> None:
        self._world = world
        self._number = 0
        self.answers: list[Fact] = []  # to the effects of the last turn
        self._began_s = self._took_s = self._worked_s = 0.0
        self.spent_s = self.longest_s = 0.0
        world.machine.limit = TurnLimit(self._own_s)

    def _own_s(self) -> float:
        """A clock that stands while the other machine works."""
        return self._worked_s + time.thread_time() - self._began_s

    def batch(self) -> None:
        """Place BATCH pods of two shapes; then they are seen there, and go again."""
        pods = []
        for _ in range(BATCH):
            self._number += 1
            spec: Json = {"priority": 1_000}
            if self._number % 4 == 0:
                spec["nodeSelector"] = {"zone": f"z{self._number % ZONES}"}
            pod = a_pod(f"pod-{self._number}", cpu="1m", namespace=NAMESPACE, **spec)
            pods.append(record_of(pod))
        node_of: dict[str, str] = {}
        facts: list[Fact] = [*self.answers, *(Seen(POD, pod) for pod in pods)]
        for _ in range(TURNS_MAX):
            effects = self._turn(facts)
            self.answers = facts = [_answer(effect) for effect in effects if effect.answers]
            binds = [effect for effect in effects if isinstance(effect, Bind)]
            node_of |= {
                bind.pod.uid: bind.node for bind in binds if bind.pod.namespace == NAMESPACE
            }
            if len(node_of) == BATCH:
                break
        else:
            raise AssertionError(f"{BATCH - len(node_of)} ordinary pods wait")
        placed = [on_node(pod, node_of[pod.uid]) for pod in pods]
        for kind in (Seen, Gone):
            effects = self._turn([*self.answers, *(kind(POD, pod) for pod in placed)])
            self.answers = [_answer(effect) for effect in effects if effect.answers]

    def _turn(self, facts: Iterable[Fact]) -> list[Effect]:
        self._began_s = time.thread_time()
        effects = self._world.turn(*facts, after_s=self._took_s)
        self._took_s = time.thread_time() - self._began_s
        self._worked_s += self._took_s
        self.spent_s += self._took_s
        self.longest_s = max(self.longest_s, self._took_s)
        return effects


def _answer(effect: Effect) -> Answer:
    if isinstance(effect, Bind) and effect.pod.namespace == NAMESPACE:
        return Bound(effect.id)
    return Refused(effect.id, 404 if isinstance(effect, Bind) else 409, "no")


def large_pods(kilobytes: int) -> list[Fact]:
    """A pod of every shape, decoded with maps in the order of the API server."""
    facts: list[Fact] = []
    for number, shape in enumerate(SHAPES):
        pod = record_of(filled(f"large-{number}", shape, kilobytes * 1000))
        written = msgspec.json.encode(pod, order="deterministic")
        facts.append(Seen(POD, msgspec.json.decode(written, type=Pod)))
    return facts


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m asched_lab.measure.poisoned",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--kilobytes", type=int, default=500)
    parser.add_argument("--batches", type=int, default=40)
    args = parser.parse_args()
    streams = [Stream(a_world(args.nodes, args.pods, gates=GANG_GATES)) for _ in range(2)]
    for stream in streams:
        stream.batch()  # fills caches
        stream.spent_s = stream.longest_s = 0.0
    streams[1].answers += large_pods(args.kilobytes)
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection belongs to no machine
    for _ in range(args.batches):
        for stream in streams:
            stream.batch()
            gc.collect(0)
    gc.enable()
    print(machine_line())
    print(f"{'beside':16} {'pods/s':>9} {'turn ms':>8}")
    for name, stream in zip(("nothing", f"{len(SHAPES)} large pods"), streams, strict=True):
        rate = BATCH * args.batches / stream.spent_s
        print(f"{name:16} {rate:9,.0f} {stream.longest_s * 1000:8.0f}")
    share = streams[0].spent_s / streams[1].spent_s
    print(f"share: {share:.0%}")
    return 1 if share < BAR else 0


if __name__ == "__main__":
    sys.exit(main())
