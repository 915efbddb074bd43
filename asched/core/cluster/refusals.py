"""Nodes on which other schedulers bind, too: kubelets that refused pods, and contested nodes.

A node whose kubelet refused a pod is avoided by pods of the same owner for a while.

A kubelet counts terminating pods, and pods bound a moment ago by other schedulers; a refused pod is
Failed permanently, and its controller creates another one. If that one is sent to the same node at
once, it is refused again: clusters were flooded with refused pods this way (kubernetes#104560,
#106884, #115325).

Rules   each refusal doubles the time, from HOLD_S to HOLD_S_MAX; after FORGET_S without a refusal
        it starts again. Pods without a controller are ignored: they are not recreated.

A node is contested if that happened, or if a pod of another scheduler appeared within OVERLAP_S of
a placement of ours: both schedulers chose the same room, or nearly. Our pods then leave room for
`level` more pods like that foreign pod: both schedulers may be wrong by as many without a refusal.

Rules   a clash sets the level to 1, a refusal by a kubelet doubles it, up to LEVEL_MAX; it halves
        every HALF_S and ends below 1/2. At most 1/HEADROOM_PART of a node is left free. Without
        other schedulers no node is contested, and nothing is checked.
Bounds  PAIRS_MAX owners and nodes, and CONTESTED_MAX nodes; the oldest are dropped first.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from math import ceil
from typing import Final, NamedTuple

from asched.core.cluster.nodes import NodeTable
from asched.core.cluster.pods import PodInfo
from asched.core.model.pod import Pod

#: At most three refusals in the first minute: after 0, 10 and 30 s.
HOLD_S: Final = 10.0
HOLD_S_MAX: Final = 300.0
FORGET_S: Final = 600.0
PAIRS_MAX: Final = 10_000
#: A foreign pod seen within this time after our own choice (s) was probably placed without knowing
#: of it: watches of busy clusters lag by seconds.
OVERLAP_S: Final = 5.0
#: A guess: a scheduler that binds hundreds of pods per second would need more.
LEVEL_MAX: Final = 4.0
#: After 90 s without a clash the highest level has decayed completely.
HALF_S: Final = 30.0
HEADROOM_PART: Final = 4
CONTESTED_MAX: Final = 1_024


class _Held(NamedTuple):
    until_s: float
    times: int


class _Contested(NamedTuple):
    """`level` at a time, and the largest requests of the foreign pods by resource."""

    at_s: float
    level: float
    amounts: Mapping[str, int]

    def level_at(self, now_s: float) -> float:
        level: float = self.level * 0.5 ** (max(now_s - self.at_s, 0.0) / HALF_S)
        return level if level > 0.5 else 0.0


class Refusals:
    """By owner and node, and by node. Times are steady (`Cluster.steady_s`)."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        #: read-only
        self.contested_nodes: OrderedDict[str, _Contested] = OrderedDict()
        #: node -> time of our last placement; each placement is written here
        self.chosen_s: dict[str, float] = {}
        self._foreign_pods: dict[str, int] = {}  # node -> number of foreign pods
        #: Clashes so far: foreign pods beside a placement of ours, and pods refused by kubelets.
        self.overlaps = self.refused = 0
        #: (owner, node) whose kubelet refused a pod of the owner lately; read-only
        self.avoided: OrderedDict[tuple[str, str], _Held] = OrderedDict()
        self._by_owner: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self.avoided)

    def note(self, owner: str, node_name: str, now_s: float) -> float:
        """A kubelet refused a pod of this owner (a uid). Returns the seconds to avoid the node."""
        key = (owner, node_name)
        known = self.avoided.pop(key, None)
        times = known.times + 1 if known is not None and now_s < known.until_s + FORGET_S else 1
        hold_s = min(HOLD_S * 2.0 ** (times - 1), HOLD_S_MAX)
        self.avoided[key] = _Held(now_s + hold_s, times)
        self._by_owner.setdefault(owner, {})[node_name] = None
        self._forget(now_s)
        return hold_s

    def rows(self, pod: Pod, now_s: float) -> tuple[int, ...]:
        """Rows that a pod must avoid now."""
        owner = pod.metadata.controller
        if owner is None or owner.uid not in self._by_owner:
            return ()
        row_of = self._nodes.row_of
        return tuple(
            row_of[name]
            for name in self._by_owner[owner.uid]
            if name in row_of and self.avoided[owner.uid, name].until_s > now_s
        )

    def _forget(self, now_s: float) -> None:
        while self.avoided:
            (owner, name), oldest = next(iter(self.avoided.items()))
            if len(self.avoided) <= PAIRS_MAX and now_s < oldest.until_s + FORGET_S:
                return
            del self.avoided[owner, name]
            del self._by_owner[owner][name]
            if not self._by_owner[owner]:
                del self._by_owner[owner]

    # --- contested nodes -------------------------------------------------------------------------

    @property
    def contested(self) -> int:
        """The number of contested nodes."""
        return len(self.contested_nodes)

    def foreign_pod(self, info: PodInfo, now_s: float) -> None:
        """A pod appears on a node that we did not choose for it."""
        if info.row < 0:
            return  # unknown node
        name = info.node_name
        self._foreign_pods[name] = self._foreign_pods.get(name, 0) + 1
        if now_s - self.chosen_s.get(name, -OVERLAP_S) < OVERLAP_S:
            self.overlaps += 1
            self._contest(name, info.cls.accounted, now_s, 1.0)

    def foreign_pods(self, node_name: str) -> int:
        """The number of foreign pods on a node since it became known."""
        return self._foreign_pods.get(node_name, 0)

    def clash(self, node_name: str, last: PodInfo | None, now_s: float) -> None:
        """A kubelet refused a pod of any scheduler. `last`: the foreign pod that came last."""
        self.refused += 1
        amounts = last.cls.accounted if last is not None else {}
        self._contest(node_name, amounts, now_s, 2.0)

    def node_goes(self, node_name: str) -> None:
        """The node is deleted; a new one of the same name starts again."""
        self.contested_nodes.pop(node_name, None)
        for kept in (self.chosen_s, self._foreign_pods):
            kept.pop(node_name, None)

    def crowded(self, pod: PodInfo, is_feasible: Callable[[int], bool], now_s: float) -> list[int]:
        """The feasible rows that are contested and would not have enough room left with the pod."""
        found, over = [], []
        for name, known in self.contested_nodes.items():
            level = known.level_at(now_s)
            row = self._nodes.row_of.get(name, -1)
            if not level:
                over.append(name)
                continue
            if (
                row >= 0
                and is_feasible(row)
                and not self._leaves_room(pod, row, ceil(level), known.amounts)
            ):
                found.append(row)
        for name in over:
            del self.contested_nodes[name]
        return found

    def _leaves_room(self, pod: PodInfo, row: int, count: int, amounts: Mapping[str, int]) -> bool:
        read = self._nodes.columns.read
        allowed = read("allowed_pods").item(row)
        if read("pod_count").item(row) + 1 + min(count, allowed // HEADROOM_PART) > allowed:
            return False
        allocatable, requested = read("allocatable"), read("requested")
        for name, asked in pod.cls.accounted.items():
            index = self._nodes.find_resource(name)
            if index is None:
                continue
            offered = allocatable.item(index, row)
            left = min(count * amounts.get(name, 0), offered // HEADROOM_PART)
            if requested.item(index, row) + asked + left > offered:
                return False
        return True

    def _contest(self, name: str, amounts: Mapping[str, int], now_s: float, factor: float) -> None:
        known = self.contested_nodes.pop(name, None)
        level = 0.0 if known is None else known.level_at(now_s)
        if known is not None:
            amounts = {
                key: max(amounts.get(key, 0), known.amounts.get(key, 0))
                for key in (*known.amounts, *amounts)
            }
        # Pods may have any number of other resources, which no node offers.
        offered = self._nodes.resources.ids
        amounts = {key: amount for key, amount in amounts.items() if key in offered}
        level = min(max(level * factor, 1.0), LEVEL_MAX)
        self.contested_nodes[name] = _Contested(now_s, level, amounts)
        if len(self.contested_nodes) > CONTESTED_MAX:
            self.contested_nodes.popitem(last=False)
