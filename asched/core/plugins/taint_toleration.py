"""TaintToleration: reject and score nodes by taints that a pod does not tolerate.

Rejects   a NoSchedule or NoExecute taint outside the tolerations; evicting pods cannot help.
Prefers   nodes with the fewest untolerated PreferNoSchedule taints.
Retry     a node appears or loses a taint; the pod itself gains a toleration.
Cost      each distinct set of taints is evaluated once for each set of tolerations, then one
          gather.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/tainttoleration
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.config.gates import DEFAULT_GATES
from asched.core.framework.normalization import ScaledByLargest
from asched.core.framework.per_class import PerClass, PerPod
from asched.core.framework.points import (
    I64,
    Codes,
    FilterPlugin,
    Mask,
    PreFilterResult,
    PreScorePlugin,
    Scope,
)
from asched.core.framework.registrations import Hint, Registration
from asched.core.framework.status import Reason
from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.taint import (
    PREFER_NO_SCHEDULE,
    Taint,
    Toleration,
    Tolerations,
    without_comparisons,
)
from asched.core.plugins.term_match import ByValue

UNTOLERATED: Final = Reason("node(s) had untolerated taint(s)", resolvable=False)

Taints = tuple[Taint, ...]


class Judgement:
    """Verdict of one set of tolerations on every distinct set of taints, by id."""

    def __init__(self, tolerations: tuple[Toleration, ...]) -> None:
        soft = tuple(t for t in tolerations if t.effect in ("", PREFER_NO_SCHEDULE))
        is_blocked = partial(_is_blocked, tolerations=Tolerations(tolerations))
        disliked_count = partial(_disliked_count, soft=Tolerations(soft))
        self.blocked: ByValue[Taints] = ByValue(is_blocked, np.int32)
        self.disliked: ByValue[Taints] = ByValue(disliked_count, np.int64)


class TaintToleration(FilterPlugin, PreScorePlugin, ScaledByLargest):
    """Under TaintTolerationComparisonOperators, Lt and Gt count."""

    name = names.TAINT_TOLERATION
    scope = Scope.NODE
    without_pre_score = 'failed to read "PreScoreTaintToleration" from cycleState: not found'
    reasons = (UNTOLERATED,)
    depends_on = Aspect.TAINTS | Aspect.LIVE
    reverses = True

    def __init__(self, cluster: Cluster, gates: Mapping[str, bool] = DEFAULT_GATES) -> None:
        compares = gates["TaintTolerationComparisonOperators"]

        def tolerations_of(pod: Pod) -> tuple[Toleration, ...]:
            tolerations = pod.spec.tolerations or ()
            return tolerations if compares else without_comparisons(tolerations)

        self._judgement = PerClass(lambda cls: Judgement(tolerations_of(cls.example)))
        self._of_pod = PerPod(cluster, lambda pod: Tolerations(tolerations_of(pod)))

    def registrations(self) -> Sequence[Registration]:
        node = Trigger(NODE.resource, Action.ADD | Action.UPDATE_NODE_TAINT)
        pod = Trigger(POD.resource, Action.UPDATE_POD_TOLERATION)
        return (Registration(node, self._node_changed), Registration(pod, _pod_changed))

    def share_key(self, pod: PodInfo) -> Hashable:
        return pod.cls.example.spec.tolerations or ()

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        blocked: Codes = self._judgement(pod.cls).blocked.of(nodes.table.taint_sets)
        return blocked[nodes.taint_set]

    def pre_score(self, pod: PodInfo, nodes: NodeView, feasible: Mask) -> PreFilterResult:
        return PreFilterResult()

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        disliked: I64 = self._judgement(pod.cls).disliked.of(nodes.table.taint_sets)
        return disliked[nodes.taint_set]

    def _node_changed(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        tolerations = self._of_pod(pod)
        was_blocked = old is None or _is_blocked(old.spec.taints or (), tolerations)
        is_open = not _is_blocked(new.spec.taints or (), tolerations)
        return Hint.QUEUE if was_blocked and is_open else Hint.SKIP


def _is_blocked(taints: Taints, tolerations: Tolerations) -> bool:
    return any(taint.is_hard and not tolerations.tolerate(taint) for taint in taints)


def _disliked_count(taints: Taints, soft: Tolerations) -> int:
    return sum(taint.effect == PREFER_NO_SCHEDULE and not soft.tolerate(taint) for taint in taints)


def _pod_changed(pod: Pod, _old: Pod | None, new: Pod) -> Hint:
    return Hint.QUEUE if new.uid == pod.uid else Hint.SKIP
