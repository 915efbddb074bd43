"""Kubelets that refused pods of ours: the pods' owners avoid the node, and it is contested.

A kubelet counts terminating pods, and pods bound a moment ago by other schedulers; a refused pod is
Failed permanently, and its controller creates another one. If that one is sent to the same node at
once, it is refused again: clusters were flooded with refused pods this way (kubernetes#104560,
#106884, #115325).

Only pods whose node this process chose count. Any client that may create pods may write a node
name, and have such pods refused or replaced at will: it must not keep pods of others from a node.

Owners  pods of the owner, in its namespace, avoid the node; each refusal doubles the time, from
        HOLD_S to HOLD_S_MAX; after FORGET_S without a refusal it starts again. It ends early when
        the node changes or a pod that ran there leaves. Pods without a controller are ignored: they
        are not recreated.
Nodes   a node is contested for CONTESTED_S if room was missing there although pods of other
        schedulers are on it. Our pods leave the missing room free, more after each refusal, at most
        1/HEADROOM_PART of the node. Pods more important than the newest pod of another scheduler
        ignore it.
Bounds  PAIRS_MAX owners and nodes, and CONTESTED_MAX nodes; the oldest are dropped first.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from asched.core.cluster.nodes import NodeTable
from asched.core.cluster.pods import PodInfo
from asched.core.model.pod import Pod
from asched.core.model.requests import PODS

#: At most three refusals in the first minute: after 0, 10 and 30 s.
HOLD_S: Final = 10.0
HOLD_S_MAX: Final = 300.0
FORGET_S: Final = 600.0
PAIRS_MAX: Final = 10_000
#: Watches of busy clusters lag by seconds; a minute later the other scheduler's pods are known.
CONTESTED_S: Final = 60.0
HEADROOM_PART: Final = 4
CONTESTED_MAX: Final = 1_024


class Owner(NamedTuple):
    """A controller; its uid counts in its namespace only, as the API server checks no reference."""

    namespace: str
    uid: str


def owner_of(pod: Pod) -> Owner | None:
    """The owner whose refusals concern a pod."""
    controller = pod.metadata.controller
    return Owner(pod.metadata.namespace, controller.uid) if controller is not None else None


class _Held(NamedTuple):
    until_s: float
    times: int


class _Contested(NamedTuple):
    """The room to leave, by resource, to pods up to this priority."""

    until_s: float
    amounts: Mapping[str, int]
    priority: int


class Refusals:
    """By owner and node, and by node. Times are steady (`Cluster.steady_s`)."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        #: read-only
        self.contested_nodes: OrderedDict[str, _Contested] = OrderedDict()
        #: nodes whose kubelet refused a pod of the owner lately; read-only
        self.avoided: OrderedDict[tuple[Owner, str], _Held] = OrderedDict()
        self._by_owner: dict[Owner, dict[str, None]] = {}
        self._by_node: dict[str, dict[Owner, None]] = {}

    def __len__(self) -> int:
        return len(self.avoided)

    def note(self, owner: Owner, node_name: str, now_s: float) -> float:
        """A kubelet refused a pod of this owner. Returns the seconds to avoid the node."""
        key = (owner, node_name)
        known = self.avoided.pop(key, None)
        times = known.times + 1 if known is not None and now_s < known.until_s + FORGET_S else 1
        hold_s = min(HOLD_S * 2.0 ** (times - 1), HOLD_S_MAX)
        self.avoided[key] = _Held(now_s + hold_s, times)
        self._by_owner.setdefault(owner, {})[node_name] = None
        self._by_node.setdefault(node_name, {})[owner] = None
        self._forget(now_s)
        return hold_s

    def rows(self, pod: Pod, now_s: float) -> dict[int, float]:
        """Rows that a pod must avoid now, with the seconds until it need not."""
        owner, row_of = owner_of(pod), self._nodes.row_of
        if owner is None:
            return {}
        held_s = {
            row_of[name]: self.avoided[owner, name].until_s - now_s
            for name in self._by_owner.get(owner, ())
            if name in row_of
        }
        return {row: left_s for row, left_s in held_s.items() if left_s > 0}

    def node_changed(self, node_name: str, now_s: float) -> set[Owner]:
        """The cause of the refusals may be gone. Returns the owners that avoided the node."""
        ended = set()
        for owner in self._by_node.get(node_name, ()):
            held = self.avoided[owner, node_name]
            if held.until_s > now_s:
                self.avoided[owner, node_name] = held._replace(until_s=now_s)
                ended.add(owner)
        return ended

    def _forget(self, now_s: float) -> None:
        while self.avoided:
            (owner, name), oldest = next(iter(self.avoided.items()))
            if len(self.avoided) <= PAIRS_MAX and now_s < oldest.until_s + FORGET_S:
                return
            del self.avoided[owner, name]
            del self._by_owner[owner][name], self._by_node[name][owner]
            if not self._by_owner[owner]:
                del self._by_owner[owner]
            if not self._by_node[name]:
                del self._by_node[name]

    # --- contested nodes -------------------------------------------------------------------------

    @property
    def contested(self) -> int:
        """The number of contested nodes."""
        return len(self.contested_nodes)

    def contest(
        self, node_name: str, resource: str, missing: int, priority: int, now_s: float
    ) -> None:
        """A kubelet missed so much of a resource, with a foreign pod of this priority."""
        if resource != PODS and self._nodes.find_resource(resource) is None:
            return
        known = self.contested_nodes.pop(node_name, None)
        amounts = {resource: missing}
        if known is not None and known.until_s > now_s:  # it was not enough
            amounts = {**known.amounts, resource: known.amounts.get(resource, 0) + missing}
            priority = max(priority, known.priority)
        self.contested_nodes[node_name] = _Contested(now_s + CONTESTED_S, amounts, priority)
        if len(self.contested_nodes) > CONTESTED_MAX:
            self.contested_nodes.popitem(last=False)

    def node_goes(self, node_name: str) -> None:
        """The node is deleted; a new one of the same name starts again."""
        self.contested_nodes.pop(node_name, None)

    def crowded(self, pod: PodInfo, is_feasible: Callable[[int], bool], now_s: float) -> list[int]:
        """The feasible rows that are contested and would not have enough room left with the pod."""
        rows, over = [], []
        for name, known in self.contested_nodes.items():
            row = self._nodes.row_of.get(name, -1)
            if known.until_s <= now_s:
                over.append(name)
            elif (
                row >= 0
                and pod.pod.priority <= known.priority
                and is_feasible(row)
                and not self._leaves_room(pod, row, known.amounts)
            ):
                rows.append(row)
        for name in over:
            del self.contested_nodes[name]
        return rows

    def _leaves_room(self, pod: PodInfo, row: int, amounts: Mapping[str, int]) -> bool:
        read = self._nodes.columns.read
        allowed = read("allowed_pods").item(row)
        more = min(amounts.get(PODS, 0), allowed // HEADROOM_PART)
        if read("pod_count").item(row) + 1 + more > allowed:
            return False
        allocatable, requested = read("allocatable"), read("requested")
        for name, amount in pod.cls.accounted.items():
            index = self._nodes.find_resource(name)
            if index is None or name not in amounts:
                continue
            offered = allocatable.item(index, row)
            if requested.item(index, row) + amount + min(
                amounts[name], offered // HEADROOM_PART
            ) > (offered):
                return False
        return True
