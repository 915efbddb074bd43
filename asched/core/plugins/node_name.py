"""NodeName: a pod that names its node fits there only.

Rejects   every node but the named one; evicting pods cannot help.
Retry     a node appears.
Cost      one lookup. Pods with a node are not queued, so that it rarely runs.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/nodename
"""

from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from asched import names
from asched.core.cluster.changes import NODE_ADD
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.points import IDLE, Codes, FilterPlugin, Scope
from asched.core.framework.registrations import Registration
from asched.core.framework.status import Reason

OTHER_NODE: Final = Reason("node(s) didn't match the requested node name", resolvable=False)


class NodeName(FilterPlugin):
    name = names.NODE_NAME
    scope = Scope.NODE
    reasons = (OTHER_NODE,)
    depends_on = Aspect.LIVE

    def registrations(self) -> Sequence[Registration]:
        return (Registration(NODE_ADD),)

    def share_key(self, pod: PodInfo) -> Hashable:
        return pod.pod.spec.node_name or IDLE

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        wanted = pod.pod.spec.node_name
        codes = np.zeros(nodes.size, dtype=np.int32)
        if wanted:
            codes[:] = 1
            position = nodes.position_of(wanted)
            if position is not None:
                codes[position] = 0
        return codes
