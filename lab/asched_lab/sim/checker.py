"""Checks placements by the API's rules: which are broken, and which pods could be placed.

Every rule of a default scheduler except those for volumes and devices, slow and simple, on the
server's objects. It shares no code with the scheduler on purpose.

Source  the Kubernetes API reference, v1.36; `tests/lab/sim/test_rules.py` compares every answer
        with recordings of kube-scheduler
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

JsonObject = Mapping[str, Any]
#: Whole numbers are integers: a run adds and compares hundreds of thousands.
Amount = Fraction | int
Amounts = dict[str, Amount]

HOSTNAME_FIELD: Final = "metadata.name"
CORDON: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
#: Resources that the pod level may set.
POD_LEVEL: Final = ("cpu", "memory")
HUGE_PAGES: Final = "hugepages-"
_SUFFIX: Final = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(1024),
    "Mi": Fraction(1024**2),
    "Gi": Fraction(1024**3),
    "Ti": Fraction(1024**4),
    "Pi": Fraction(1024**5),
    "Ei": Fraction(1024**6),
}


@lru_cache(maxsize=4096)
def amount(text: str) -> Amount:
    """Parse a quantity."""
    suffix = next((s for s in sorted(_SUFFIX, key=len, reverse=True) if text.endswith(s)), "")
    found = Fraction(text.removesuffix(suffix)) * _SUFFIX.get(suffix, 1)
    return found.numerator if found.denominator == 1 else found


# --- amounts -------------------------------------------------------------------------------------


def requests_of(pod: JsonObject) -> Amounts:
    """A pod's requests, including one pod."""
    spec = pod["spec"]
    total: Amounts = defaultdict(int)
    for container in spec.get("containers") or ():
        _add(total, _requests(container))
    running: Amounts = defaultdict(int)
    peak: Amounts = defaultdict(int)
    for container in spec.get("initContainers") or ():
        requested = _requests(container)
        if container.get("restartPolicy") == "Always":  # a sidecar runs beside later containers
            _add(running, requested)
            requested = {}
        for name in {*running, *requested}:
            peak[name] = max(peak[name], running[name] + requested.get(name, 0))
    _add(total, running)
    for name, most in peak.items():
        total[name] = max(total[name], most)
    for name, requested_of_pod in _requests(spec).items():
        if name in POD_LEVEL or name.startswith(HUGE_PAGES):
            total[name] = requested_of_pod
    _add(total, {n: amount(str(q)) for n, q in (spec.get("overhead") or {}).items()})
    total["pods"] = 1
    return total


def _requests(holder: JsonObject) -> Amounts:
    found = (holder.get("resources") or {}).get("requests") or {}
    return {name: amount(str(text)) for name, text in found.items()}


def _add(total: Amounts, more: Mapping[str, Amount]) -> None:
    for name, requested in more.items():
        total[name] += requested


# --- rules of a node -----------------------------------------------------------------------------


def admits(node: JsonObject, pod: JsonObject) -> bool:
    """Whether selector, node affinity, taints and cordon admit the pod."""
    return selects(node, pod) and tolerated(node, pod)


def selects(node: JsonObject, pod: JsonObject) -> bool:
    """Whether the pod's node selector and required node affinity select the node."""
    spec = pod["spec"]
    labels = _labels(node)
    if any(labels.get(k) != v for k, v in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity: JsonObject = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_term_chooses(term, node) for term in required.get("nodeSelectorTerms") or ())


def _term_chooses(term: JsonObject, node: JsonObject) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    named = {HOSTNAME_FIELD: node["metadata"]["name"]}
    return bool(expressions or fields) and (
        all(_is_met(requirement, _labels(node)) for requirement in expressions)
        and all(_is_met(requirement, named) for requirement in fields)
    )


def _is_met(requirement: JsonObject, labels: Mapping[str, str]) -> bool:
    key, operator = requirement["key"], requirement["operator"]
    values: Sequence[str] = requirement.get("values") or ()
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator in ("Gt", "Lt"):
        if key not in labels or len(values) != 1:
            return False
        try:
            mine, bar = int(labels[key]), int(values[0])
        except ValueError:
            return False
        return mine > bar if operator == "Gt" else mine < bar
    is_in = labels.get(key) in values
    return is_in if operator == "In" else not is_in


def tolerated(node: JsonObject, pod: JsonObject) -> bool:
    """Whether the pod tolerates all taints that exclude it, and the cordon."""
    spec = node.get("spec") or {}
    taints = [taint for taint in spec.get("taints") or () if taint["effect"] != "PreferNoSchedule"]
    if spec.get("unschedulable"):
        taints.append(CORDON)
    tolerations = pod["spec"].get("tolerations") or ()
    return all(any(_tolerates(toleration, taint) for toleration in tolerations) for taint in taints)


def _tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (
        taint.get("value") or ""
    )


