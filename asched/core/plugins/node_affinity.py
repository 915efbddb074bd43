"""NodeAffinity: place a pod by its node selector and node affinity.

Rejects   nodes outside the operator's addedAffinity, or outside the pod's nodeSelector and
          required terms; evicting pods cannot help.
Prefers   nodes by the summed weights of the preferred terms they match.
Retry     a node appears, or comes to match by a change of its labels.
Cost      each requirement is evaluated once for each distinct value of its label, then one gather.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/nodeaffinity
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodClass, PodInfo
from asched.core.cluster.view import NodeView
from asched.core.config.args import NodeAffinityArgs
from asched.core.framework.normalization import ScaledByLargest
from asched.core.framework.per_class import PerKey
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
)
from asched.core.framework.registrations import Hint, Registration
from asched.core.framework.status import SKIP, Reason, unresolvable
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE
from asched.core.model.node import Node
from asched.core.model.pod import Pod, PodNodeAffinity
from asched.core.model.selector import (
    NodeTerm,
    PreferredSchedulingTerm,
    compile_node_selector,
    compile_term,
)
from asched.core.plugins.term_match import match_any, match_labels, match_term

NOT_ENFORCED: Final = Reason(
    "node(s) didn't match scheduler-enforced node affinity", resolvable=False
)
NOT_SELECTED: Final = Reason("node(s) didn't match Pod's node affinity/selector", resolvable=False)
CONFLICT: Final = "pod affinity terms conflict"

_encoder: Final = msgspec.msgpack.Encoder(order="deterministic")

Terms = tuple[NodeTerm, ...]
#: (weight, term) of those preferred terms that can ever count.
Preferred = tuple[tuple[int, NodeTerm], ...]


class NodeRequirements:
    """Node requirements of all pods that write the same ones. None: no such restriction, or no such
    list. Also their share key.
    """

    def __init__(self, cls: PodClass) -> None:
        spec = cls.example.spec
        affinity = spec.affinity.node_affinity if spec.affinity else None
        selector = spec.node_selector
        required = affinity.required if affinity else None
        preferred = affinity.preferred if affinity else None
        self.labels = None if selector is None else tuple(sorted(selector.items()))
        #: the only node names that the required terms allow, as far as their fields say
        self.node_names = affinity.node_names if affinity else None
        self.required = compile_node_selector(required)
        #: whether there are preferred terms, and those that can ever count
        self.prefers = preferred is not None
        self.preferred = _useful(preferred or ())

    @property
    def restricts(self) -> bool:
        """Whether the pod requires anything of its node."""
        return self.labels is not None or self.required is not None


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScaledByLargest):
    name = names.NODE_AFFINITY
    scope = Scope.NODE
    reasons = (NOT_ENFORCED, NOT_SELECTED)
    depends_on = Aspect.LABELS | Aspect.LIVE

    def __init__(self, args: NodeAffinityArgs | None = None) -> None:
        added = (
            decode(PodNodeAffinity, args.added_affinity) if args and args.added_affinity else None
        )
        self._enforced = compile_node_selector(added.required) if added else None
        self._added_preferred = _useful((added.preferred if added else None) or ())
        self._has_added_preferred = bool(added and added.preferred)
        self._adds = self._enforced is not None or self._has_added_preferred
        self._requirements_of = PerKey(_what_matters, NodeRequirements)

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
        spec = pod.cls.example.spec
        is_bare = spec.node_selector is None and spec.affinity is None
        if is_bare and not self._adds:
            return IDLE
        needs = self._requirements_of(pod.cls)
        return needs if needs.restricts or needs.prefers or self._adds else IDLE

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        needs = self._requirements_of(pod.cls)
        if not needs.restricts and self._enforced is None:
            return PreFilterResult(SKIP)
        if needs.node_names is None:
            return PreFilterResult()
        if not needs.node_names:
            return PreFilterResult(unresolvable(CONFLICT))
        return PreFilterResult(node_names=needs.node_names)

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        needs = self._requirements_of(pod.cls)
        codes = np.zeros(nodes.size, dtype=np.int32)
        if needs.labels:
            codes[~match_labels(nodes, needs.labels)] = 2
        if needs.required is not None:
            codes[~match_any(nodes, needs.required)] = 2
        if self._enforced is not None:
            codes[~match_any(nodes, self._enforced)] = 1
        return codes

    def pre_score(self, pod: PodInfo, nodes: NodeView, feasible: Mask) -> PreFilterResult:
        is_idle = not self._requirements_of(pod.cls).prefers and not self._has_added_preferred
        return PreFilterResult(SKIP) if is_idle else PreFilterResult()

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        total = np.zeros(nodes.size, dtype=np.int64)
        for weight, term in (*self._added_preferred, *self._requirements_of(pod.cls).preferred):
            total += weight * match_term(nodes, term)
        return total

    def _node_changed(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        if self._enforced is not None and not _matches_any(self._enforced, new):
            return Hint.SKIP
        if not _selects(pod, new):
            return Hint.SKIP
        return Hint.QUEUE if old is None or not _selects(pod, old) else Hint.SKIP

    def _comes_to_match(self, pod: Pod, old: Node, new: Node) -> Hint:
        """The hint compares only the pod's own requirements."""
        enforced = self._enforced or ()
        comes = _matches_any(enforced, new) and not _matches_any(enforced, old)
        return Hint.QUEUE if comes else Hint.SKIP


def _what_matters(cls: PodClass) -> Hashable:
    """Node selector and node affinity as written."""
    spec = cls.example.spec
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity is None and spec.node_selector is None:
        return None
    return _encoder.encode((spec.node_selector, affinity))


def _useful(terms: Iterable[PreferredSchedulingTerm]) -> Preferred:
    """Terms without weight, without requirements or with an invalid requirement never count."""
    compiled = [(term.weight, compile_term(term.preference)) for term in terms]
    return tuple((w, term) for w, term in compiled if w and not term.is_empty and not term.broken)


def _matches_any(terms: Terms, node: Node) -> bool:
    return any(term.matches(node.name, node.labels) for term in terms)


def _selects(pod: Pod, node: Node) -> bool:
    """Whether the pod's own rule selects the node.

    Raises ValueError if no term does and one is invalid, as upstream's hint does.
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
        raise ValueError(f"pod {pod.key} has an invalid node affinity term")
    return False
