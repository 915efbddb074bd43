"""NodeAffinity: a pod goes where its node selector and node affinity say.

Rejects   nodes outside the operator's addedAffinity, or outside the pod's nodeSelector and
          required terms; evicting pods cannot help.
Prefers   nodes by the summed weights of the preferred terms they match.
Retry     a node appears, or comes to match by a change of its labels.
Cost      each requirement is judged once for each distinct value of its label, then one gather.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/nodeaffinity
"""

from collections.abc import Hashable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from asched import names
from asched.core.config.args import NodeAffinityArgs
from asched.core.framework.points import (
    I64,
    IDLE,
    Codes,
    FilterPlugin,
    Hint,
    Mask,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Registration,
)
from asched.core.framework.scaling import ScaledByLargest
from asched.core.framework.status import SKIP, Reason, unresolvable
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE
from asched.core.model.node import Node
from asched.core.model.pod import NodeAffinity as Affinity
from asched.core.model.pod import Pod
from asched.core.model.selector import (
    NodeTerm,
    PreferredSchedulingTerm,
    compile_node_selector,
    compile_term,
)
from asched.core.plugins.per_class import PerClass
from asched.core.plugins.stepwise import Stepwise
from asched.core.plugins.term_match import match_any, match_labels, match_term
from asched.core.state.budget import Budget
from asched.core.state.changes import Action, Trigger
from asched.core.state.cluster import Cluster
from asched.core.state.nodes import Aspect
from asched.core.state.pods import PodClass, PodInfo
from asched.core.state.view import NodeView

NOT_ENFORCED: Final = Reason(
    "node(s) didn't match scheduler-enforced node affinity", resolvable=False
)
NOT_SELECTED: Final = Reason("node(s) didn't match Pod's node affinity/selector", resolvable=False)
CONFLICT: Final = "pod affinity terms conflict"

#: Steps of the budget for a term of a pod, and for each of its requirements, over all nodes.
TERM_STEPS: Final = 2

Terms = tuple[NodeTerm, ...]
#: (weight, term) of those preferred terms that can ever count.
Preferred = tuple[tuple[int, NodeTerm], ...]


class Wish(NamedTuple):
    """What a class of pods asks of its node. None: no such restriction, or no such list."""

    labels: tuple[tuple[str, str], ...] | None
    required: Terms | None
    #: the only names that the required terms leave, as far as their fields tell
    node_names: frozenset[str] | None
    preferred: Preferred | None


