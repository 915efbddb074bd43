"""Which changes may make a pod schedulable that affinity rejected.

Rule    of pods: the pod itself; a placed (or nominated) one that comes and matches all affinity
        terms, or goes and matches all anti-affinity terms, or has anti-affinity terms that all
        match the waiting pod; one whose labels change in such a way.
        Of nodes: one that comes with, gains or changes the key of an affinity term; one that comes,
        loses or changes the key of an anti-affinity term.
Quirk   namespace selectors are judged on no labels, and of several anti-affinity terms all must
        match: some changes that help are overlooked, as upstream does.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/interpodaffinity/plugin.go

Changes that may make a pod schedulable and that upstream's hints overlook.

Rule    of pods: terms are evaluated as the filter does, namespaces included; of several
        anti-affinity terms each counts by itself; when the last member of a group goes, a pod
        that matches its own terms may start the group anew elsewhere.
        Of nodes: a new, deleted or relabelled node moves its pods between domains.
        Of namespaces: labels that selectors of terms read.
"""

from collections.abc import Collection, Hashable
from typing import Final

from asched.core.cluster.pods import AffinityTerm, AffinityTerms
from asched.core.framework.points import Hint
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.selector import matches
from asched.core.model.workload import Namespace
from asched.core.plugins.inter_pod_affinity.terms import Namespaces, term_matches
from asched.core.plugins.label_keys import LabelKey, offered_labels, sought_labels

Terms = tuple[AffinityTerm, ...]
#: Prefix of the keys of the waiting pod's labels, which terms of a deleted pod select.
_SPEAKS: Final = "speaks of"


def hint_of_pod(
    terms: AffinityTerms, gone_terms: AffinityTerms, pod: Pod, old: Pod | None, new: Pod | None
) -> Hint:
    """`terms` are those of the waiting `pod`, `gone_terms` those of the `old` pod."""
    if hint_of_itself(pod, old, new) is Hint.QUEUE:
        return Hint.QUEUE
    for other in (old, new):
        if other is not None and not _has_place(other):
            return Hint.SKIP
    wanted, unwanted = terms.required_affinity, terms.required_anti_affinity
    if old is not None and new is not None:
        comes_near = not _match_all(wanted, old) and _match_all(wanted, new)
        lets_go = _match_all(unwanted, old) and not _match_all(unwanted, new)
        return Hint.QUEUE if comes_near or lets_go else Hint.SKIP
    if new is not None:
        return Hint.QUEUE if _match_all(wanted, new) else Hint.SKIP
    lets_go = old is not None and _match_all(unwanted, old)
    minded = _match_all(gone_terms.required_anti_affinity, pod)
    return Hint.QUEUE if lets_go or minded else Hint.SKIP


def hint_of_itself(pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
    """Whether the waiting pod itself changed."""
    is_own = any(other is not None and other.uid == pod.uid for other in (old, new))
    return Hint.QUEUE if is_own else Hint.SKIP


def hint_of_node(terms: AffinityTerms, old: Node | None, new: Node) -> Hint:
    """`terms` are those of the waiting pod."""
    for term in terms.required_affinity:
        value = new.labels.get(term.topology_key)
        if value is not None and (old is None or old.labels.get(term.topology_key) != value):
            return Hint.QUEUE
    for term in terms.required_anti_affinity:
        if old is None:
            return Hint.QUEUE
        before = old.labels.get(term.topology_key)
        if before is not None and new.labels.get(term.topology_key) != before:
            return Hint.QUEUE
    return Hint.SKIP


def _has_place(pod: Pod) -> bool:
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def _match_all(terms: Terms, pod: Pod) -> bool:
    """False without terms."""
    return bool(terms) and all(
        term_matches(term, pod.metadata.namespace, pod.labels) for term in terms
    )


def sought_of_pods(terms: AffinityTerms, pod: Pod) -> Collection[Hashable] | None:
    """Keys of the pod changes that concern a waiting `pod` with these terms: labels that its terms
    match (of affinity, those of a single term suffice), and terms that match its own labels.
    """
    keys: list[Hashable] = [(_SPEAKS, key) for key in offered_labels(pod)]
    wanted = [_sought(term) for term in terms.required_affinity]
    if wanted:
        affinity_keys = next((sought for sought in wanted if sought is not None), None)
        if affinity_keys is None:
            return None
        keys += affinity_keys
    for term in terms.required_anti_affinity:
        unwanted = _sought(term)
        if unwanted is None:
            return None
        keys += unwanted
    return keys


def offered_by_pods(
    gone_terms: AffinityTerms, old: Pod | None, new: Pod | None
) -> Collection[Hashable] | None:
    """Keys that a new, deleted or changed pod offers to waiting pods."""
    keys: list[Hashable] = []
    for other in (old, new):
        if other is not None:
            if not _has_place(other):
                return ()
            keys += offered_labels(other)
    for term in gone_terms.required_anti_affinity:
        spoken = _sought(term)
        if spoken is None:
            return None
        keys += [(_SPEAKS, key) for key in spoken]
    return keys


def _sought(term: AffinityTerm) -> Collection[LabelKey] | None:
    selects_namespaces = term.namespace_selector is not None
    return sought_labels(None if selects_namespaces else term.namespaces, term.selector)


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
