"""What the live view costs the deciding loop: its long looks, slice by slice.

    python -m tests.bench.view [--nodes 5000] [--pods 100000]

So many pods wait, each refused by all nodes with a reason of its own kind (a few hundred classes
are really tried, the others are entered beside them with the same lines in the history). Each look
is taken ROUNDS times, as the view takes it; a slice is what runs between two turns of the others,
in CPU time of this thread.

Exit status: 0 if no slice took longer than SLICE_MS_MAX, 1 if one did.
"""

# ruff: noqa: T201 - a command prints

import argparse
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

import orjson

from asched.core.cluster.facts import Seen
from asched.core.model.kinds import NODE
from asched.core.queue.queued import QueuedPod
from asched.serve.view.cells import cells
from asched.serve.view.gangs import waiting_gangs
from asched.serve.view.waiting import TOLD, grouped
from asched_lab.bench.report import commit, machine_line
from tests.builders import a_node, a_pod
from tests.plays.playbook import Play

ROUNDS = 5
TRIED = 300
#: The deciding loop's own turns take 4 ms; a host that is shared doubles it now and then.
SLICE_MS_MAX = 8.0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.view", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000, metavar="N")
    parser.add_argument("--pods", type=int, default=100_000, metavar="N")
    args = parser.parse_args(argv)
    print(machine_line(), f"commit {commit() or 'unknown'}", sep="; ", flush=True)
    context = a_crowd(args.nodes, args.pods).machine.context
    looks: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
        "why pods wait": lambda: grouped(context.queue, context.histories, 5.0),
        "gangs": lambda: waiting_gangs(context),
        "nodes": lambda: cells(context.cluster),
    }
    print(
        f"{'look':14} {'slices':>7} {'median ms':>10} {'longest ms':>11} {'sum ms':>8} {'bytes':>8}"
    )
    longest = 0.0
    for name, look in looks.items():
        taken: list[float] = []
        for _ in range(ROUNDS):
            one, found = steps_of(look())
            taken += one
        taken.sort()
        longest = max(longest, taken[-1])
        print(
            f"{name:14} {len(taken) // ROUNDS:>10} {taken[len(taken) // 2]:>10.2f}"
            f" {taken[-1]:>10.2f} {sum(taken) / ROUNDS:>10.1f} {len(orjson.dumps(found)):>10}",
            flush=True,
        )
    return 0 if longest <= SLICE_MS_MAX else 1


def a_crowd(nodes: int, pods: int) -> Play:
    play = Play()
    for at in range(nodes):
        amounts = {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4"}
        node = a_node(f"ip-10-{at // 250}-{at % 250}.eu-west-1.compute.internal")
        play.turn(Seen(NODE, node.allocatable(amounts).build()))
    for at in range(TRIED):
        play.see(a_pod(f"web-{at}").requests(cpu=str(100 + at % 50), memory=f"{at + 1}Ki"))
    queue, histories = play.machine.context.queue, play.machine.context.histories
    tried = queue.places.all()
    for at in range(pods - len(tried)):
        like = tried[at % len(tried)]
        queued = QueuedPod(like.pod, 1.0)
        queued.key, queued.rejected_by = f"default/many-{at}", like.rejected_by
        queue.places._queued[queued.key] = queued
        line = histories.newest(like.key, TOLD)
        assert line is not None
        histories.tell(queued.key, 1.0, at, line.step, line.details)
    return play


def steps_of(look: Coroutine[Any, Any, Any]) -> tuple[list[float], Any]:
    """(milliseconds of each slice, what was found)."""
    taken = []
    while True:
        begun_s = time.thread_time()
        try:
            look.send(None)
        except StopIteration as end:
            taken.append(1000 * (time.thread_time() - begun_s))
            return taken, end.value
        taken.append(1000 * (time.thread_time() - begun_s))


if __name__ == "__main__":
    sys.exit(main())
