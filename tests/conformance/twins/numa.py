"""Twins of NodeResourceTopologyMatch: one node and pod, in plain Python over JSON and Fractions."""

import itertools
from fractions import Fraction
from typing import Any

from asched.core.model.quantity import parse

Json = dict[str, Any]
Amounts = dict[str, Fraction]


def attribute(topology: Json, name: str, default: str) -> str:
    return next((a["value"] for a in topology.get("attributes", ()) if a["name"] == name), default)


def zones_of(topology: Json) -> list[Json]:
    """Each {number, resources, costs}."""
    return [
        {
            "number": int(zone["name"].removeprefix("node-")),
            "resources": {r["name"]: parse(r["available"]) for r in zone["resources"]},
            "costs": {int(c["name"].removeprefix("node-")): c["value"] for c in zone["costs"]},
        }
        for zone in topology["zones"]
        if zone["type"] == "Node"
    ]


def request_of(container: Json) -> Amounts:
    given = container.get("resources", {}).get("requests", {})
    return {name: parse(amount) for name, amount in given.items()}


def effective(pod: Json) -> Amounts:
    spec = pod["spec"]
    total: Amounts = {}
    for container in spec["containers"]:
        for name, amount in request_of(container).items():
            total[name] = total.get(name, Fraction(0)) + amount
    for container in spec.get("initContainers", ()):
        for name, amount in request_of(container).items():
            total[name] = max(total.get(name, amount), amount)
    return total


def qos(pod: Json) -> str:
    """Of containers that set requests or limits of cpu and memory."""
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]
    resources = [c.get("resources", {}) for c in containers]
    computed = [
        {kind: of_qos(r.get(kind, {})) for kind in ("requests", "limits")} for r in resources
    ]
    if not any(r["requests"] or r["limits"] for r in computed):
        return "BestEffort"
    if all(len(r["limits"]) == 2 and r["limits"] == r["requests"] for r in computed):
        return "Guaranteed"
    return "Burstable"


def of_qos(amounts: Json) -> Json:
    return {name: amount for name, amount in amounts.items() if name in ("cpu", "memory")}


def filter_one(pod: Json, node: Json, topology: Json) -> str:
    """The message, empty where it fits."""
    kind = qos(pod)
    names = [n for c in pod["spec"]["containers"] for n in request_of(c)]
    if kind == "BestEffort" and all("/" not in name for name in names):
        return ""
    if attribute(topology, "topologyManagerPolicy", "none") != "single-numa-node":
        return ""
    zones = zones_of(topology)
    if attribute(topology, "topologyManagerScope", "container") == "pod":
        return "" if chosen(effective(pod), kind, node, zones) is not None else "cannot align pod"
    for container in pod["spec"].get("initContainers", ()):
        if chosen(request_of(container), kind, node, zones) is None:
            return "cannot align init container"
    for container in pod["spec"]["containers"]:
        asked = request_of(container)
        number = chosen(asked, kind, node, zones)
        if number is None:
            return "cannot align container"
        for zone in zones:
            if zone["number"] == number:
                for name, amount in asked.items():
                    if name in zone["resources"] and not anywhere(name, kind):
                        zone["resources"][name] -= amount
    return ""


def anywhere(name: str, kind: str) -> bool:
    return kind != "Guaranteed" and (name in ("cpu", "memory") or name.startswith("hugepages-"))


def chosen(asked: Amounts, kind: str, node: Json, zones: list[Json]) -> int | None:
    """The lowest zone with room for all of it."""
    possible = set(range(64))
    for name, amount in asked.items():
        if not amount:
            continue
        if name not in node["status"]["allocatable"]:
            return None
        listing = [zone for zone in zones if name in zone["resources"]]
        if not listing and (name == "ephemeral-storage" or "/" in name):
            continue
        possible &= {
            zone["number"]
            for zone in listing
            if anywhere(name, kind) or zone["resources"][name] >= amount
        }
    return min(possible, default=None)


def score_one(pod: Json, topology: Json, strategy: str, weights: dict[str, int]) -> int:
    if qos(pod) != "Guaranteed":
        return 100
    scope = attribute(topology, "topologyManagerScope", "container")
    zones = zones_of(topology)
    containers = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    if strategy == "LeastNUMANodes":
        zones_max = int(attribute(topology, "topologyManagerMaxNUMANodes", "8"))
        asked = [effective(pod)] if scope == "pod" else [request_of(c) for c in containers]
        return least_numa(asked, zones, zones_max)
    if attribute(topology, "topologyManagerPolicy", "none") != "single-numa-node":
        return 0
    if scope == "pod":
        return node_score(effective(pod), zones, strategy, weights)
    scores = [node_score(request_of(c), zones, strategy, weights) for c in containers]
    return int(Fraction(sum(scores), len(scores)))


def node_score(asked: Amounts, zones: list[Json], strategy: str, weights: dict[str, int]) -> int:
    scores = [zone_score(asked, zone["resources"], strategy, weights) for zone in zones]
    return min((score for score in scores if score), default=0)


def zone_score(asked: Amounts, held: Amounts, strategy: str, weights: dict[str, int]) -> int:
    if strategy == "BalancedAllocation":
        shares = []
        for name, amount in asked.items():
            there = up(held.get(name, Fraction(0)))
            share = up(amount) / there if there else 1.0
            if share > 1:
                return 0
            shares.append(share)
        mean = sum(shares) / len(shares)
        variance = sum((share - mean) ** 2 for share in shares) / (len(shares) - 1)
        return int((1 - variance) * 100)
    total = divisor = 0
    for name, amount in asked.items():
        there, weight = held.get(name, Fraction(0)), weights.get(name, 1)
        divisor += weight
        if there and amount <= there:
            left = up(there) - up(amount) if strategy == "LeastAllocated" else up(amount)
            total += weight * (left * 100 // up(there))
    return total // divisor


def up(amount: Fraction) -> int:
    return -(-amount.numerator // amount.denominator)


def least_numa(requests: list[Amounts], zones: list[Json], zones_max: int) -> int:
    most, all_near = 0, True
    for asked in requests:
        if not any(name in zone["resources"] for name in asked for zone in zones):
            continue
        found = needed(asked, zones)
        if found is None:
            return 0
        members, near = found
        all_near &= near
        most = max(most, len(members))
        for name, amount in asked.items():
            left = amount
            for at in members:
                if name in zones[at]["resources"]:
                    taken = min(left, zones[at]["resources"][name])
                    zones[at]["resources"][name] -= taken
                    left -= taken
    if not most:
        return 100
    width = 100 // zones_max
    return 100 - most * width + (width // 2 if all_near else 0)


def needed(asked: Amounts, zones: list[Json]) -> tuple[tuple[int, ...], bool] | None:
    for size in range(1, len(zones) + 1):
        sets = list(itertools.combinations(range(len(zones)), size))
        nearest = min(255, *(distance(one, zones) for one in sets))
        best, best_at = None, Fraction(256)
        for one in sets:
            fits = all(
                all(name in zones[at]["resources"] for at in one)
                and sum(zones[at]["resources"][name] for at in one) >= amount
                for name, amount in asked.items()
            )
            if not fits:
                continue
            if distance(one, zones) == nearest:
                return one, True
            if distance(one, zones) < best_at:
                best, best_at = one, distance(one, zones)
        if best is not None:
            return best, False
    return None


def distance(members: tuple[int, ...], zones: list[Json]) -> Fraction:
    total = sum(zones[a]["costs"].get(zones[b]["number"], 255) for a in members for b in members)
    return Fraction(total, len(members) ** 2)
