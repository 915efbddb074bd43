"""The end state of a mixed workload, read from the API and judged by rules written for it alone.

Amounts, taints, selectors and host ports by `lab/sim/checker.py`; here required affinity, required
anti-affinity and hard spread. Nothing of the scheduler's code is asked.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from asched_lab.sim.checker import EndState, apart, selected, skews

Json = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def broken_rules(nodes: Sequence[Json], pods: Sequence[Json]) -> list[str]:
    """One line per broken rule, among the pods that have a node."""
    placed = [pod for pod in pods if pod["spec"].get("nodeName")]
    there = {node["metadata"]["name"]: node for node in nodes}
    found = EndState(nodes, pods).broken_rules()
    found += skews(nodes, placed)
    found += [f"{_name(a)} and {_name(b)} must be apart" for a, b in _too_near(placed, there)]
    found += [f"{_name(pod)} misses the company it asks for" for pod in _alone(placed, there)]
    return found


def _too_near(placed: Sequence[Json], nodes: dict[str, Json]) -> Iterator[tuple[Json, Json]]:
    picky = [pod for pod in placed if "podAntiAffinity" in (pod["spec"].get("affinity") or {})]
    for pod in picky:
        for other in placed:
            if other is not pod and apart(pod, other, nodes):
                yield pod, other


def _alone(placed: Sequence[Json], nodes: dict[str, Json]) -> Iterator[Json]:
    """Pods with a required affinity term whose domain holds nobody it speaks of.

    The first of a group that speaks of itself may be alone, and nobody else of it may then be
    elsewhere; so the pod itself counts.
    """
    for pod in placed:
        rules = (pod["spec"].get("affinity") or {}).get("podAffinity") or {}
        for term in rules.get(REQUIRED) or ():
            domain = _domain(pod, term["topologyKey"], nodes)
            if not any(
                _domain(other, term["topologyKey"], nodes) == domain
                and other["metadata"]["namespace"] == pod["metadata"]["namespace"]
                and selected(term["labelSelector"], other)
                for other in placed
            ):
                yield pod


def _domain(pod: Json, key: str, nodes: dict[str, Json]) -> str | None:
    labels = nodes[pod["spec"]["nodeName"]]["metadata"].get("labels") or {}
    found: str | None = labels.get(key)
    return found


def _name(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
