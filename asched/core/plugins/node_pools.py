"""NodePools: place a pod on the nodes of its own pool only (`pools` of the configuration).

Rejects   nodes of other pools, and nodes that several pools select; evicting pods cannot help. A
          pod whose namespace several pools select.
          A pod that its required node affinity pins to one node, with rules about that node alone,
          as DaemonSets make them, belongs to the pool of its node, whatever its namespace.
          A pod with a rule that may concern pods of another pool (`Plugin.scope`): what is allowed
          must not depend on which of them is placed first, and each pool decides for itself.
          Pods and nodes of pools that another process holds: these pods are gated.
Retry     a node comes to the pod's pool; a namespace that the pod's rules are about changes.
Cost      one comparison for each row, and again for rows whose labels change.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.pools import (
    IN_SEVERAL,
    NOT_OURS,
    SEVERAL,
    Pools,
    is_of_one_node,
    only_node,
)
from asched.core.cluster.view import NodeView
from asched.core.config.across_pools import namespaces_to_share, of_another_node, why_stopped
from asched.core.framework.per_class import PerClass
from asched.core.framework.points import (
    Codes,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    Scope,
)
from asched.core.framework.registrations import Hint, Registration
from asched.core.framework.runner import ExtenderChain
from asched.core.framework.status import SUCCESS, Reason, Status, unresolvable
from asched.core.model.kinds import NAMESPACE, NODE
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.workload import Namespace

OTHER_POOL: Final = Reason("node(s) belonged to another pool", resolvable=False)
SEVERAL_POOLS: Final = Reason("node(s) belonged to several pools", resolvable=False)
HELD_ELSEWHERE: Final = Reason("node(s) were not free to be used by their pool", resolvable=False)
#: Of a pod with a rule about pods of this namespace.
NOT_LET_GO: Final = "another replica has not let go of namespace {} yet"
#: Of a pod that this process does not decide.
NOT_DECIDED_HERE: Final = "another replica holds the pod's pool, or has not let go of it yet"

#: Points at which a rule decides whether a pod may go to a node.
REJECTING: Final = (PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, ReservePlugin, PermitPlugin)


def concerns_all_pods(cls: type[Plugin]) -> bool:
    """Whether a rule of these plugins may concern pods of any namespace."""
    is_wide = cls.scope is Scope.CLUSTER and issubclass(cls, REJECTING)
    return is_wide and cls.reach is Plugin.reach


class NodePools(PreEnqueuePlugin, PreFilterPlugin, FilterPlugin):
    name = names.NODE_POOLS
    scope = Scope.NODE
    reasons = (OTHER_POOL, SEVERAL_POOLS, HELD_ELSEWHERE)
    depends_on = Aspect.LABELS | Aspect.LIVE
    kinds = (NAMESPACE,)

    def __init__(self, pools: Pools) -> None:
        self.pools = pools
        self._is_of_node = PerClass(is_of_one_node)
        self._reaching: tuple[Plugin, ...] = ()
        self._extenders: ExtenderChain | None = None

    def restrict(self, plugins: Iterable[Plugin], extenders: ExtenderChain | None) -> None:
        """Stop pods with rules of these plugins and extenders about pods of other pools."""
        self._reaching = tuple(
            plugin
            for plugin in plugins
            if plugin.scope is Scope.CLUSTER and isinstance(plugin, REJECTING)
        )
        rejects = extenders is not None and (extenders.has_filter or extenders.has_preempt)
        self._extenders = extenders if rejects else None

    def pre_enqueue(self, pod: Pod) -> Status:
        return SUCCESS if self.pools.may_decide(pod) else unresolvable(NOT_DECIDED_HERE)

    def share_key(self, pod: PodInfo) -> Hashable:
        if not self.pools.may_decide(pod.pod):
            return NOT_DECIDED_HERE
        if why := self._obstacle(pod):
            return why
        if self._is_of_node(pod.cls):
            return None
        namespace = pod.cls.label_set.namespace
        pool = self.pools.of_namespace(namespace)
        return pool if pool >= 0 else namespace

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        if not self.pools.may_decide(pod.pod):  # it was queued before its namespace moved
            return PreFilterResult(unresolvable(NOT_DECIDED_HERE))
        if why := self._obstacle(pod):
            return PreFilterResult(unresolvable(why))
        if self._is_of_node(pod.cls):
            return PreFilterResult()
        namespace = pod.cls.label_set.namespace
        pool = self.pools.of_namespace(namespace)
        if pool == SEVERAL:
            of = self.pools.rules.listed(self.pools.selecting(namespace))
            return PreFilterResult(unresolvable(f"namespace {IN_SEVERAL.format(of)}"))
        return PreFilterResult(data=pool)

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        pools = nodes.gather(self.pools.of_rows())
        codes = np.zeros(nodes.size, dtype=np.int32)
        if data is not None:
            codes[pools != data] = 1
        codes[pools == SEVERAL] = 2
        codes[pools == NOT_OURS] = 3
        return codes

    def _obstacle(self, pod: PodInfo) -> str:
        """Why a rule of the pod may concern pods of other pools; empty if none does."""
        if self._extenders is not None and self._extenders.is_interested(pod):
            return why_stopped("an HTTP extender", None)
        for plugin in self._reaching:
            reached = self._reached(plugin, pod)
            if reached is None:
                return why_stopped(plugin.name, None)
            if reached and (why := self._across(plugin.name, pod, reached)):
                return why
        return ""

    def _across(self, rule: str, pod: PodInfo, reached: Collection[str]) -> str:
        """Why a rule about pods of these namespaces stops the pod; empty if it does not. All of
        them belong to its pool, and no other process decides for one of them any more.
        """
        pools, own = self.pools, pod.cls.label_set.namespace
        if to_share := namespaces_to_share(own, reached, pools.of_namespace):
            return why_stopped(rule, to_share)
        if pools.of_waiting(pod.pod) != pools.of_namespace(own):
            return of_another_node(rule, only_node(pod.pod), own)
        others = (name for name in sorted({own, *reached}) if not pools.is_let_go(name))
        return next(map(NOT_LET_GO.format, others), "")

    def reaches_out(self, pod: PodInfo) -> bool:
        """Whether a rule of the pod is about pods that another process may decide for."""
        return bool(self._reaching) and bool(self._obstacle(pod))

    def _reached(self, plugin: Plugin, pod: PodInfo) -> Collection[str] | None:
        try:
            return plugin.reach(pod)
        except ValueError:  # of an invalid selector, which the plugin itself reports
            return ()

    # --- waiting ---------------------------------------------------------------------------------

    def registrations(self) -> Sequence[Registration]:
        node = Trigger(NODE.resource, Action.ADD | Action.UPDATE_NODE_LABEL)
        namespace = Trigger(NAMESPACE.resource, Action.ADD | Action.UPDATE)
        return (
            Registration(node, self._node_changed),
            Registration(namespace, self._namespace_changed),
        )

    def _node_changed(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        pools = self.pools
        wanted, pool = pools.of_namespace(pod.metadata.namespace), pools.with_labels(new.labels)
        if pool == SEVERAL:
            return Hint.SKIP
        if old is not None and pools.with_labels(old.labels) == pool:
            return Hint.SKIP
        return Hint.QUEUE if pool == wanted or only_node(pod) == new.name else Hint.SKIP

    def _namespace_changed(self, pod: Pod, old: Namespace | None, new: Namespace) -> Hint:
        if new.metadata.name == pod.metadata.namespace:
            return Hint.QUEUE
        info = self.pools.cluster.classes.info_of(pod)
        reaches = any(self._reached(plugin, info) for plugin in self._reaching)
        return Hint.QUEUE if reaches else Hint.SKIP
