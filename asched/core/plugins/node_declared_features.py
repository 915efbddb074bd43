"""NodeDeclaredFeatures: place pods on nodes whose kubelet declares the required features.

Rejects   nodes whose `status.declaredFeatures` lack a feature that the pod's spec implies;
          evicting pods cannot help.
Retry     a node appears or declares other features; the needs of the pod itself change.
Cost      each distinct set of features is evaluated once for each need, then one gather.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/nodedeclaredfeatures,
          staging/src/k8s.io/component-helpers/nodedeclaredfeatures
"""

from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodClass, PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.per_class import PerClass
from asched.core.framework.points import (
    IDLE,
    Codes,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    Scope,
)
from asched.core.framework.registrations import Hint, Registration
from asched.core.framework.status import SKIP, Reason
from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.plugins.term_match import ByValue

MISSING: Final = Reason("node(s) didn't match Pod's required features", resolvable=False)

RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"

Features = frozenset[str]


class FeatureNeed:
    """What a pod needs, and which distinct sets of declared features lack it, by id."""

    def __init__(self, cls: PodClass) -> None:
        self.features = features = required_features(cls.example)
        self.lacking: ByValue[Features] = ByValue(lambda have: not features <= have, np.int32)


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin):
    name = names.NODE_DECLARED_FEATURES
    scope = Scope.NODE
    without_pre_filter = 'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'
    reasons = (MISSING,)
    depends_on = Aspect.FEATURES | Aspect.LIVE

    def __init__(self) -> None:
        self._need = PerClass(FeatureNeed)

    def registrations(self) -> Sequence[Registration]:
        node = Trigger(NODE.resource, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE)
        pod = Trigger(POD.resource, Action.UPDATE)
        return (Registration(node, _node_changed), Registration(pod, _pod_changed))

    def share_key(self, pod: PodInfo) -> Hashable:
        return required_features(pod.cls.example) or IDLE

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        return PreFilterResult() if self._need(pod.cls).features else PreFilterResult(SKIP)

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        lacking: Codes = self._need(pod.cls).lacking.of(nodes.table.feature_sets)
        return lacking[nodes.feature_set]


def required_features(pod: Pod) -> Features:
    """Features of the kubelet that a pod's spec implies."""
    spec = pod.spec
    found = set()
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        for rule in container.restart_policy_rules or ():
            if rule.action == "RestartAllContainers":
                found.add(RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        found.add(USER_NAMESPACES_HOST_NETWORK)
    return frozenset(found)


def _node_changed(_pod: Pod, old: Node | None, new: Node) -> Hint:
    """Any difference wakes the pod, even one that cannot help it, as upstream does."""
    if old is None:
        return Hint.QUEUE
    before, after = old.status.declared_features, new.status.declared_features
    return Hint.QUEUE if set(before or ()) != set(after or ()) else Hint.SKIP


def _pod_changed(pod: Pod, old: Pod | None, new: Pod) -> Hint:
    if new.uid != pod.uid:
        return Hint.SKIP
    was = required_features(old) if old is not None else None
    return Hint.QUEUE if required_features(new) != was else Hint.SKIP
