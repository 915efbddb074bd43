"""How long it takes to find the smallest change of each kind that makes a pod fit.

    python -m tests.bench.suggest [--nodes 5000] [--rounds 5]

A full cluster of several sizes of nodes in three zones, tainted ones, nodes with devices and
budgets among them; pods that wait for one thing each, alone, with 32 equals, and as a gang of 16.
Told is the processor time of one explanation, all kinds in it: the median and the longest, in ms.
"""

# ruff: noqa: T201 - a command prints

import argparse
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from asched.core.cluster.facts import Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    DEVICE_CLASS,
    NODE,
    POD,
    POD_DISRUPTION_BUDGET,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    Kind,
)
from asched.core.model.pod import Pod
from asched.insight.explain.changes import changes
from tests.plays.playbook import Play

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
EQUALS, GANG = 32, 16
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}


def node(number: int) -> Json:
    name = f"n{number:05}"
    cores = (4, 8, 16)[number % 3]
    labels = {ZONE: "abc"[number % 3], "kubernetes.io/hostname": name, "disk": "hdd"}
    return {
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {"taints": [TAINT]} if number % 10 == 0 else {},
        "status": {"allocatable": {"cpu": str(cores), "memory": f"{4 * cores}Gi", "pods": "110"}},
    }


def pod(name: str, cpu: str, **spec: Any) -> Json:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    labels = {"app": spec.pop("app", "w")}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels},
        "spec": {"schedulerName": "default-scheduler", "containers": [container], **spec},
    }


def crowd(nodes: int) -> Iterator[tuple[Kind, Json]]:
    """Three quarters of each node are taken, by pods of some priorities; budgets keep some."""
    yield DEVICE_CLASS, {"metadata": {"name": "gpu"}}
    for number in range(nodes):
        yield NODE, node(number)
        name, quarter = f"n{number:05}", (1000, 2000, 4000)[number % 3]
        for part in range(3):
            spec = {"nodeName": name, "priority": part, "app": f"a{number % 20}"}
            yield POD, pod(f"p{number}-{part}", f"{quarter}m", **spec)
        if number % 10 == 5:
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            devices = [{"name": f"d{n}"} for n in range(4)]
            spec = {"driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": devices}
            yield RESOURCE_SLICE, {"metadata": {"name": name}, "spec": spec}
    for number in range(0, 20, 2):
        yield (
            POD_DISRUPTION_BUDGET,
            {
                "metadata": {"name": f"b{number}", "namespace": "default", "uid": f"b{number}"},
                "spec": {"selector": {"matchLabels": {"app": f"a{number}"}}},
                "status": {"disruptionsAllowed": 0},
            },
        )
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 6}
    claim = {"requests": [{"name": "r", "exactly": exactly}]}
    metadata = {"name": "six", "namespace": "default", "uid": "six"}
    yield RESOURCE_CLAIM, {"metadata": metadata, "spec": {"devices": claim}}


def cases() -> Iterator[tuple[str, Json]]:
    """What a pod may wait for."""
    selector = {"labelSelector": {"matchLabels": {"app": "w"}}}
    hard = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **selector}
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [{**selector, "topologyKey": ZONE}]}
    yield "room", pod("w", "5", priority=9)
    yield "labels", pod("w", "1", priority=9, nodeSelector={"disk": "ssd"})
    yield "spread", pod("w", "5", priority=9, topologySpreadConstraints=[hard])
    yield "apart", pod("w", "5", priority=9, affinity={"podAntiAffinity": apart})
    yield "devices", pod("w", "1", resourceClaims=[{"name": "c", "resourceClaimName": "six"}])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    play = Play()
    play.machine.is_active = False
    play.turn(*(Seen(kind, decode(kind.record, obj)) for kind, obj in crowd(args.nodes)))
    while play.machine.is_taking_in:
        play.turn()
    context = play.machine.context
    runner = context.runners["default-scheduler"]
    print(f"{args.nodes} nodes, {args.rounds} rounds: median, longest in ms of processor time")
    for name, wanted in cases():
        for company, count, needed in (
            ("alone", 0, 1),
            ("equals", EQUALS, 1),
            ("gang", GANG, GANG),
        ):
            if company == "gang" and name == "devices":
                continue
            first: Pod = decode(POD.record, wanted)
            others = [
                decode(
                    POD.record,
                    {**wanted, "metadata": {**wanted["metadata"], "uid": f"u{n}", "name": f"w{n}"}},
                )
                for n in range(count)
            ]
            spent, kinds = [], []
            for _ in range(args.rounds):
                started_s = time.process_time()
                found = changes(runner, context.nominator, first, others, needed)
                spent.append((time.process_time() - started_s) * 1e3)
                kinds = [change.kind for change in found]
            print(
                f"  {name:<8}{company:<8}{median(spent):7.0f}{max(spent):7.0f}  {', '.join(kinds)}"
            )


if __name__ == "__main__":
    main()
