"""Checks an end state through API objects alone: whether a rule is broken, and whether more pods
could have been placed.

It shares no code with the scheduler's rules on purpose (`rules.py`); it is slow and simple.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from asched_lab.sim.rules import (
    Amounts,
    JsonObject,
    admits,
    amount,
    counted,
    domain,
    hard_constraints,
    includes,
    ports_clash,
    requests_of,
    spread_counts,
    term_selects,
    terms_of,
)

AFFINITY = "podAffinity"
ANTI_AFFINITY = "podAntiAffinity"


class EndState:
    """Nodes with their free resources. `namespaces` are needed where terms select them by label."""

    def __init__(
        self,
        nodes: Iterable[JsonObject],
        pods: Sequence[JsonObject],
        namespaces: Iterable[JsonObject] = (),
    ) -> None:
        self.nodes = {node["metadata"]["name"]: node for node in nodes}
        self.namespaces = {namespace["metadata"]["name"]: namespace for namespace in namespaces}
        self.placed = [pod for pod in pods if pod["spec"].get("nodeName")]
        self.counted = counted(pods)
        self.waiting = [pod for pod in pods if not pod["spec"].get("nodeName")]
        self.free: dict[str, Amounts] = {
            name: {
                r: amount(str(q))
                for r, q in ((node.get("status") or {}).get("allocatable") or {}).items()
            }
            for name, node in self.nodes.items()
        }
        self._by_node: dict[str, list[JsonObject]] = defaultdict(list)
        self._repelling: list[JsonObject] = []
        for pod in self.counted:
            self._take_place(pod)

    def place(self, pod: JsonObject, node: str) -> None:
        """Count one more pod, on a node."""
        placed = {**pod, "spec": {**pod["spec"], "nodeName": node}}
        self.placed.append(placed)
        self.counted.append(placed)
        self._take_place(placed)

    def _take_place(self, pod: JsonObject) -> None:
        self._by_node[pod["spec"]["nodeName"]].append(pod)
        if terms_of(pod, ANTI_AFFINITY):
            self._repelling.append(pod)
        free = self.free.get(pod["spec"]["nodeName"])
        if free is not None:
            for name, requested in requests_of(pod).items():
                free[name] = free.get(name, 0) - requested

    def broken_rules(self) -> list[str]:
        """One line for each overcommitted node and each pod on a node that its rules exclude."""
        found = [
            f"node {name} is overcommitted: {resource} by {-rest}"
            for name, free in self.free.items()
            for resource, rest in free.items()
            if rest < 0
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
        """Waiting pods that would fit on a node."""
        found = []
        known: dict[str, bool] = {}
        for pod in self.waiting:
            metadata = pod["metadata"]
            seen_of_it = (metadata.get("namespace"), metadata.get("labels"), pod["spec"])
            key = repr(seen_of_it)
            if key not in known:
                known[key] = any(self.fits(name, pod) for name in self.nodes)
            if known[key]:
                found.append(metadata["name"])
        return found

    def fits(self, node: str, pod: JsonObject) -> bool:
        """Whether a node could take a pod now; volumes and devices are left out."""
        return (
            self.has_place(node, pod)
            and not any(ports_clash(pod, other) for other in self._by_node[node])
            and self._may_be_near(node, pod)
            and self._may_be_spread(node, pod)
        )

    def has_place(self, node: str, pod: JsonObject) -> bool:
        """Whether a node admits the pod and has room for it; spread and affinity are left out."""
        return admits(self.nodes[node], pod) and self.has_room(node, pod)

    def has_room(self, node: str, pod: JsonObject) -> bool:
        """Whether the requests alone fit."""
        free = self.free[node]
        return all(
            free.get(name, 0) >= requested
            for name, requested in requests_of(pod).items()
            if requested > 0 or name == "pods"
        )

    def _may_be_near(self, node: str, pod: JsonObject) -> bool:
        placed = {**pod, "spec": {**pod["spec"], "nodeName": node}}
        others = self.counted if terms_of(pod, ANTI_AFFINITY) else ()
        return (
            not any(_repels(placed, other, self.nodes, self.namespaces) for other in others)
            and not any(
                _repels(other, placed, self.nodes, self.namespaces) for other in self._repelling
            )
            and self._is_drawn(self.nodes[node], pod)
        )

    def _is_drawn(self, node_obj: JsonObject, pod: JsonObject) -> bool:
        """Whether its required affinity is met: in each term's domain is a pod that all terms
        select, or no such pod exists and the pod itself matches.
        """
        terms = terms_of(pod, AFFINITY)
        if not terms:
            return True
        if any(domain(node_obj, term["topologyKey"]) is None for term in terms):
            return False
        friends = [
            other
            for other in self.counted
            if all(term_selects(term, pod, other, self.namespaces) for term in terms)
        ]
        met = all(
            any(self._domain_of(f, term) == domain(node_obj, term["topologyKey"]) for f in friends)
            for term in terms
        )
        if met:
            return True
        has_any = any(self._domain_of(f, term) is not None for f in friends for term in terms)
        return not has_any and all(term_selects(term, pod, pod, self.namespaces) for term in terms)

    def _domain_of(self, pod: JsonObject, term: JsonObject) -> str | None:
        return domain(self.nodes.get(pod["spec"]["nodeName"]), term["topologyKey"])

    def _may_be_spread(self, node: str, pod: JsonObject) -> bool:
        constraints = hard_constraints(pod)
        node_obj = self.nodes[node]
        for constraint in constraints:
            own_domain = domain(node_obj, constraint["topologyKey"])
            if own_domain is None:
                return False
            counts = self.spread(constraint, constraints, pod)
            own = int(spread_counts(constraint, pod, pod))
            most = constraint["maxSkew"] + fewest(constraint, counts)
            if counts.get(own_domain, 0) + own > most:
                return False
        return True

    def spread(
        self, constraint: JsonObject, constraints: Sequence[JsonObject], pod: JsonObject
    ) -> dict[str, int]:
        """Pods by domain, on nodes that have every key and that the constraint counts."""
        key = constraint["topologyKey"]
        counts: dict[str, int] = {}
        for name, node in self.nodes.items():
            found = domain(node, key)
            has_keys = all(domain(node, one["topologyKey"]) is not None for one in constraints)
            if found is None or not has_keys or not includes(constraint, node, pod):
                continue
            counts[found] = counts.get(found, 0) + sum(
                spread_counts(constraint, pod, other) for other in self._by_node[name]
            )
        return counts


def apart(
    pod: JsonObject | None,
    other: JsonObject,
    nodes: Mapping[str, JsonObject],
    namespaces: Mapping[str, JsonObject] | None = None,
) -> bool:
    """Whether two placed pods break a rule of each other: a shared host port, or required
    anti-affinity.
    """
    if pod is None:
        return False
    if pod["spec"]["nodeName"] == other["spec"]["nodeName"] and ports_clash(pod, other):
        return True
    known = namespaces or {}
    return _repels(pod, other, nodes, known) or _repels(other, pod, nodes, known)


def _repels(
    pod: JsonObject,
    other: JsonObject,
    nodes: Mapping[str, JsonObject],
    namespaces: Mapping[str, JsonObject],
) -> bool:
    """Whether a required anti-affinity term of one pod selects the other in its domain."""
    for term in terms_of(pod, ANTI_AFFINITY):
        own_domain, other_domain = (
            domain(nodes.get(p["spec"]["nodeName"]), term["topologyKey"]) for p in (pod, other)
        )
        if (
            own_domain is not None
            and own_domain == other_domain
            and term_selects(term, pod, other, namespaces)
        ):
            return True
    return False


def skews(nodes: Iterable[JsonObject], pods: Sequence[JsonObject]) -> list[str]:
    """Hard spread constraints whose domains differ by more than they allow, counted at the end.

    This is certainly a broken rule only if no matching pod ever left and all of them have the
    constraint.
    """
    end, found = EndState(nodes, pods), []
    for constraint, pod in _constraints(pods):
        counts = end.spread(constraint, (constraint,), pod)
        if counts and max(counts.values()) - fewest(constraint, counts) > constraint["maxSkew"]:
            where = f"{constraint['topologyKey']} in {pod['metadata']['namespace']}"
            found.append(f"spread by {where}: {counts}")
    return found


def fewest(constraint: JsonObject, counts: Mapping[str, int]) -> int:
    """The count of the emptiest domain; 0 if there are fewer domains than needed."""
    is_lacking = len(counts) < (constraint.get("minDomains") or 1)
    return 0 if is_lacking else min(counts.values())


def _constraints(pods: Iterable[JsonObject]) -> list[tuple[JsonObject, JsonObject]]:
    """Each distinct hard constraint of a namespace, with a pod that has it."""
    distinct: dict[str, tuple[JsonObject, JsonObject]] = {}
    for pod in pods:
        for constraint in hard_constraints(pod):
            namespace = pod["metadata"]["namespace"]
            distinct[f"{namespace} {constraint!r}"] = (constraint, pod)
    return list(distinct.values())
