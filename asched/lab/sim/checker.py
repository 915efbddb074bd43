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
