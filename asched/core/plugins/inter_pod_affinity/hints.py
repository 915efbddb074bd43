"""Which changes may make a pod schedulable that affinity rejected.

Rule    of pods: the pod itself; a placed (or nominated) one that comes and matches all affinity
        terms, or goes and matches all anti-affinity terms, or has anti-affinity terms that all
        match the waiting pod; one whose labels change in such a way.
        Of nodes: one that comes with, gains or changes the key of an affinity term; one that comes,
        loses or changes the key of an anti-affinity term.
Quirk   namespace selectors are judged on no labels, and of several anti-affinity terms all must
        match: some changes that help are overlooked, as upstream does.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/interpodaffinity/plugin.go
"""

from collections.abc import Collection, Hashable
from typing import Final

from asched.core.cluster.affinity_terms import AffinityTerm, AffinityTerms
from asched.core.framework.points import Hint
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.plugins.inter_pod_affinity.terms import term_matches
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
