"""What gangs that wait cost beside Backfill: a first attempt at each, and each pod that ends.

    python -m tests.bench.starts --nodes 5000 --gangs 200 --reservations 1

Gangs of two wait for full nodes. The machine is driven by hand, without the time limit of its
turns, so what is printed is processor time in all. `--reservations 0` leaves Backfill out.

    python -m tests.bench.starts --nodes 5000 --gangs 0 --hopeless 4 --cpus 20

On each node 20 pods whose ends are known, and pods that wait for one CPU more than all nodes have,
then for three: what each costs, and the longest turn.
"""

# ruff: noqa: T201 - a command prints

import argparse
import sys
import time

from asched.core.cluster.facts import Fact, Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP, NODE, POD
from asched.core.model.timestamp import rfc3339
from asched.core.model.workload import CoschedulingGroup
from tests.plays.batch_stage import EPOCH_S, LABEL, Batch, lasting, room
from tests.plays.playbook import Play

ENDS = 5
MEMBERS = 2


class WithoutPromises(Batch):
    def __init__(self) -> None:
        plugins = {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "PrioritySort"}]}
        own = {"schedulerName": "default-scheduler", "plugins": {"multiPoint": plugins}}
        Play.__init__(self, profiles=[own])
        self.places, self.told = {}, {}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.starts", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--gangs", type=int, default=200)
    parser.add_argument("--reservations", type=int, default=1)
    parser.add_argument("--hopeless", type=int, default=0)
    parser.add_argument("--cpus", type=int, default=20)
    options = parser.parse_args(arguments)
    if options.hopeless:
        for cpu in (options.cpus + 1, 3):
            hopeless(options.nodes, options.cpus, options.hopeless, cpu)
    if not options.gangs:
        return 0
    reserved = options.reservations
    play = Batch(args={"reservations": reserved}) if reserved else WithoutPromises()
    began = rfc3339(EPOCH_S)
    play.turn(*(Seen(NODE, room(f"n{at}").build()) for at in range(options.nodes)))
    running = [lasting(f"a{at}", 1_000 + at, cpu=4).on(f"n{at}") for at in range(options.nodes)]
    play.turn(*(Seen(POD, pod.status(startTime=began).build()) for pod in running))
    started_s = time.process_time()
    play.turn(*(fact for at in range(options.gangs) for fact in gang(f"g{at}")))
    settle(play)
    took_s = time.process_time() - started_s
    print(f"a first attempt at each: {took_s:.1f} s, {1000 * took_s / options.gangs:.1f} ms apiece")
    started_s = time.process_time()
    for at in range(ENDS):
        play.end(f"a{at}", after_s=40.0)
        settle(play)
    took_s = time.process_time() - started_s
    print(f"a pod that ends: {1000 * took_s / ENDS:.0f} ms")
    return 0


def hopeless(nodes: int, cpus: int, waiting: int, cpu: int) -> None:
    play, began = Batch(), rfc3339(EPOCH_S)
    play.turn(*(Seen(NODE, room(f"n{at}", cpus).build()) for at in range(nodes)))
    for at in range(nodes):
        ends = range(1_000 + at * cpus, 1_000 + (at + 1) * cpus)
        running = [lasting(f"a{end_s}", end_s).on(f"n{at}") for end_s in ends]
        play.turn(*(Seen(POD, pod.status(startTime=began).build()) for pod in running))
    settle(play)
    took: list[float] = []
    for at in range(waiting):
        facts = [Seen(POD, lasting(f"w{at}", 600 + at, cpu=cpu).build())]
        while facts or play.machine.next_deadline_s() == 0.0:
            started_s = time.process_time()
            play.go(*facts)
            took.append(time.process_time() - started_s)
            facts = []
    each_ms, longest_ms = 1000 * sum(took) / waiting, 1000 * max(took)
    print(f"{cpu} CPUs, {nodes * cpus} pods: {each_ms:.1f} ms each, longest turn {longest_ms:.0f}")


def gang(name: str) -> list[Fact]:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    group = decode(CoschedulingGroup, {"metadata": metadata, "spec": {"minMember": MEMBERS}})
    pods = [lasting(f"{name}-{at}", 600, cpu=4).labels({LABEL: name}) for at in range(MEMBERS)]
    return [Seen(COSCHEDULING_GROUP, group), *(Seen(POD, pod.build()) for pod in pods)]


def settle(play: Batch) -> None:
    """Turn after turn, until the machine asks for no more."""
    while play.machine.next_deadline_s() == 0.0:
        play.go()


if __name__ == "__main__":
    sys.exit(main())
