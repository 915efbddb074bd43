"""Kubelets that refused pods of ours: pods of the same owners avoid the node for a while.

A kubelet counts terminating pods, and pods bound a moment ago by other schedulers; a refused pod is
Failed permanently, and its controller creates another one. If that one is sent to the same node at
once, it is refused again: clusters were flooded with refused pods this way (kubernetes#104560,
#106884, #115325).

Only pods whose node this process chose count. Any client that may create pods may write a node
name, and have such pods refused or replaced at will: it must not keep pods of others from a node.

Pods of the owner, in its namespace, avoid the node; each refusal doubles the time, from HOLD_S to
HOLD_S_MAX; after FORGET_S without a refusal it starts again. It ends early when the node changes or
a pod that ran there leaves. Pods without a controller are ignored: they are not recreated.

Bounds  PAIRS_MAX owners and nodes; the oldest are dropped first.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

from asched.core.cluster.nodes import NodeTable
from asched.core.model.pod import Pod

#: At most three refusals in the first minute: after 0, 10 and 30 s.
HOLD_S: Final = 10.0
HOLD_S_MAX: Final = 300.0
FORGET_S: Final = 600.0
PAIRS_MAX: Final = 10_000


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


class Refusals:
    """By owner and node. Times are steady (`Cluster.steady_s`)."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        #: nodes whose kubelet refused a pod of the owner lately; read-only
        self.avoided: OrderedDict[tuple[Owner, str], _Held] = OrderedDict()
        #: no owner avoids a node after this time; read-only
        self.until_s = 0.0
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
        self.until_s = max(self.until_s, now_s + hold_s)
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
