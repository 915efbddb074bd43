"""NodePorts: a host port can be used once on a node.

Rejects   nodes where a wanted (protocol, port) is taken on the same address, or where one of the
          two addresses is 0.0.0.0, which stands for all; evicting its user helps.
Retry     a pod with a conflicting port leaves its node; a node appears.
Cost      grows with the pods that use the wanted ports, not with the nodes.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/nodeports
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from asched import names
from asched.core.cluster.changes import NODE_ADD, Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import HostPort, PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.order_free import OrderFree
from asched.core.framework.points import (
    IDLE,
    Codes,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    Scope,
)
from asched.core.framework.registrations import Concerns, Hint, Registration
from asched.core.framework.status import SKIP, Reason
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod

TAKEN: Final = Reason("node(s) didn't have free ports for the requested pod ports", resolvable=True)
#: Not `::`: only the IPv4 wildcard stands for every address.
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104


class NodePorts(OrderFree, PreFilterPlugin, FilterPlugin):
    name = names.NODE_PORTS
    scope = Scope.NODE
    without_pre_filter = 'reading "PreFilterNodePorts" from cycleState: not found'
    reasons = (TAKEN,)
    depends_on = Aspect.POD_AMOUNTS | Aspect.LIVE

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def registrations(self) -> Sequence[Registration]:
        pod = Trigger(POD.resource, Action.DELETE)
        same = Concerns(self._ports, lambda old, _: self._ports(old))
        return (Registration(pod, self._pod_gone, same), Registration(NODE_ADD))

    def _ports(self, pod: Pod) -> Collection[Hashable]:
        """(protocol, port) of a pod's host ports, for any address."""
        return [
            (port.protocol, port.port) for port in self._cluster.classes.class_of(pod).host_ports
        ]

    def share_key(self, pod: PodInfo) -> Hashable:
        return pod.cls.host_ports or IDLE

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        return PreFilterResult() if pod.cls.host_ports else PreFilterResult(SKIP)

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        used = self._cluster.occupancy.ports
        shown = None if nodes.rows is None else nodes.rows.tolist()
        taken: set[int] = set()
        for ip, protocol, port in pod.cls.host_ports:
            by_row = used.get((protocol, port))
            if by_row:
                taken.update(_rows_where_taken(ip, by_row, shown))
        if not taken:
            return np.zeros(nodes.size, dtype=np.int32)
        return nodes.positions(taken).astype(np.int32)

    def _pod_gone(self, pod: Pod, old: Pod, _new: Pod | None) -> Hint:
        if not old.spec.node_name and not old.status.nominated_node_name:
            return Hint.SKIP
        classes = self._cluster.classes
        freed, wanted = classes.class_of(old).host_ports, classes.class_of(pod).host_ports
        by_port: dict[tuple[str, int], set[str]] = {}
        for port in freed:
            by_port.setdefault((port.protocol, port.port), set()).add(port.ip)
        helps = any(_conflict(w, by_port.get((w.protocol, w.port), ())) for w in wanted)
        return Hint.QUEUE if helps else Hint.SKIP


def _rows_where_taken(
    ip: str, by_row: Mapping[int, Mapping[str, int]], shown: list[int] | None
) -> Iterable[int]:
    """Of the rows given (None: all), those where an address in conflict with `ip` is used."""
    users = by_row if shown is None else [row for row in shown if row in by_row]
    if ip == ANY_ADDRESS:
        return users
    return [row for row in users if ip in by_row[row] or ANY_ADDRESS in by_row[row]]


def _conflict(wanted: HostPort, used: Collection[str]) -> bool:
    """`used`: the addresses on which the same port is used."""
    return wanted.ip in used or ANY_ADDRESS in used or (wanted.ip == ANY_ADDRESS and bool(used))
