"""Twin of `core/cluster/topology.py`: everything recounted from the pods."""

from collections.abc import Iterable

from asched.core.cluster.counters import CounterKey, TermKey
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from tests.conformance.twins.inter_pod_affinity import Term, terms_of

Placed = Iterable[tuple[Pod, Node]]


def counts(key: CounterKey, pod: Pod) -> bool:
    """Whether a pod that is really there counts."""
    if key.on_trial_only or (pod.is_terminating and not key.counts_terminating):
        return False
    return all(
        (p.namespaces is None or pod.metadata.namespace in p.namespaces)
        and p.selector.matches(pod.labels)
        for p in key.predicates
    )


def by_row(key: CounterKey, placed: Placed, names: Iterable[str]) -> dict[str, int]:
    """Node name -> number of pods that count."""
    found = dict.fromkeys(names, 0)
    for pod, node in placed:
        found[node.name] += counts(key, pod)
    return found


def by_domain(key: CounterKey, placed: Placed, topology_key: str) -> dict[str, int]:
    """Value of the label -> number of pods that count, without zeroes."""
    found: dict[str, int] = {}
    for pod, node in placed:
        value = node.labels.get(topology_key)
        if value is not None and counts(key, pod):
            found[value] = found.get(value, 0) + 1
    return found


def carriers(key: TermKey, placed: Placed) -> dict[str, int]:
    """Value of the term's label -> number of times pods there carry the term, without zeroes."""
    found: dict[str, int] = {}
    for pod, node in placed:
        value = node.labels.get(key.topology_key)
        number = sum(_is(key, term) for term in terms_of(pod, key.kind.name))
        if value is not None and number:
            found[value] = found.get(value, 0) + number
    return found


def _is(key: TermKey, term: Term) -> bool:
    return (key.topology_key, key.selector, key.namespaces, key.namespace_selector, key.weight) == (
        term.topology_key,
        term.selector,
        term.namespaces,
        term.namespace_selector,
        term.weight,
    )
