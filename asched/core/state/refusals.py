"""Nodes on which somebody else binds, too: whose kubelets refused pods, and which are contested.

Nodes whose kubelet refused a pod are kept from pods of the same owner for a while.

A kubelet counts what it still holds, and what others bound a moment ago; the pod it refuses is
Failed for good, and its controller makes another one. Sent to the same node at once, that one
fares no better: clusters were flooded with refused pods so (kubernetes#104560, #106884, #115325).

Rules   each refusal doubles the time, from HOLD_S to HOLD_S_MAX; without one for FORGET_S all is
        forgotten. Pods without a controller are nobody's: they do not come again.

A node is contested where that happened, and where a stranger's pod appeared within OVERLAP_S of a
placement of ours: both had chosen the same room, or nearly. Our pods leave room there for `level`
more pods like that stranger: then both of us may be wrong by as many and nobody is refused.

Rules   a clash makes the level 1, a refusal by a kubelet doubles it, up to LEVEL_MAX; it halves
        every HALF_S and ends below 1/2. No more than 1/HEADROOM_PART of a node is ever left free.
        Where nobody else binds no node is contested, and nothing of this is asked.
Bounds  PAIRS_MAX owners and nodes; the oldest are forgotten first. CONTESTED_MAX nodes, likewise.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from math import ceil
from typing import Final, NamedTuple

from asched.core.model.pod import Pod
from asched.core.state.nodes import NodeTable
from asched.core.state.pods import PodInfo

#: Three refusals a minute at most: after 0, 10 and 30 s.
HOLD_S: Final = 10.0
HOLD_S_MAX: Final = 300.0
FORGET_S: Final = 600.0
PAIRS_MAX: Final = 10_000
#: A stranger that is seen so long after our own choice (s) was probably chosen without knowing it:
#: watches of busy clusters are late by seconds.
OVERLAP_S: Final = 5.0
#: A guess: a neighbour that binds pods by the hundred a second would need more.
LEVEL_MAX: Final = 4.0
#: After 90 s without a clash nothing is left of the highest level.
HALF_S: Final = 30.0
HEADROOM_PART: Final = 4
CONTESTED_MAX: Final = 1_024


class _Held(NamedTuple):
    until_s: float
    times: int


class _Contested(NamedTuple):
    """`level` at a moment, and the largest of the strangers' requests by resource."""

    at_s: float
    level: float
    amounts: Mapping[str, int]

    def level_at(self, now_s: float) -> float:
        level: float = self.level * 0.5 ** (max(now_s - self.at_s, 0.0) / HALF_S)
        return level if level > 0.5 else 0.0


class Refusals:
    """By owner and node, and by node. Times are seconds since 1970."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._contested: OrderedDict[str, _Contested] = OrderedDict()
        self._chosen_s: dict[str, float] = {}  # node -> when we placed a pod there last
        self._strangers: dict[str, int] = {}  # node -> how many came there
        #: Clashes so far: strangers beside a placement of ours, and pods that kubelets refused.
        self.overlaps = self.refused = 0
        self._held: OrderedDict[tuple[str, str], _Held] = OrderedDict()
        self._by_owner: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._held)

    @property
    def are_none(self) -> bool:
        """Whether no row is refused to anybody: no kubelet has lately, and no node is contested."""
        return not (self._held or self._contested)

    def note(self, owner: str, node_name: str, now_s: float) -> float:
        """A kubelet refused a pod of this owner (a uid). For how many seconds none goes there."""
        key = (owner, node_name)
        known = self._held.pop(key, None)
        times = known.times + 1 if known is not None and now_s < known.until_s + FORGET_S else 1
        hold_s = min(HOLD_S * 2.0 ** (times - 1), HOLD_S_MAX)
        self._held[key] = _Held(now_s + hold_s, times)
        self._by_owner.setdefault(owner, {})[node_name] = None
        self._forget(now_s)
        return hold_s

    def rows(self, pod: Pod, now_s: float) -> tuple[int, ...]:
        """Rows that a pod is kept from now."""
        owner = pod.metadata.controller
        if owner is None or owner.uid not in self._by_owner:
            return ()
        row_of = self._nodes.row_of
        return tuple(
            row_of[name]
            for name in self._by_owner[owner.uid]
            if name in row_of and self._held[owner.uid, name].until_s > now_s
        )

    def _forget(self, now_s: float) -> None:
        while self._held:
            (owner, name), oldest = next(iter(self._held.items()))
            if len(self._held) <= PAIRS_MAX and now_s < oldest.until_s + FORGET_S:
                return
            del self._held[owner, name]
            del self._by_owner[owner][name]
            if not self._by_owner[owner]:
                del self._by_owner[owner]

    # --- contested nodes -------------------------------------------------------------------------

    @property
    def contested(self) -> int:
        """How many nodes are, or were a moment ago."""
        return len(self._contested)

    def chosen(self, node_name: str, now_s: float) -> None:
        """We place a pod there."""
        self._chosen_s[node_name] = now_s

    def stranger(self, info: PodInfo, now_s: float) -> None:
        """A pod is seen on a node that we did not choose for it."""
        if info.row < 0:
            return  # nobody knows that node
        name = info.node_name
        self._strangers[name] = self._strangers.get(name, 0) + 1
        if now_s - self._chosen_s.get(name, -OVERLAP_S) < OVERLAP_S:
            self.overlaps += 1
            self._contest(name, info.cls.accounted, now_s, 1.0)

    def strangers(self, node_name: str) -> int:
        """How many came there as long as the node is known."""
        return self._strangers.get(node_name, 0)

    def clash(self, node_name: str, last: PodInfo | None, now_s: float) -> None:
        """A kubelet refused a pod, whoever bound it. `last`: the stranger that came there last."""
        self.refused += 1
        amounts = last.cls.accounted if last is not None else {}
        self._contest(node_name, amounts, now_s, 2.0)

    def node_goes(self, node_name: str) -> None:
        """Another one under its name begins anew."""
        self._contested.pop(node_name, None)
        for kept in (self._chosen_s, self._strangers):
            kept.pop(node_name, None)

    def crowded(self, pod: PodInfo, is_feasible: Callable[[int], bool], now_s: float) -> list[int]:
        """Which of the feasible rows are contested, and would not keep the room that is
        to be left if the pod went there.
        """
        found, over = [], []
        for name, known in self._contested.items():
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
            del self._contested[name]
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
        known = self._contested.pop(name, None)
        level = 0.0 if known is None else known.level_at(now_s)
        if known is not None:
            amounts = {
                key: max(amounts.get(key, 0), known.amounts.get(key, 0))
                for key in (*known.amounts, *amounts)
            }
        # Pods may name any number of other resources, which no node offers.
        offered = self._nodes.resources.ids
        amounts = {key: amount for key, amount in amounts.items() if key in offered}
        level = min(max(level * factor, 1.0), LEVEL_MAX)
        self._contested[name] = _Contested(now_s, level, amounts)
        if len(self._contested) > CONTESTED_MAX:
            self._contested.popitem(last=False)
