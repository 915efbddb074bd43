"""Looks at an end state through API objects alone: is anything broken, and could more have been
placed?

It shares no code with the scheduler's rules on purpose; it is slow and plain.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

JsonObject = Mapping[str, Any]
Amounts = dict[str, Fraction]

_SUFFIX: Final = {
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "Ki": Fraction(1024),
    "Mi": Fraction(1024**2),
    "Gi": Fraction(1024**3),
    "Ti": Fraction(1024**4),
}


def amount(text: str) -> Fraction:
    """A quantity of the kind people write."""
    for suffix in sorted(_SUFFIX, key=len, reverse=True):
        if text.endswith(suffix):
            return Fraction(text[: -len(suffix)]) * _SUFFIX[suffix]
    return Fraction(text)


def requests_of(pod: JsonObject) -> Amounts:
    """The sum over app containers; the mixes here have no others."""
    total: Amounts = defaultdict(Fraction)
    for container in pod["spec"]["containers"]:
        for name, text in container.get("resources", {}).get("requests", {}).items():
            total[name] += amount(text)
    total["pods"] = Fraction(1)
    return total


class EndState:
    """Nodes with what is left on them."""

    def __init__(self, nodes: Iterable[JsonObject], pods: Sequence[JsonObject]) -> None:
        self.nodes = {node["metadata"]["name"]: node for node in nodes}
        self.placed = [pod for pod in pods if pod["spec"].get("nodeName")]
        self.waiting = [pod for pod in pods if not pod["spec"].get("nodeName")]
        self.free: dict[str, Amounts] = {
            name: {r: amount(str(q)) for r, q in node["status"]["allocatable"].items()}
            for name, node in self.nodes.items()
        }
        for pod in self.placed:
            free = self.free.get(pod["spec"]["nodeName"])
            if free is not None:
                for name, asked in requests_of(pod).items():
                    free[name] = free.get(name, Fraction(0)) - asked

    def broken_rules(self) -> list[str]:
        """One line for each node that is overcommitted and each pod where it must not be."""
        found = [
            f"node {name} is overcommitted: {resource} by {-left}"
            for name, free in self.free.items()
            for resource, left in free.items()
            if left < 0
        ]
        for pod in self.placed:
            node = self.nodes.get(pod["spec"]["nodeName"])
            name = pod["metadata"]["name"]
            if node is None:
                found.append(f"pod {name} is on a node that does not exist")
            elif not admits(node, pod):
                found.append(f"pod {name} is on {node['metadata']['name']} against its rules")
        return found

    def could_be_placed(self) -> list[str]:
        """Waiting pods for which some node has room and no objection; spread rules are left out."""
        found = []
        judged: dict[str, bool] = {}
        for pod in self.waiting:
            key = repr(sorted((k, repr(v)) for k, v in pod["spec"].items()))
            if key not in judged:
                judged[key] = any(
                    admits(node, pod) and self._has_room(name, pod)
                    for name, node in self.nodes.items()
                )
            if judged[key] and not pod["spec"].get("topologySpreadConstraints"):
                found.append(pod["metadata"]["name"])
        return found

    def has_place(self, node: str, pod: JsonObject) -> bool:
        """Whether a node lets the pod in and has room for it; spread and affinity are left out."""
        return admits(self.nodes[node], pod) and self._has_room(node, pod)

    def _has_room(self, node: str, pod: JsonObject) -> bool:
        free = self.free[node]
        return all(free.get(name, Fraction(0)) >= asked for name, asked in requests_of(pod).items())


def admits(node: JsonObject, pod: JsonObject) -> bool:
    """Whether node selector, taints and cordon let the pod in."""
    spec = pod["spec"]
    labels = node["metadata"].get("labels", {})
    if any(labels.get(k) != v for k, v in (spec.get("nodeSelector") or {}).items()):
        return False
    if node["spec"].get("unschedulable"):
        return False
    return all(
        any(_tolerates(toleration, taint) for toleration in spec.get("tolerations") or ())
        for taint in node["spec"].get("taints") or ()
        if taint["effect"] != "PreferNoSchedule"
    )


def _tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value") == taint.get("value")


def apart(pod: JsonObject | None, other: JsonObject, nodes: Mapping[str, JsonObject]) -> bool:
    """Whether two placed pods break a rule of one of them: a shared host port, or required
    anti-affinity.
    """
    if pod is None:
        return False
    if pod["spec"]["nodeName"] == other["spec"]["nodeName"] and _ports(pod) & _ports(other):
        return True
    return _repels(pod, other, nodes) or _repels(other, pod, nodes)


def _ports(pod: JsonObject) -> set[tuple[str, int]]:
    return {
        (port.get("protocol", "TCP"), port["hostPort"])
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or ()
        if port.get("hostPort")
    }


def _repels(pod: JsonObject, other: JsonObject, nodes: Mapping[str, JsonObject]) -> bool:
    """Whether a required anti-affinity term of the one speaks of the other in its domain."""
    rules = ((pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or ()
    here, there = (nodes.get(p["spec"]["nodeName"]) for p in (pod, other))
    if here is None or there is None:
        return False
    for term in rules:
        key = term["topologyKey"]
        mine = here["metadata"].get("labels", {}).get(key)
        names = term.get("namespaces") or [pod["metadata"]["namespace"]]
        if (
            mine is not None
            and mine == there["metadata"].get("labels", {}).get(key)
            and other["metadata"]["namespace"] in names
            and selected(term["labelSelector"], other)
        ):
            return True
    return False


def selected(selector: JsonObject, pod: JsonObject) -> bool:
    """Whether `matchLabels` alone let the pod through; the mixes here know no expressions."""
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(k) == v for k, v in (selector.get("matchLabels") or {}).items())


def skews(nodes: Iterable[JsonObject], pods: Sequence[JsonObject]) -> list[str]:
    """Hard spread constraints whose domains differ by more than they allow, counted at the end.

    Only where no matching pod ever left and all of them carry the constraint is that for certain a
    broken rule.
    """
    labels = {node["metadata"]["name"]: node["metadata"].get("labels", {}) for node in nodes}
    found = []
    for constraint, namespace in _constraints(pods):
        key = constraint["topologyKey"]
        counts = dict.fromkeys((own[key] for own in labels.values() if key in own), 0)
        for pod in pods:
            domain = labels.get(pod["spec"].get("nodeName", ""), {}).get(key)
            inside = pod["metadata"]["namespace"] == namespace
            if domain is not None and inside and selected(constraint["labelSelector"], pod):
                counts[domain] += 1
        if counts and max(counts.values()) - min(counts.values()) > constraint["maxSkew"]:
            found.append(f"spread by {key} in {namespace}: {counts}")
    return found


def _constraints(pods: Iterable[JsonObject]) -> list[tuple[JsonObject, str]]:
    distinct: dict[str, tuple[JsonObject, str]] = {}
    for pod in pods:
        for constraint in pod["spec"].get("topologySpreadConstraints") or ():
            if constraint["whenUnsatisfiable"] == "DoNotSchedule":
                namespace = pod["metadata"]["namespace"]
                distinct[f"{namespace} {constraint!r}"] = (constraint, namespace)
    return list(distinct.values())
