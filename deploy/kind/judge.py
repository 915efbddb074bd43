#!/usr/bin/env python3
"""Reads `kubectl get pods -o json` and reports how fast pods were placed, and whether correctly.

    judge.py progress           how many are bound, as one number
    judge.py report [NODES]     the rate from the PodScheduled conditions, and the checks; NODES is
                                a file with `kubectl get nodes -o json`

The rate is taken from the first placement to the last, because
creating the pods takes longer than placing them. Both come from the API server's whole seconds, so
a run of a few seconds is good to one second. Never time to Running: that measures the simulation.
Exit status: 0 every pod is placed and no node is overcommitted, 1 if not, 2 for wrong use.
"""

import json
import sys
from collections import Counter
from datetime import datetime
from fractions import Fraction

UNITS = {"m": Fraction(1, 1000), "": Fraction(1), "Ki": Fraction(2**10), "Mi": Fraction(2**20),
         "Gi": Fraction(2**30)}  # fmt: skip
RESOURCES = ("cpu", "memory")


def amount(text: str) -> Fraction:
    """A quantity in base units; the units this load uses."""
    digits = text.rstrip("mKMGi")
    return Fraction(digits) * UNITS[text[len(digits) :]]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def placed_at(pod: dict) -> datetime | None:
    """When PodScheduled became true."""
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "True":
            return moment(condition["lastTransitionTime"])
    return None


def requests_of(pod: dict) -> dict[str, Fraction]:
    asked: Counter[str] = Counter()
    for container in pod["spec"]["containers"]:
        for name, text in container.get("resources", {}).get("requests", {}).items():
            asked[name] += amount(text)
    return dict(asked)


def faults(pods: list[dict], nodes: list[dict]) -> list[str]:
    """Unknown nodes, and nodes whose pods exceed their allocatable resources."""
    offered = {node["metadata"]["name"]: node["status"]["allocatable"] for node in nodes}
    used: dict[str, Counter[str]] = {name: Counter() for name in offered}
    found = []
    for pod in pods:
        name = pod["spec"].get("nodeName")
        if not name:
            continue
        if name not in offered:
            found.append(f"{pod['metadata']['name']} is on {name}, which does not exist")
            continue
        used[name]["pods"] += 1
        for resource, value in requests_of(pod).items():
            used[name][resource] += value
    found += [
        f"node {name} is overcommitted in {resource}"
        for name, amounts in used.items()
        for resource in (*RESOURCES, "pods")
        if amounts[resource] > amount(offered[name][resource])
    ]
    return found


def report(pods: list[dict], nodes: list[dict] | None) -> int:
    times = sorted(time for pod in pods if (time := placed_at(pod)) is not None)
    unplaced = len(pods) - len(times)
    if times:
        created = min(moment(pod["metadata"]["creationTimestamp"]) for pod in pods)
        whole_s = (times[-1] - created).total_seconds()
        placing_s = (times[-1] - times[0]).total_seconds()
        print(f"{len(times)} of {len(pods)} pods placed")
        print(f"from the first creation to the last placement: {whole_s:.0f} s")
        print(f"from the first placement to the last: {placing_s:.0f} s,"
              f" {len(times) / max(placing_s, 1.0):.0f} pods per second")  # fmt: skip
    for line in (broken := faults(pods, nodes) if nodes is not None else []):
        print(f"broken: {line}")
    if unplaced:
        print(f"broken: {unplaced} pods are not placed")
    return 1 if broken or unplaced or not times else 0


def main(words: list[str]) -> int:
    """Read the pods from standard input."""
    if not words or words[0] not in ("progress", "report") or len(words) > 2:
        print("usage: judge.py progress | report [NODES]", file=sys.stderr)
        return 2
    pods = json.load(sys.stdin)["items"]
    if words[0] == "progress":
        print(sum(placed_at(pod) is not None for pod in pods))
        return 0
    nodes = None
    if len(words) == 2:
        with open(words[1], encoding="utf-8") as file:
            nodes = json.load(file)["items"]
    return report(pods, nodes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
