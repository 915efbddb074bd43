"""Twin of PodTopologySpread: counts in dictionaries, from every pod on every node, for each
attempt.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from asched.core.model.node import Node
from asched.core.model.pod import Pod, TopologySpreadConstraint
from asched.core.model.selector import Selector, compile_selector
from asched.core.model.taint import tolerated
from tests.conformance.twins.node_affinity import any_term

HOST = "kubernetes.io/hostname"
Placed = list[tuple[Pod, Node]]


class Constraint(NamedTuple):
    max_skew: int
    topology_key: str
    selector: Selector | None
    label_keys: dict[str, str]
    min_domains: int
    affinity_policy: str
    taints_policy: str

    def matches(self, pod: Pod) -> bool:
        if self.selector is None or not self.selector.matches(pod.labels):
            return False
        return all(pod.labels.get(key) == value for key, value in self.label_keys.items())

    @property
    def is_everything(self) -> bool:
        return self.selector is not None and self.selector.is_everything and not self.label_keys

    def includes(self, pod: Pod, node: Node) -> bool:
        spec = pod.spec
        if self.affinity_policy == "Honor":
            wanted = spec.node_selector or {}
            if any(node.labels.get(key) != value for key, value in wanted.items()):
                return False
            affinity = spec.affinity.node_affinity if spec.affinity is not None else None
            required = affinity.required if affinity is not None else None
            if required is not None and not any_term(required.node_selector_terms, node):
                return False
        if self.taints_policy == "Honor":
            tolerations = spec.tolerations or ()
            return all(not t.is_hard or tolerated(t, tolerations) for t in node.spec.taints or ())
        return True


def constraints_of(pod: Pod, action: str) -> list[Constraint]:
    """The pod's own constraints."""
    return [
        _constraint(pod, written)
        for written in pod.spec.topology_spread_constraints or ()
        if written.when_unsatisfiable == action
    ]


def _constraint(pod: Pod, written: TopologySpreadConstraint) -> Constraint:
    keys = written.match_label_keys or ()
    return Constraint(
        written.max_skew,
        written.topology_key,
        compile_selector(written.label_selector),
        {key: pod.labels[key] for key in keys if key in pod.labels},
        1 if written.min_domains is None else written.min_domains,
        written.node_affinity_policy or "Honor",
        written.node_taints_policy or "Ignore",
    )


def _count_on(constraint: Constraint, pod: Pod, node: Node, placed: Placed) -> int:
    if constraint.is_everything:
        return 0
    return sum(
        other.metadata.namespace == pod.metadata.namespace
        and not other.is_terminating
        and constraint.matches(other)
        for other, there in placed
        if there.name == node.name
    )


def _has_keys(node: Node, constraints: list[Constraint]) -> bool:
    return all(constraint.topology_key in node.labels for constraint in constraints)


class Filter:
    """PreFilter's counts per domain; `add` and `remove` are what a trial does to them."""

    def __init__(self, pod: Pod, nodes: Mapping[str, Node], placed: Placed) -> None:
        self.pod = pod
        self.constraints = constraints_of(pod, "DoNotSchedule")
        self.counts: list[dict[str, int]] = [{} for _ in self.constraints]
        for node in nodes.values():
            if not _has_keys(node, self.constraints):
                continue
            for constraint, counts in zip(self.constraints, self.counts, strict=True):
                if constraint.includes(pod, node):
                    value = node.labels[constraint.topology_key]
                    number = _count_on(constraint, pod, node, placed)
                    counts[value] = counts.get(value, 0) + number

    def add(self, other: Pod, node: Node) -> None:
        self._move(other, node, 1)

    def remove(self, other: Pod, node: Node) -> None:
        self._move(other, node, -1)

    def _move(self, other: Pod, node: Node, amount: int) -> None:
        same = other.metadata.namespace == self.pod.metadata.namespace
        if not same or not _has_keys(node, self.constraints):
            return
        for constraint, counts in zip(self.constraints, self.counts, strict=True):
            if constraint.matches(other) and constraint.includes(self.pod, node):
                counts[node.labels[constraint.topology_key]] += amount

    def code(self, node: Node) -> int:
        """0 fits, 1 a label is missing, 2 too skewed."""
        for constraint, counts in zip(self.constraints, self.counts, strict=True):
            value = node.labels.get(constraint.topology_key)
            if value is None:
                return 1
            least = min(counts.values(), default=0)
            if len(counts) < constraint.min_domains:
                least = 0
            skew = counts.get(value, 0) + constraint.matches(self.pod) - least
            if skew > constraint.max_skew:
                return 2
        return 0


def scores(
    pod: Pod,
    nodes: Mapping[str, Node],
    placed: Placed,
    feasible: list[str],
    constraints: list[Constraint],
    *,
    is_strict: bool,
) -> dict[str, int]:
    """Normalised scores of the feasible nodes."""
    ignored = {n for n in feasible if is_strict and not _has_keys(nodes[n], constraints)}
    scored = [nodes[name] for name in feasible if name not in ignored]
    raw = dict.fromkeys((node.name for node in scored), 0.0)
    for constraint in constraints:
        key = constraint.topology_key
        values = {node.labels.get(key, "") for node in scored}
        weight = math.log((len(scored) if key == HOST else len(values)) + 2)
        counts: dict[str, int] = {}
        for node in nodes.values():
            counted = not is_strict or _has_keys(node, constraints)
            if counted and constraint.includes(pod, node):
                value = node.labels.get(key, "")
                counts[value] = counts.get(value, 0) + _count_on(constraint, pod, node, placed)
        for node in scored:
            if key in node.labels:
                here = _count_on(constraint, pod, node, placed)
                number = here if key == HOST else counts.get(node.labels[key], 0)
                raw[node.name] += number * weight + (constraint.max_skew - 1)
    return {**dict.fromkeys(ignored, 0), **_normalized({n: _round(x) for n, x in raw.items()})}


def _round(x: float) -> int:
    return math.floor(x + 0.5)


def _normalized(raw: Mapping[str, int]) -> dict[str, int]:
    most, least = max(raw.values(), default=0), min(raw.values(), default=0)
    if not most:
        return dict.fromkeys(raw, 100)
    return {name: 100 * (most + least - value) // most for name, value in raw.items()}
