"""The plugin itself: the terms that concern a class of pods, the extension points, and the changes
that may make a rejected pod schedulable.

Retry   of pods: the pod itself; a placed (or nominated) one that comes and matches all affinity
        terms, or goes and matches all anti-affinity terms, or has anti-affinity terms that all
        match the waiting pod; one whose labels change in such a way.
        Of nodes: one that comes with, gains or changes the key of an affinity term; one that comes,
        loses or changes the key of an anti-affinity term.
Quirk   namespace selectors are evaluated on no labels, and of several anti-affinity terms all must
        match: some changes that help are overlooked, as upstream does. Hints of our own notice them
        (`extra_events`): they evaluate terms as the filter does, each anti-affinity term counts by
        itself, and when the last member of a group goes, a pod that matches its own terms may start
        the group anew elsewhere.
"""

from collections.abc import Collection, Hashable, Sequence
from typing import Any, Final

import numpy as np

from asched import names
from asched.core.cluster.affinity_terms import (
    NO_TERMS,
    AffinityTerm,
    AffinityTerms,
    reached_namespaces,
)
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodClass, PodInfo
from asched.core.cluster.view import NodeView
from asched.core.config.args import InterPodAffinityArgs
from asched.core.framework.order_free import OrderFree
from asched.core.framework.per_class import PerKey, PerPod
from asched.core.framework.points import (
    I64,
    IDLE,
    Codes,
    FilterPlugin,
    Mask,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Scope,
    ScorePlugin,
)
from asched.core.framework.registrations import Concerns, Hint, Registration
from asched.core.framework.status import SKIP, SUCCESS, failure, unresolvable
from asched.core.model.kinds import NAMESPACE, NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.selector import matches
from asched.core.model.workload import Namespace
from asched.core.plugins.inter_pod_affinity.attraction import Attraction, between
from asched.core.plugins.inter_pod_affinity.nearness import NOT_NEAR, TOO_NEAR, UNWANTED, Nearness
from asched.core.plugins.inter_pod_affinity.terms import MatchingTerms, Namespaces, term_matches
from asched.core.plugins.label_keys import LabelKey, offered_labels, sought_labels

Terms = tuple[AffinityTerm, ...]

POD_ACTIONS: Final = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL
NODE_ACTIONS: Final = Action.ADD | Action.UPDATE_NODE_LABEL


class _Affinity:
    """Both halves, for one version of the namespaces, of all pods with these labels and terms. Also
    their share key.
    """

    def __init__(self) -> None:
        self.epoch = -1
        self.nearness: Nearness | str = ""  # a text: the error of an invalid term
        self.attraction: Attraction | str = ""