# --- other pods ----------------------------------------------------------------------------------


def selected(selector: JsonObject | None, pod: JsonObject) -> bool:
    """Whether a label selector selects the pod: a null selector selects none, an empty one all."""
    return selector is not None and chooses(selector, _labels(pod))


def chooses(selector: JsonObject, labels: Mapping[str, str]) -> bool:
    """Whether labels match all of a selector."""
    wanted = (selector.get("matchLabels") or {}).items()
    return all(labels.get(k) == v for k, v in wanted) and all(
        _is_met(requirement, labels) for requirement in selector.get("matchExpressions") or ()
    )


def ports_clash(pod: JsonObject, other: JsonObject) -> bool:
    """Whether two pods use one host port of the same node."""
    return any(
        (a["protocol"], a["port"]) == (b["protocol"], b["port"])
        and (a["ip"] == b["ip"] or "0.0.0.0" in (a["ip"], b["ip"]))  # noqa: S104 - a value compared
        for a in _ports(pod)
        for b in _ports(other)
    )


def _ports(pod: JsonObject) -> Iterator[dict[str, Any]]:
    spec = pod["spec"]
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in (*(spec.get("containers") or ()), *sidecars):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield {
                    "protocol": port.get("protocol") or "TCP",
                    "port": port["hostPort"],
                    "ip": port.get("hostIP") or "0.0.0.0",  # noqa: S104 - every address
                }


def terms_of(pod: JsonObject, kind: str) -> Sequence[JsonObject]:
    """The required terms of `podAffinity` or `podAntiAffinity`."""
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    found: Sequence[JsonObject] = (
        affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    )
    return found


def term_selects(
    term: JsonObject, owner: JsonObject, other: JsonObject, namespaces: Mapping[str, JsonObject]
) -> bool:
    """Whether a term of `owner` selects `other`. `namespaces` by name, for namespace selectors."""
    names = set(term.get("namespaces") or ())
    wanted = term.get("namespaceSelector")
    if wanted is not None:
        names |= {name for name, found in namespaces.items() if chooses(wanted, _labels(found))}
    elif not names:
        names = {owner["metadata"]["namespace"]}
    if other["metadata"]["namespace"] not in names:
        return False
    labels, own = _labels(other), _labels(owner)
    same, different = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    return (
        selected(term.get("labelSelector"), other)
        and all(labels.get(key) == own[key] for key in same if key in own)
        and all(labels.get(key) != own[key] for key in different if key in own)
    )


def domain(node: JsonObject | None, key: str) -> str | None:
    """The topology domain of a node under a label, if it has one."""
    return None if node is None else _labels(node).get(key)


def hard_constraints(pod: JsonObject) -> list[JsonObject]:
    """Topology spread constraints that reject nodes."""
    return [
        constraint
        for constraint in pod["spec"].get("topologySpreadConstraints") or ()
        if constraint["whenUnsatisfiable"] == "DoNotSchedule"
    ]


def spread_counts(constraint: JsonObject, pod: JsonObject, other: JsonObject) -> bool:
    """Whether a constraint of `pod` counts `other`. An empty selector counts no placed pod, as
    upstream.
    """
    if other["spec"].get("nodeName") and not any((constraint.get("labelSelector") or {}).values()):
        return False
    own, labels = _labels(pod), _labels(other)
    keys = [key for key in constraint.get("matchLabelKeys") or () if key in own]
    return (
        other["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and not other["metadata"].get("deletionTimestamp")
        and selected(constraint.get("labelSelector"), other)
        and all(labels.get(key) == own[key] for key in keys)
    )


def includes(constraint: JsonObject, node: JsonObject, pod: JsonObject) -> bool:
    """Whether a constraint of the pod includes the node."""
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not selects(node, pod):
        return False
    if constraint.get("nodeTaintsPolicy", "Ignore") == "Ignore":
        return True
    # A cordon does not count as a taint.
    bare = {**node, "spec": {**(node.get("spec") or {}), "unschedulable": False}}
    return tolerated(bare, pod)


def _labels(obj: JsonObject) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def is_through(pod: JsonObject) -> bool:
    """Whether a pod has ended."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def counted(pods: Iterable[JsonObject]) -> list[JsonObject]:
    """Pods that use resources: placed, and not finished."""
    return [pod for pod in pods if pod["spec"].get("nodeName") and not is_through(pod)]


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

    def could_be_placed(self, nodes: Collection[str] | None = None) -> list[str]:
        """Waiting pods that would fit on a node, or on one of these."""
        found = []
        known: dict[str, bool] = {}
        for pod in self.waiting:
            metadata = pod["metadata"]
            seen_of_it = (metadata.get("namespace"), metadata.get("labels"), pod["spec"])
            key = repr(seen_of_it)
            if key not in known:
                known[key] = any(
                    self.fits(name, pod) for name in (self.nodes if nodes is None else nodes)
                )
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
