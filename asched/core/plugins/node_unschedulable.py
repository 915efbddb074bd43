"""NodeUnschedulable: a cordoned node takes no pod that does not tolerate the cordon.

Rejects   nodes with `spec.unschedulable`, unless the pod tolerates the unschedulable taint;
          the taint itself is left to TaintToleration.
Retry     a node appears or is uncordoned; the pod itself gains the toleration.
Cost      one copy of bool[N].
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/nodeunschedulable
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.config.gates import DEFAULT_GATES
from asched.core.framework.per_class import PerClass
from asched.core.framework.points import Codes, FilterPlugin, Scope
from asched.core.framework.registrations import Hint, Registration
from asched.core.framework.status import Reason
from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.taint import NO_SCHEDULE, Taint, tolerated, without_comparisons

CORDONED: Final = Reason("node(s) were unschedulable", resolvable=False)
CORDON: Final = Taint(key=names.TAINT_UNSCHEDULABLE, effect=NO_SCHEDULE)


class NodeUnschedulable(FilterPlugin):
    """Under TaintTolerationComparisonOperators, Lt and Gt count."""

    name = names.NODE_UNSCHEDULABLE
    scope = Scope.NODE
    reasons = (CORDONED,)
    depends_on = Aspect.TAINTS | Aspect.LIVE

    def __init__(self, gates: Mapping[str, bool] = DEFAULT_GATES) -> None:
        compares = gates["TaintTolerationComparisonOperators"]

        def is_tolerant(pod: Pod) -> bool:
            tolerations = pod.spec.tolerations or ()
            return tolerated(CORDON, tolerations if compares else without_comparisons(tolerations))

        self._is_tolerant = is_tolerant
        self._tolerates = PerClass(lambda cls: is_tolerant(cls.example))

    def registrations(self) -> Sequence[Registration]:
        node = Trigger(NODE.resource, Action.ADD | Action.UPDATE_NODE_TAINT)
        pod = Trigger(POD.resource, Action.UPDATE_POD_TOLERATION)
        return (Registration(node, _node_changed), Registration(pod, self._pod_changed))

    def share_key(self, pod: PodInfo) -> Hashable:
        return bool(pod.cls.example.spec.tolerations) and self._tolerates(pod.cls)

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        if self._tolerates(pod.cls):
            return np.zeros(nodes.size, dtype=np.int32)
        return nodes.unschedulable.astype(np.int32)

    def _pod_changed(self, pod: Pod, _old: Pod | None, new: Pod) -> Hint:
        return Hint.QUEUE if new.uid == pod.uid and self._is_tolerant(new) else Hint.SKIP


def _node_changed(_pod: Pod, old: Node | None, new: Node) -> Hint:
    was_closed = old is None or old.spec.unschedulable
    return Hint.QUEUE if was_closed and not new.spec.unschedulable else Hint.SKIP