class InterPodAffinity(OrderFree, PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    name = names.INTER_POD_AFFINITY
    scope = Scope.CLUSTER
    without_pre_filter = 'error reading "PreFilterInterPodAffinity" from cycleState: not found'
    without_pre_score = 'failed to read "PreScoreInterPodAffinity" from cycleState: not found'
    reasons = (NOT_NEAR, TOO_NEAR, UNWANTED)
    depends_on = Aspect.LABELS | Aspect.LIVE
    reads_counts = True
    kinds = (NAMESPACE,)
    normalizes = True
    rows_few = 2  # a row alone takes 2.5 µs, gathered ones 6

    def __init__(self, args: InterPodAffinityArgs | None, cluster: Cluster) -> None:
        self._args = args or InterPodAffinityArgs()
        self._cluster = cluster
        self._namespaces = Namespaces(cluster)
        self._affinities = PerKey(_what_matters, lambda _: _Affinity())
        self._terms_of = PerPod(cluster, lambda pod: cluster.classes.class_of(pod).terms)

    # --- the scheduling cycle --------------------------------------------------------------------

    def share_key(self, pod: PodInfo) -> Hashable:
        """Pods without terms, which no pod's terms match, share their answer."""
        own = pod.cls.example.spec.affinity
        has_terms = own is not None and (own.pod_affinity or own.pod_anti_affinity)
        if not has_terms and not self._cluster.topology.may_match_terms(pod.cls.label_set):
            return IDLE
        affinity = self._affinity_of(pod.cls)
        for part in (affinity.nearness, affinity.attraction):
            if isinstance(part, str) or not part.is_untouched:
                return affinity
        return IDLE

    def reach(self, pod: PodInfo) -> Collection[str] | None:
        own = pod.cls.example.spec.affinity
        if own is None or not (own.pod_affinity or own.pod_anti_affinity):
            return ()
        label_set, terms = pod.cls.label_set, self._terms(pod.pod)
        return reached_namespaces(terms, label_set.namespace, label_set.labels, self._namespaces)

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:
        return 0 if data is None else data.stamp()

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        nearness = self._affinity_of(pod.cls).nearness
        if isinstance(nearness, str):
            return PreFilterResult(unresolvable(f"parsing pod: {nearness}"))
        status = SKIP if nearness.stamp() else SUCCESS
        return PreFilterResult(status, None, nearness, nearness.moved)

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        nearness: Nearness = data
        return nearness.codes(nodes)

    def filter_few(self, pod: PodInfo, rows: Sequence[int], data: Any) -> list[int]:
        nearness: Nearness = data
        return [nearness.code_of(row) for row in rows]

    def pre_score(self, pod: PodInfo, nodes: NodeView, feasible: Mask) -> PreFilterResult:
        attracted = self._affinity_of(pod.cls).attraction
        if isinstance(attracted, str):
            return PreFilterResult(failure(f"failed to parse pod: {attracted}"))
        status = SKIP if attracted.stamp() else SUCCESS
        return PreFilterResult(status, None, attracted, attracted.moved)

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        attracted: Attraction = data
        return attracted.raw(nodes)

    def score_few(self, pod: PodInfo, rows: Sequence[int], data: Any) -> list[int]:
        attracted: Attraction = data
        return [attracted.raw_of(row) for row in rows]

    def bounds(self, raw: I64, data: Any) -> Hashable:
        return int(np.minimum.reduce(raw)), int(np.maximum.reduce(raw))  # methods call Python

    def scaled(self, raw: I64, bounds: Any, data: Any) -> I64:
        return between(raw, *bounds)

    def is_order_free(self, pod: PodInfo) -> bool:
        """Pods with anti-affinity may be placed in any order, unless namespaces are selected: the
        incoming and the placed pod evaluate such selectors differently.
        """
        terms = pod.cls.terms
        return not terms.required_affinity and all(
            term.namespace_selector is None for term in terms.required_anti_affinity
        )

    # --- waiting ---------------------------------------------------------------------------------

    def registrations(self) -> Sequence[Registration]:
        of_pods = Concerns(self._sought, self._offered)
        return (
            Registration(Trigger(POD.resource, POD_ACTIONS), self._pod_changed, of_pods),
            Registration(Trigger(NODE.resource, NODE_ACTIONS), self._node_changed),
        )

    def _pod_changed(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        if any(other is not None and other.uid == pod.uid for other in (old, new)):
            return Hint.QUEUE  # the waiting pod itself
        if _has_none(old, new):
            return Hint.SKIP
        terms = self._terms(pod)
        wanted, unwanted = terms.required_affinity, terms.required_anti_affinity
        if old is None:
            return Hint.QUEUE if new is not None and _match_all(wanted, new) else Hint.SKIP
        helps = _match_all(unwanted, old)
        if new is None:
            helps = helps or _match_all(self._terms(old).required_anti_affinity, pod)
        else:
            helps = helps and not _match_all(unwanted, new)
            helps = helps or (not _match_all(wanted, old) and _match_all(wanted, new))
        return Hint.QUEUE if helps else Hint.SKIP

    def _node_changed(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        terms = self._terms(pod)
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

    def extra_events(self) -> Sequence[Registration]:
        moved = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL
        of_pods = Concerns(self._sought, self._offered)
        return (
            Registration(Trigger(POD.resource, POD_ACTIONS), self._pod_may_help, of_pods),
            Registration(Trigger(NODE.resource, moved)),
            Registration(Trigger(NAMESPACE.resource, Action.ALL), self._namespace_may_help),
        )

    def _pod_may_help(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        return Hint.QUEUE if self._may_help(pod, old, new) else Hint.SKIP

    def _may_help(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        if _has_none(old, new):
            return False
        terms, namespaces = self._terms(pod), self._namespaces
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
            _term_matches(namespaces, term, pod) for term in self._terms(old).required_anti_affinity
        )

    def _namespace_may_help(self, pod: Pod, old: Namespace | None, new: Namespace | None) -> Hint:
        """Whether the pod's terms start or stop selecting the namespace, or whether terms that
        match the pod read other labels of its own namespace.
        """
        namespace = new or old
        is_own = namespace is not None and namespace.metadata.name == pod.metadata.namespace
        terms = self._terms(pod)
        own = (*terms.required_affinity, *terms.required_anti_affinity)
        helps = (is_own and _labels(old) != _labels(new)) or any(
            _selects(term, old) is not _selects(term, new) for term in own
        )
        return Hint.QUEUE if helps else Hint.SKIP

    def _sought(self, pod: Pod) -> Collection[Hashable] | None:
        """Keys of the pod changes that concern a waiting pod: labels that its terms match (of
        affinity, those of a single term suffice), and terms that match its own labels.
        """
        terms = self._terms(pod)
        keys: list[Hashable] = [(_MATCHES, key) for key in offered_labels(pod)]
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

    def _offered(self, old: Pod | None, new: Pod | None) -> Collection[Hashable] | None:
        """Keys that a new, deleted or changed pod offers to waiting pods."""
        if _has_none(old, new):
            return ()
        pods = [pod for pod in (old, new) if pod is not None]
        keys: list[Hashable] = [key for pod in pods for key in offered_labels(pod)]
        for term in self._terms(old if new is None else None).required_anti_affinity:
            sought_keys = _sought(term)
            if sought_keys is None:
                return None
            keys += [(_MATCHES, key) for key in sought_keys]
        return keys

    def _terms(self, pod: Pod | None) -> AffinityTerms:
        """Raises ValueError for an invalid term."""
        if pod is None or pod.spec.affinity is None:
            return NO_TERMS
        return self._terms_of(pod)

    def _affinity_of(self, cls: PodClass) -> _Affinity:
        known = self._affinities(cls)
        epoch = self._namespaces.epoch()
        if known.epoch != epoch:
            matching_terms = MatchingTerms(self._cluster, self._namespaces, cls)
            try:
                shared = self._cluster, self._namespaces, matching_terms, cls
                known.nearness = Nearness(*shared)
                known.attraction = Attraction(*shared, self._args)
            except ValueError as problem:
                known.nearness = known.attraction = str(problem)
            known.epoch = epoch
        return known


def _what_matters(cls: PodClass) -> Hashable:
    """Labels and terms."""
    try:
        return cls.label_set, cls.terms
    except ValueError:  # a class of its own
        return cls.number


#: Prefix of the keys of the waiting pod's labels, which terms of a deleted pod select.
_MATCHES: Final = "matches"


def _has_none(old: Pod | None, new: Pod | None) -> bool:
    """Whether a changed pod has no place."""
    return any(
        pod is not None and not (pod.spec.node_name or pod.status.nominated_node_name)
        for pod in (old, new)
    )


def _match_all(terms: Terms, pod: Pod) -> bool:
    """False without terms."""
    return bool(terms) and all(
        term_matches(term, pod.metadata.namespace, pod.labels) for term in terms
    )


def _sought(term: AffinityTerm) -> Collection[LabelKey] | None:
    selects_namespaces = term.namespace_selector is not None
    return sought_labels(None if selects_namespaces else term.namespaces, term.selector)


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


def _term_matches(namespaces: Namespaces, term: AffinityTerm, pod: Pod) -> bool:
    """Whether a term of another pod matches the waiting pod."""
    namespace = pod.metadata.namespace
    inside = term.covers_namespace(namespace, namespaces.labels_of(namespace))
    return inside and term.selector is not None and term.selector.matches(pod.labels)
