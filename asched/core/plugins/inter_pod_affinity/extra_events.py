"""Changes that may make a pod schedulable and that upstream's hints overlook.

Rule    of pods: terms are evaluated as the filter does, namespaces included; of several
        anti-affinity terms each counts by itself; when the last member of a group goes, a pod
        that matches its own terms may start the group anew elsewhere.
        Of nodes: a new, deleted or relabelled node moves its pods between domains.
        Of namespaces: labels that selectors of terms read.
"""

from asched.core.cluster.affinity_terms import AffinityTerm, AffinityTerms
from asched.core.model.pod import Pod
from asched.core.model.selector import matches
from asched.core.model.workload import Namespace
from asched.core.plugins.inter_pod_affinity.terms import Namespaces


def is_plain(terms: AffinityTerms) -> bool:
    """Whether hints overlook no change: one anti-affinity term at most, in namespaces by name."""
    unwanted = terms.required_anti_affinity
    return not terms.required_affinity and (
        not unwanted or (len(unwanted) == 1 and unwanted[0].namespace_selector is None)
    )


def names_namespaces(terms: AffinityTerms) -> bool:
    """Whether hints overlook no new pod: affinity terms in namespaces by name."""
    return all(term.namespace_selector is None for term in terms.required_affinity)


def pod_may_help(
    terms: AffinityTerms,
    gone_terms: AffinityTerms,
    namespaces: Namespaces,
    pod: Pod,
    old: Pod | None,
    new: Pod | None,
) -> bool:
    """`terms` are those of the waiting `pod`, `gone_terms` those of an `old` pod that goes."""
    if any(other is not None and not _has_place(other) for other in (old, new)):
        return False
    wanted, unwanted = terms.required_affinity, terms.required_anti_affinity
    if wanted:
        was_near, is_near = (
            other is not None and all(_matches(namespaces, term, other) for term in wanted)
            for other in (old, new)
        )
        if is_near and not was_near:
            return True
        if was_near and not is_near and all(_matches(namespaces, t, pod) for t in wanted):
            return True
    if old is not None and any(
        _matches(namespaces, term, old) and not (new and _matches(namespaces, term, new))
        for term in unwanted
    ):
        return True
    return new is None and any(
        _speaks_of(namespaces, term, pod) for term in gone_terms.required_anti_affinity
    )


def namespace_may_help(
    terms: AffinityTerms, pod: Pod, old: Namespace | None, new: Namespace | None
) -> bool:
    """Whether the pod's terms start or stop selecting the namespace, or whether terms that match
    the pod read other labels of its own namespace.
    """
    namespace = new or old
    if namespace is None:
        return False
    if namespace.metadata.name == pod.metadata.namespace and _labels(old) != _labels(new):
        return True
    own = (*terms.required_affinity, *terms.required_anti_affinity)
    return any(_selects(term, old) is not _selects(term, new) for term in own)


def _labels(namespace: Namespace | None) -> dict[str, str]:
    return (namespace.metadata.labels if namespace is not None else None) or {}


def _selects(term: AffinityTerm, namespace: Namespace | None) -> bool:
    return namespace is not None and matches(term.namespace_selector, _labels(namespace))


def _matches(namespaces: Namespaces, term: AffinityTerm, pod: Pod) -> bool:
    """Whether a term of the waiting pod matches another pod."""
    predicate = namespaces.predicate(term)
    if predicate is None:
        return False
    inside = predicate.namespaces is None or pod.metadata.namespace in predicate.namespaces
    return inside and predicate.selector.matches(pod.labels)


def _speaks_of(namespaces: Namespaces, term: AffinityTerm, pod: Pod) -> bool:
    """Whether a term of another pod matches the waiting pod."""
    namespace = pod.metadata.namespace
    inside = term.looks_into(namespace, namespaces.labels_of(namespace))
    return inside and term.selector is not None and term.selector.matches(pod.labels)


def _has_place(pod: Pod) -> bool:
    return bool(pod.spec.node_name or pod.status.nominated_node_name)
