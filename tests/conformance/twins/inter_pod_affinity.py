"""Twin of InterPodAffinity: counts in dictionaries, from every pod on every node, for each
attempt.
"""

from collections.abc import Mapping
from typing import NamedTuple

from asched.core.model.node import Node
from asched.core.model.pod import Pod, PodAffinityTerm
from asched.core.model.selector import Selector, compile_selector
from asched.core.model.workload import Namespace

NEAR, APART = "REQUIRED_AFFINITY", "REQUIRED_ANTI_AFFINITY"
DRAWN, PUT_OFF = "PREFERRED_AFFINITY", "PREFERRED_ANTI_AFFINITY"
Placed = list[tuple[Pod, Node]]
Namespaces = Mapping[str, Namespace]
Counts = dict[tuple[str, str], int]


class Term(NamedTuple):
    topology_key: str
    selector: Selector | None
    namespaces: frozenset[str]
    namespace_selector: Selector | None
    weight: int = 0

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        inside = pod.metadata.namespace in self.namespaces or (
            self.namespace_selector is not None
            and self.namespace_selector.matches(namespace_labels)
        )
        return inside and self.selector is not None and self.selector.matches(pod.labels)


def terms_of(pod: Pod, kind: str) -> list[Term]:
    """The pod's terms of one kind, as written."""
    if pod.spec.affinity is None:
        return []
    together, apart = pod.spec.affinity.pod_affinity, pod.spec.affinity.pod_anti_affinity
    stanza = apart if "ANTI" in kind else together
    if stanza is None:
        return []
    if kind.startswith("REQUIRED"):
        return [_term(pod, term, 0) for term in stanza.required or ()]
    return [_term(pod, term.pod_affinity_term, term.weight) for term in stanza.preferred or ()]


def _term(pod: Pod, term: PodAffinityTerm, weight: int) -> Term:
    names = frozenset(term.namespaces or ())
    if not names and term.namespace_selector is None:
        names = frozenset({pod.metadata.namespace})
    return Term(
        term.topology_key,
        compile_selector(term.label_selector),
        names,
        compile_selector(term.namespace_selector),
        weight,
    )


def _resolved(pod: Pod, kind: str, namespaces: Namespaces) -> list[Term]:
    """The incoming pod's terms, with the namespaces by name that their selectors select; an empty
    selector stays, for it selects unknown namespaces too.
    """
    found = []
    for term in terms_of(pod, kind):
        selector = term.namespace_selector
        if selector is None or not selector.requirements:
            found.append(term)
            continue
        names = set(term.namespaces)
        for name, namespace in namespaces.items():
            if selector.matches(namespace.metadata.labels or {}):
                names.add(name)
        found.append(term._replace(namespaces=frozenset(names), namespace_selector=None))
    return found


class Filter:
    """PreFilter's three maps; `add` and `remove` are what a trial does to them."""

    def __init__(self, pod: Pod, nodes: Mapping[str, Node], placed: Placed, known: Namespaces):
        self.pod = pod
        own = known.get(pod.metadata.namespace)
        self.own_labels = (own.metadata.labels or {}) if own is not None else {}
        self.near = _resolved(pod, NEAR, known)
        self.apart = _resolved(pod, APART, known)
        self.existing: Counts = {}
        self.wanted: Counts = {}
        self.unwanted: Counts = {}
        for other, node in placed:
            self._move(other, node, 1)
        self.nodes = nodes

    @property
    def skips(self) -> bool:
        return not self.existing and not self.near and not self.apart

    def add(self, other: Pod, node: Node) -> None:
        self._move(other, node, 1)

    def remove(self, other: Pod, node: Node) -> None:
        self._move(other, node, -1)

    def code(self, node: Node) -> int:
        """0 fits, 1 affinity, 2 own anti-affinity, 3 anti-affinity of others."""
        if not self._is_near(node):
            return 1
        for term in self.apart:
            value = node.labels.get(term.topology_key)
            if value is not None and self.unwanted.get((term.topology_key, value), 0) > 0:
                return 2
        if any(self.existing.get(pair, 0) > 0 for pair in node.labels.items()):
            return 3
        return 0

    def _is_near(self, node: Node) -> bool:
        if any(term.topology_key not in node.labels for term in self.near):
            return False
        pairs = [(term.topology_key, node.labels[term.topology_key]) for term in self.near]
        if all(self.wanted.get(pair, 0) > 0 for pair in pairs):
            return True
        return not self.wanted and all(term.matches(self.pod, {}) for term in self.near)

    def _move(self, other: Pod, node: Node, amount: int) -> None:
        for term in terms_of(other, APART):
            if term.matches(self.pod, self.own_labels):
                _count(self.existing, term, node, amount)
        if self.near and all(term.matches(other, {}) for term in self.near):
            for term in self.near:
                _count(self.wanted, term, node, amount)
        for term in self.apart:
            if term.matches(other, {}):
                _count(self.unwanted, term, node, amount)


def _count(counts: Counts, term: Term, node: Node, amount: int) -> None:
    value = node.labels.get(term.topology_key)
    if value is not None:
        pair = (term.topology_key, value)
        counts[pair] = counts.get(pair, 0) + amount
        if not counts[pair]:
            del counts[pair]


def raw_scores(
    pod: Pod,
    nodes: Mapping[str, Node],
    placed: Placed,
    known: Namespaces,
    *,
    hard_weight: int = 1,
    ignores_others: bool = False,
) -> dict[str, int] | None:
    """Raw scores by node; None if PreScore skips."""
    drawn, put_off = _resolved(pod, DRAWN, known), _resolved(pod, PUT_OFF, known)
    if ignores_others and not drawn and not put_off:
        return None
    own = known.get(pod.metadata.namespace)
    own_labels = (own.metadata.labels or {}) if own is not None else {}
    scores: Counts = {}

    def add(term: Term, node: Node, weight: int) -> None:
        value = node.labels.get(term.topology_key)
        if value is not None:
            pair = (term.topology_key, value)
            scores[pair] = scores.get(pair, 0) + weight

    for other, node in placed:
        for terms, sign in ((drawn, 1), (put_off, -1)):
            for term in terms:
                if term.matches(other, {}):
                    add(term, node, sign * term.weight)
        for term in terms_of(other, NEAR) if hard_weight > 0 else ():
            if term.matches(pod, own_labels):
                add(term, node, hard_weight)
        for kind, sign in ((DRAWN, 1), (PUT_OFF, -1)):
            for term in terms_of(other, kind):
                if term.matches(pod, own_labels):
                    add(term, node, sign * term.weight)
    if not scores:
        return None
    return {
        name: sum(scores.get(pair, 0) for pair in node.labels.items())
        for name, node in nodes.items()
    }


def normalized(raw: Mapping[str, int]) -> dict[str, int]:
    """0..100 over the nodes given."""
    least, most = min(raw.values()), max(raw.values())
    if most == least:
        return dict.fromkeys(raw, 0)
    return {name: int(100.0 * ((value - least) / (most - least))) for name, value in raw.items()}