NO_WISH: Final = Wish(None, None, None, None)


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScaledByLargest):
    name = names.NODE_AFFINITY
    reasons = (NOT_ENFORCED, NOT_SELECTED)
    depends_on = Aspect.LABELS | Aspect.LIVE

    def __init__(
        self, args: NodeAffinityArgs | None = None, cluster: Cluster | None = None
    ) -> None:
        """Without a cluster nobody's budget is asked."""
        budget = Budget() if cluster is None else cluster.budget
        self._masks: Stepwise[NodeTerm, Mask] = Stepwise(budget, _steps_of)
        self._sums: Stepwise[tuple[int, NodeTerm], I64] = Stepwise(
            budget, lambda weighed: _steps_of(weighed[1])
        )
        added = decode(Affinity, args.added_affinity) if args and args.added_affinity else None
        self._enforced = compile_node_selector(added.required) if added else None
        self._added_preferred = _preferred(added.preferred if added else None) or ()
        self._has_added_preferred = bool(added and added.preferred)
        self._adds = self._enforced is not None or self._has_added_preferred
        self._wish = PerClass(_wish_of)

    def registrations(self) -> Sequence[Registration]:
        node = Trigger(NODE.resource, Action.ADD | Action.UPDATE_NODE_LABEL)
        return (Registration(node, self._node_changed),)

    def extra_events(self) -> Sequence[Registration]:
        if self._enforced is None:
            return ()
        return (
            Registration(Trigger(NODE.resource, Action.UPDATE_NODE_LABEL), self._comes_to_match),
        )

    def share_key(self, pod: PodInfo) -> Hashable:
        wish = self._wish(pod.cls)
        return IDLE if wish == NO_WISH and not self._adds else wish

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        wish = self._wish(pod.cls)
        if wish.labels is None and wish.required is None and self._enforced is None:
            return PreFilterResult(SKIP)
        if wish.node_names is None:
            return PreFilterResult()
        if not wish.node_names:
            return PreFilterResult(unresolvable(CONFLICT))
        return PreFilterResult(node_names=wish.node_names)

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:  # noqa: ARG002
        wish = self._wish(pod.cls)
        codes = np.zeros(nodes.size, dtype=np.int32)
        if wish.labels:
            codes[~match_labels(nodes, wish.labels)] = 2
        if wish.required is not None:
            codes[~self._match_any(pod.cls, nodes, wish.required)] = 2
        if self._enforced is not None:
            codes[~match_any(nodes, self._enforced)] = 1
        return codes

    def pre_score(self, pod: PodInfo, nodes: NodeView, feasible: Mask) -> PreFilterResult:  # noqa: ARG002
        is_idle = self._wish(pod.cls).preferred is None and not self._has_added_preferred
        return PreFilterResult(SKIP) if is_idle else PreFilterResult()

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:  # noqa: ARG002
        terms = (*self._added_preferred, *(self._wish(pod.cls).preferred or ()))
        return self._sums.sum(
            _key_of(pod.cls, nodes),
            lambda: nodes.table.labels_moved,
            terms,
            np.zeros(nodes.size, dtype=np.int64),
            lambda total, weighed: total + weighed[0] * match_term(nodes, weighed[1]),
        )

    def _match_any(self, cls: PodClass, nodes: NodeView, terms: Terms) -> Mask:
        """bool[M]: rows that some term selects. A pod may have thousands."""
        return self._masks.sum(
            _key_of(cls, nodes),
            lambda: nodes.table.labels_moved,
            terms,
            np.zeros(nodes.size, dtype=np.bool_),
            lambda total, term: total | match_term(nodes, term),
        )

    def _node_changed(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        if self._enforced is not None and not _matches_any(self._enforced, new):
            return Hint.SKIP
        if not _selects(pod, new):
            return Hint.SKIP
        return Hint.QUEUE if old is None or not _selects(pod, old) else Hint.SKIP

    def _comes_to_match(self, pod: Pod, old: Node, new: Node) -> Hint:  # noqa: ARG002
        """The hint compares the pod's own part alone."""
        enforced = self._enforced or ()
        comes = _matches_any(enforced, new) and not _matches_any(enforced, old)
        return Hint.QUEUE if comes else Hint.SKIP


def _key_of(cls: PodClass, nodes: NodeView) -> Hashable:
    return cls.number, None if nodes.rows is None else nodes.rows.tobytes()


def _steps_of(term: NodeTerm) -> float:
    return TERM_STEPS * (1 + len(term.expressions))


def _wish_of(cls: PodClass) -> Wish:
    spec = cls.example.spec
    affinity = spec.affinity.node_affinity if spec.affinity else None
    selector = spec.node_selector
    return Wish(
        None if selector is None else tuple(sorted(selector.items())),
        compile_node_selector(affinity.required) if affinity else None,
        _node_names(affinity) if affinity else None,
        _preferred(affinity.preferred) if affinity else None,
    )


def _node_names(affinity: Affinity) -> frozenset[str] | None:
    """The union over the required terms of the names each allows; None if one allows any."""
    terms = affinity.required.node_selector_terms if affinity.required else None
    if not terms:
        return None
    allowed: frozenset[str] = frozenset()
    for term in terms:
        lists = [
            frozenset(field.values or ())
            for field in term.match_fields or ()
            if field.key == "metadata.name" and field.operator == "In"
        ]
        if not lists:
            return None
        allowed |= frozenset.intersection(*lists)
    return allowed


def _preferred(terms: tuple[PreferredSchedulingTerm, ...] | None) -> Preferred | None:
    """Terms without weight, without requirements or with a senseless one never count."""
    if terms is None:
        return None
    compiled = ((term.weight, compile_term(term.preference)) for term in terms)
    return tuple((w, term) for w, term in compiled if w and not term.is_empty and not term.broken)


def _matches_any(terms: Terms, node: Node) -> bool:
    return any(term.matches(node.name, node.labels) for term in terms)


def _selects(pod: Pod, node: Node) -> bool:
    """Whether the pod's own rule selects the node.

    Raises ValueError if no term does and one of them makes no sense, as upstream's hint does.
    """
    spec = pod.spec
    labels = node.labels
    if any(labels.get(key) != value for key, value in (spec.node_selector or {}).items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    terms = compile_node_selector(affinity.required) if affinity else None
    if terms is None or _matches_any(terms, node):
        return True
    if any(term.broken for term in terms):
        raise ValueError(f"pod {pod.key} has a node affinity term that makes no sense")
    return False
