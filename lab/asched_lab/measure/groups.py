"""Pod groups decided by the engine: `python -m asched_lab.measure.groups [--rows NAME ...]`.

    bare        20,000 single pods, the reference
    basic-2     the same pods in 10,000 groups of two without a gang policy
    gang-2      ... with one
    gang-4      5,000 gangs of four, each within one of 50 racks, all racks scored
    gang-1000   20 gangs of a thousand, within a rack each, all racks scored
    label-4     5,000 gangs of four of scheduling.x-k8s.io
    jobs-10     2,000 Jobs of ten pods by the defaults of 1.38: a Basic group of v1 for each
    jobs-bare   the same pods without groups, the reference of jobs-10

Processor time of the machine alone, as in the decide mode: intake, decisions, confirmations. With
`--calls` calls of Python and C functions instead: these are the same on any machine. With
`--beside` each row and its reference at once, alternating turn by turn, in several rounds: the load
of the machine affects both equally.
"""

import argparse
import asyncio
import cProfile
import gc
import json
import statistics
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from asched.core.cluster.facts import Fact
from asched.core.config.defaults import configuration
from asched.core.config.gates import default_gates, parse
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.framework.effects import Effect
from asched_lab.bench.manifests import scheduled_by
from asched_lab.bench.run_decide import DecideWorld
from asched_lab.measure.crowds import JsonObject, indexed_small, node, pod
from asched_lab.measure.engine import CHUNK, SCHEDULER, TIMEOUT_S, create
from asched_lab.replay.counted import CountedLimit

PODS: Final = 20_000
#: Pods whose calls are counted, and pods of each turn of the machine meanwhile.
COUNTED, A_TURN = 2000, 24
RACKS: Final = 50
RACK: Final = "example.com/rack"
GATES: Final = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
LABEL: Final = "scheduling.x-k8s.io/pod-group"


class Row(NamedTuple):
    size: int
    is_gang: bool = False
    in_rack: bool = False
    by_label: bool = False
    #: pods of Jobs by the defaults of 1.38
    of_jobs: bool = False


ROWS: Final = {
    "bare": Row(0),
    "basic-2": Row(2),
    "gang-2": Row(2, is_gang=True),
    "gang-4": Row(4, is_gang=True, in_rack=True),
    "gang-1000": Row(1000, is_gang=True, in_rack=True),
    "label-4": Row(4, is_gang=True, by_label=True),
    "jobs-10": Row(10, of_jobs=True),
    "jobs-bare": Row(0, of_jobs=True),
}


def settings(row: Row) -> SchedulerConfiguration:
    gates = parse([GATES] if row.size and not row.by_label else []).enabled
    if row.of_jobs:
        gates = default_gates("1.38")
    profile: JsonObject = {"schedulerName": SCHEDULER}
    if row.by_label:
        sorts = {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "PrioritySort"}]}
        profile["plugins"] = {"multiPoint": sorts}
    return configuration({"profiles": [profile]}, gates)


def group(name: str, row: Row) -> JsonObject:
    metadata = {"name": name, "namespace": "bench"}
    if row.by_label:
        spec: JsonObject = {"minMember": row.size}
        return {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": metadata,
            "spec": spec,
        }
    policy = {"gang": {"minCount": row.size}} if row.is_gang else {"basic": {}}
    spec = {"schedulingPolicy": policy}
    if row.in_rack:
        spec["schedulingConstraints"] = {"topology": [{"key": RACK}]}
    return {
        "apiVersion": f"scheduling.k8s.io/{'v1' if row.of_jobs else 'v1alpha2'}",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
    }


def members(row: Row, pods: int = PODS) -> Iterator[JsonObject]:
    for number in range(pods):
        made = indexed_small(number) if row.of_jobs else pod(f"pod-{number:06d}")
        if row.size:
            name = f"group-{number // row.size:06d}"
            if row.by_label:
                made["metadata"]["labels"][LABEL] = name
            else:
                made["spec"]["schedulingGroup"] = {"podGroupName": name}
        yield scheduled_by(made, SCHEDULER)


def racked(index: int) -> JsonObject:
    made = node(index)
    made["metadata"]["labels"][RACK] = f"rack-{index % RACKS:02d}"
    return made


