"""NodePools: place a pod on the nodes of its own pool only (`pools` of the configuration).

Rejects   nodes of other pools, and nodes that several pools select; evicting pods cannot help. A
          pod whose namespace several pools select.
          A pod that its required node affinity pins to one node, with rules about that node alone,
          as DaemonSets make them, belongs to the pool of its node, whatever its namespace.
Retry     a node comes to the pod's pool; the pod's namespace comes to another pool.
Cost      one comparison for each row, and again for rows whose labels change.
"""

from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.pools import IN_SEVERAL, SEVERAL, Pools, is_of_one_node, only_node
from asched.core.cluster.view import NodeView
from asched.core.framework.per_class import PerClass
from asched.core.framework.points import Codes, FilterPlugin, PreFilterPlugin, PreFilterResult
from asched.core.framework.registrations import Hint, Registration
from asched.core.framework.status import Reason, unresolvable
from asched.core.model.kinds import NAMESPACE, NODE
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.workload import Namespace

OTHER_POOL: Final = Reason("node(s) belonged to another pool", resolvable=False)
SEVERAL_POOLS: Final = Reason("node(s) belonged to several pools", resolvable=False)


class NodePools(PreFilterPlugin, FilterPlugin):
    name = names.NODE_POOLS
    reasons = (OTHER_POOL, SEVERAL_POOLS)
    depends_on = Aspect.LABELS | Aspect.LIVE
    kinds = (NAMESPACE,)

    def __init__(self, pools: Pools) -> None:
        self.pools = pools
        self._is_of_node = PerClass(is_of_one_node)

    def share_key(self, pod: PodInfo) -> Hashable:
        if self._is_of_node(pod.cls):
            return None
        namespace = pod.cls.label_set.namespace
        pool = self.pools.of_namespace(namespace)
        return pool if pool >= 0 else namespace

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
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
        return codes

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
        is_own = new.metadata.name == pod.metadata.namespace
        return Hint.QUEUE if is_own else Hint.SKIP
