"""Pod groups decided by the engine: `python -m tests.bench.groups [--rows NAME ...]`.

    bare        20,000 single pods, what everything is compared with
    basic-2     the same pods in 10,000 groups of two without a gang policy
    gang-2      ... with one
    gang-4      5,000 gangs of four, each within one of 50 racks, all racks scored
    gang-1000   20 gangs of a thousand, within a rack each, all racks scored
    label-4     5,000 gangs of four of scheduling.x-k8s.io

Processor time of the machine alone, as in the decide mode: taking pods in, deciding, confirming.
"""

import argparse
import asyncio
import gc
import json
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from asched.core.config.defaults import configuration
from asched.core.config.gates import parse
from asched.core.config.v1 import SchedulerConfiguration
from asched.lab.bench.manifests import scheduled_by
from asched.lab.bench.run_decide import DecideWorld
from tests.bench.crowds import JsonObject, node, pod
from tests.bench.engine import SCHEDULER, TIMEOUT_S, _create

PODS: Final = 20_000
RACKS: Final = 50
RACK: Final = "example.com/rack"
GATES: Final = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
LABEL: Final = "scheduling.x-k8s.io/pod-group"


class Row(NamedTuple):
    size: int
    is_gang: bool = False
    in_rack: bool = False
    by_label: bool = False


ROWS: Final = {
    "bare": Row(0),
    "basic-2": Row(2),
    "gang-2": Row(2, is_gang=True),
    "gang-4": Row(4, is_gang=True, in_rack=True),
    "gang-1000": Row(1000, is_gang=True, in_rack=True),
    "label-4": Row(4, is_gang=True, by_label=True),
}


def settings(row: Row) -> SchedulerConfiguration:
    gates = parse([GATES] if row.size and not row.by_label else []).enabled
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
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
    }


def members(row: Row) -> Iterator[JsonObject]:
    for number in range(PODS):
        made = pod(f"pod-{number:06d}")
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


async def measure(row: Row, nodes: int) -> dict[str, Any]:
    world = DecideWorld(settings(row))
    await _create(world, (racked(i) for i in range(nodes)), "")
    if row.size:
        groups = (group(f"group-{i:06d}", row) for i in range(-(-PODS // row.size)))
        await _create(world, groups, "bench")
    await world.sleep(0.0)
    world.forget_measured()
    started_s = world.now_s
    world.machine.is_active = False
    await _create(world, members(row), "bench")
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
    parser = argparse.ArgumentParser(prog="python -m tests.bench.groups", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=list(ROWS))
    args = parser.parse_args()
    for name in args.rows:
        found = asyncio.run(measure(ROWS[name], args.nodes))
        sys.stdout.write(json.dumps({"row": name, **found}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
