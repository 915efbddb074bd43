"""The plugin itself: the terms that concern a class of pods, and the extension points."""

from collections.abc import Collection, Hashable, Sequence
from typing import Any, Final

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import NO_TERMS, AffinityTerms, PodClass, PodInfo
from asched.core.cluster.view import NodeView
from asched.core.config.args import InterPodAffinityArgs
from asched.core.framework.order_free import OrderFree
from asched.core.framework.per_class import PerKey, PerPod
from asched.core.framework.points import (
    I64,
    IDLE,
    Codes,
    Concerns,
    FilterPlugin,
    Hint,
    Mask,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Registration,
    ScorePlugin,
)
from asched.core.framework.status import SKIP, SUCCESS, failure, unresolvable
from asched.core.model.kinds import NAMESPACE, NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.workload import Namespace
from asched.core.plugins.inter_pod_affinity import attraction, hints
from asched.core.plugins.inter_pod_affinity.nearness import (
    NOT_NEAR,
    TOO_NEAR,
    UNWANTED,
    Nearness,
)
from asched.core.plugins.inter_pod_affinity.terms import Namespaces

POD_ACTIONS: Final = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL
NODE_ACTIONS: Final = Action.ADD | Action.UPDATE_NODE_LABEL


class _Affinity:
    """Both halves, for one version of the namespaces, of all pods with these labels and terms. Also
    their share key.
    """

    def __init__(self) -> None:
        self.epoch = -1
        self.nearness: Nearness | str = ""  # a text: the error of an invalid term
        self.attraction: attraction.Attraction | str = ""


class InterPodAffinity(OrderFree, PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    name = names.INTER_POD_AFFINITY
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
        speaks = own is not None and (own.pod_affinity or own.pod_anti_affinity)
        if not speaks and not self._cluster.topology.may_speak_of(pod.cls.label_set):
            return IDLE
        affinity = self._affinity_of(pod.cls)
        halves = (affinity.nearness, affinity.attraction)
        if any(isinstance(half, str) or not half.is_untouched for half in halves):
            return affinity
        return IDLE

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:  # noqa: ARG002
        return 0 if data is None else data.stamp()

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        nearness = self._affinity_of(pod.cls).nearness
        if isinstance(nearness, str):
            return PreFilterResult(unresolvable(f"parsing pod: {nearness}"))
        nearness.keep()
        status = SKIP if nearness.is_idle else SUCCESS
        return PreFilterResult(status, None, nearness, nearness.moved.log)

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:  # noqa: ARG002
        nearness: Nearness = data
        return nearness.codes(nodes)

    def filter_one(self, pod: PodInfo, row: int, data: Any) -> int:  # noqa: ARG002
        nearness: Nearness = data
        return nearness.code_of(row)

    def pre_score(self, pod: PodInfo, nodes: NodeView, feasible: Mask) -> PreFilterResult:  # noqa: ARG002
        attracted = self._affinity_of(pod.cls).attraction
        if isinstance(attracted, str):
            return PreFilterResult(failure(f"failed to parse pod: {attracted}"))
        attracted.keep()
        status = SKIP if attracted.is_idle else SUCCESS
        return PreFilterResult(status, None, attracted, attracted.moved.log)

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:  # noqa: ARG002
        attracted: attraction.Attraction = data
        return attracted.raw(nodes)

    def score_one(self, pod: PodInfo, row: int, data: Any) -> int:  # noqa: ARG002
        attracted: attraction.Attraction = data
        return attracted.raw_of(row)

    def bounds(self, raw: I64, data: Any) -> Hashable:  # noqa: ARG002
        return int(raw.min()), int(raw.max())

    def scaled(self, raw: I64, bounds: Any, data: Any) -> I64:  # noqa: ARG002
        return attraction.between(raw, *bounds)

    def scaled_one(self, score: int, bounds: Any) -> int | None:
        return attraction.one_between(score, *bounds)

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
        gone_terms = self._terms(old if new is None else None)
        return hints.hint_of_pod(self._terms(pod), gone_terms, pod, old, new)

    def _node_changed(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        return hints.hint_of_node(self._terms(pod), old, new)

    def extra_events(self) -> Sequence[Registration]:
        moved = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL
        of_pods = Concerns(self._sought, self._offered)
        return (
            Registration(Trigger(POD.resource, POD_ACTIONS), self._pod_may_help, of_pods),
            Registration(Trigger(NODE.resource, moved)),
            Registration(Trigger(NAMESPACE.resource, Action.ALL), self._namespace_may_help),
        )

    def _pod_may_help(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        terms = self._terms(pod)
        gone = self._terms(old) if new is None else NO_TERMS
        if (
            hints.names_namespaces(terms)
            if old is None
            else hints.is_plain(terms) and hints.is_plain(gone)
        ):
            return Hint.SKIP
        helps = hints.pod_may_help(terms, gone, self._namespaces, pod, old, new)
        return Hint.QUEUE if helps else Hint.SKIP

    def _sought(self, pod: Pod) -> Collection[Hashable] | None:
        return hints.sought_of_pods(self._terms(pod), pod)

    def _offered(self, old: Pod | None, new: Pod | None) -> Collection[Hashable] | None:
        gone = self._terms(old) if new is None else NO_TERMS
        return hints.offered_by_pods(gone, old, new)

    def _namespace_may_help(self, pod: Pod, old: Namespace | None, new: Namespace | None) -> Hint:
        helps = hints.namespace_may_help(self._terms(pod), pod, old, new)
        return Hint.QUEUE if helps else Hint.SKIP

    def _terms(self, pod: Pod | None) -> AffinityTerms:
        """Raises ValueError for an invalid term."""
        if pod is None or pod.spec.affinity is None:
            return NO_TERMS
        return self._terms_of(pod)

    def _affinity_of(self, cls: PodClass) -> _Affinity:
        known = self._affinities(cls)
        epoch = self._namespaces.epoch()
        if known.epoch != epoch:
            try:
                known.nearness = Nearness(self._cluster, self._namespaces, cls)
                known.attraction = attraction.Attraction(
                    self._cluster, self._namespaces, cls, self._args
                )
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