async def prepared(row: Row, nodes: int, pods: int) -> DecideWorld:
    """Nodes and PodGroups for `pods` pods, taken in."""
    world = DecideWorld(settings(row))
    await create(world, (racked(i) for i in range(nodes)), "")
    if row.size:
        groups = (group(f"group-{i:06d}", row) for i in range(-(-pods // row.size)))
        await create(world, groups, "bench")
    await world.sleep(0.0)
    return world


class Counting:
    """The machine, counting the calls of its turns."""

    def __init__(self, world: DecideWorld) -> None:
        self._machine = world.machine
        self.profile = cProfile.Profile()

    def handle(self, facts: list[Fact], now_s: float) -> list[Effect]:
        self.profile.enable()
        try:
            return self._machine.handle(facts, now_s)
        finally:
            self.profile.disable()

    @property
    def calls(self) -> int:
        return sum(entry.callcount for entry in self.profile.getstats())


async def count_calls(row: Row, nodes: int, pods: int = COUNTED) -> float:
    """Calls for each of `pods` pods, all taken in before the first is tried, including the watch's
    confirmations; a fifth as many were bound before, to fill caches.
    """
    before, size = pods // 5, max(row.size, 1)
    world = await prepared(row, nodes, before + pods)
    steps = row.size + 1  # a cycle, and each pod's binding in a group
    world.machine.limit = CountedLimit(max(A_TURN // size, 1) * steps - 1)
    waiting = members(row, before + pods)
    await create(world, islice(waiting, before), "bench")
    await world.until(lambda: world.pods.scheduled_count >= before, TIMEOUT_S, "the first pods")
    counting = Counting(world)
    world.handler = counting
    world.machine.is_active = False
    await create(world, waiting, "bench")
    world.take_in()
    world.machine.is_active = True
    await world.until(lambda: world.pods.scheduled_count >= before + pods, TIMEOUT_S, "all pods")
    await world.close()
    return counting.calls / pods


async def measure_beside(row: Row, nodes: int) -> float:
    """The time of the row's pods divided by that of bare pods."""
    both = (ROWS["jobs-bare" if row.of_jobs else "bare"], row)
    worlds = [await prepared(each, nodes, PODS) for each in both]
    waiting = [members(each, PODS) for each in both]
    for world in worlds:
        world.forget_measured()
        world.machine.is_active = False
    started_s = [world.engine_s for world in worlds]
    for _ in range(0, PODS, CHUNK):
        for world, pods in zip(worlds, waiting, strict=True):
            await create(world, islice(pods, CHUNK), "bench")
    for world in worlds:
        world.machine.is_active = True
    while (behind := min(worlds, key=_bound)).pods.scheduled_count < PODS:
        if not behind._turn():
            behind._jump(behind.now_s + TIMEOUT_S)
    for world in worlds:
        world.take_in()
    bare_s, took_s = [w.engine_s - s for w, s in zip(worlds, started_s, strict=True)]
    for world in worlds:
        await world.close()
    gc.collect()
    return took_s / bare_s


def _bound(world: DecideWorld) -> int:
    return world.pods.scheduled_count


async def measure(row: Row, nodes: int) -> dict[str, Any]:
    world = await prepared(row, nodes, PODS)
    world.forget_measured()
    started_s = world.now_s
    world.machine.is_active = False
    await create(world, members(row, PODS), "bench")
    world.take_in()
    intake_s = world.now_s - started_s
    world.machine.is_active = True
    await world.until(lambda: world.pods.scheduled_count >= PODS, TIMEOUT_S, "all pods")
    took_s = world.now_s - started_s
    found = {
        "pods_per_s": round(PODS / took_s, 1),
        "ms_per_pod": round(took_s * 1000 / PODS, 4),
        "intake_ms_per_pod": round(intake_s * 1000 / PODS, 4),
    }
    await world.close()
    gc.collect()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m asched_lab.measure.groups", description=__doc__
    )
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--beside", type=int, default=0, metavar="ROUNDS")
    args = parser.parse_args()
    for name in args.rows:
        if args.calls and ROWS[name].size > COUNTED // 5:
            continue  # the pods that fill caches would be no whole group
        if args.beside:
            rounds = [
                asyncio.run(measure_beside(ROWS[name], args.nodes)) for _ in range(args.beside)
            ]
            found = {
                "to_bare": round(statistics.median(rounds), 3),
                "from": round(min(rounds), 3),
                "to": round(max(rounds), 3),
            }
        elif args.calls:
            calls = asyncio.run(count_calls(ROWS[name], args.nodes))
            found = {"calls_per_pod": round(calls, 1)}
        else:
            found = asyncio.run(measure(ROWS[name], args.nodes))
        sys.stdout.write(json.dumps({"row": name, **found}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
