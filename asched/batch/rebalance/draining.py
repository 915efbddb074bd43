"""Nodes that are drained: the request, and new places for all pods of a node.

    kubectl asched drain NODE ─> cordon and taint asched.dev/drain=UNTIL ─> all places held
                              ─> pods move as for a unit that waits ─> taint removed

Only a user who may change nodes can set a taint, and such a user can evict the pods of a node in
other ways. The request counts while the node is cordoned, until the time in the taint's value (in
seconds since 1970); `asched drain` renews it as long as it runs.

`DrainSearch` supposes that the pods leave, those with the fewest nodes to go to first, then large
ones. Each gets the node with the fewest pods of its controller, then the one with the least free
room. No other pods are moved for them.

Bounds  STEPS for a search.
"""

import re
from collections import Counter
from collections.abc import Generator
from typing import Final, NamedTuple

import msgspec
import numpy as np

from asched import names
from asched.batch.rebalance.board import Board, ClusterMovedError, SpentError, clone_of
from asched.batch.rebalance.demand import MovableAmounts
from asched.batch.rebalance.movable import Movable
from asched.batch.rebalance.search import Move, MovePlan
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import RebalanceArgs
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.effects import Effect
from asched.core.framework.placements import Mask
from asched.core.model.node import Node

#: As for the search for a unit.
STEPS: Final = 300_000
#: More important than any pod.
EVERY_PRIORITY: Final = 1 << 31
MIRROR: Final = "kubernetes.io/config.mirror"
DAEMON_SET: Final = "DaemonSet"
DELETES_DATA: Final = ".delete-emptydir-data"
_VALUE: Final = re.compile(r"(\d{1,12})(\.delete-emptydir-data)?")

#: What becomes of a pod: it stays because it belongs to the node; it moves; it moves later; it may
#: not be moved; no node accepts its successor.
STAYS, MOVES, WAITS, BLOCKED, NOWHERE = "stays", "moves", "waits", "blocked", "nowhere"

Steps = Generator[Effect, Answer, None]


class DrainRequest(NamedTuple):
    """`until_s` on the wall clock."""

    until_s: float
    deletes_data: bool


class NodeDrain(msgspec.Struct, eq=False):
    """A node that is drained. `search_s`: when places are searched next; `fates`: what the last
    search found, None before.
    """

    node: str
    request: DrainRequest
    search_s: float
    moved: int = 0
    fates: "tuple[PodFate, ...] | None" = None


class PodFate(NamedTuple):
    """What becomes of a pod, why, and its new node."""

    pod: str
    fate: str
    why: str = ""
    node: str = ""


class DrainPlaces(NamedTuple):
    """`fates` of all pods of the node; `is_moved`: the cluster changed during the search."""

    plan: MovePlan
    fates: tuple[PodFate, ...]
    is_moved: bool = False


def request_of(node: Node) -> DrainRequest | None:
    """The request to drain a node; None without one, or if the node is not cordoned."""
    taints = node.spec.taints if node.spec.unschedulable else None
    for taint in taints or ():
        match = _VALUE.fullmatch(taint.value) if taint.key == names.DRAIN_TAINT else None
        if match is not None:
            return DrainRequest(float(match[1]), bool(match[2]))
    return None


def search_for(
    context: SchedulerContext, args: RebalanceArgs, node: str, request: DrainRequest
) -> "DrainSearch":
    """The search for a node that exists."""
    deletes = request.deletes_data
    rules = Movable(context, args, EVERY_PRIORITY, is_drain=True, deletes_data=deletes)
    return DrainSearch(context, rules, node)


class DrainSearch:
    """Finds new places for the pods of a node."""

    def __init__(self, context: SchedulerContext, rules: Movable, node: str) -> None:
        self._context, self._cluster, self.rules = context, context.cluster, rules
        self._home = context.cluster.nodes.row_of[node]
        self._board = Board(context, STEPS)
        self._amounts = MovableAmounts(context.cluster, (), 0)
        self._fates: dict[str, PodFate] = {}
        self._moves: list[Move] = []

    @property
    def spent(self) -> float:
        """The budget steps that the search has taken."""
        return self._board.spent

    def find(self) -> Generator[Effect, Answer, DrainPlaces]:
        """Raises PointError."""
        is_moved = False
        try:
            yield from self._find()
        except ClusterMovedError:
            is_moved = True
        except SpentError:
            self._end_at_the_limit()
        finally:
            self._board.clear()
        plan = MovePlan(tuple(self._moves), ())
        return DrainPlaces(plan, tuple(self._fates.values()), is_moved)

    def _find(self) -> Steps:
        yield from self.rules.count()
        pods, moving = self._cluster.pods_on(self._home).values(), list[PodInfo]()
        for info in sorted(pods, key=lambda info: info.pod.key):
            fate = self._fate_of(info)
            self._fates[info.pod.uid] = fate
            if fate.fate in (MOVES, WAITS) and not info.pod.is_terminating:
                moving.append(info)
        ranks = {}
        for info in moving:
            accepting = yield from self._accepting(info)
            ranks[info.pod.uid] = int(np.count_nonzero(accepting)), -self._size(info)
        moving.sort(key=lambda info: (*ranks[info.pod.uid], info.pod.key))
        for info in moving:
            yield from self._move(info)

    def _end_at_the_limit(self) -> None:
        why = f"the search ended at its limit of {STEPS:,} steps"
        for uid, fate in self._fates.items():
            if fate.fate == MOVES and not fate.node:
                self._fates[uid] = fate._replace(fate=NOWHERE, why=why)

    def _fate_of(self, info: PodInfo) -> PodFate:
        pod, owner = info.pod, info.pod.metadata.controller
        if owner is not None and owner.kind == DAEMON_SET:
            return PodFate(pod.key, STAYS, "a pod of a DaemonSet")
        if MIRROR in (pod.metadata.annotations or {}):
            return PodFate(pod.key, STAYS, "a static pod")
        if pod.is_terminating:
            return PodFate(pod.key, WAITS, "it is terminating")
        if why := self.rules.why_never(info):
            return PodFate(pod.key, BLOCKED, why)
        later = self.rules.why_not_now(info) or self.rules.why_budget(info)
        return PodFate(pod.key, WAITS if later else MOVES, later)

    def _accepting(self, info: PodInfo) -> Generator[Effect, Answer, Mask]:
        """bool[N]: where the successor of a pod fits, once the pod has left."""
        successor = clone_of(self._cluster, info)
        self._board.leave(info)
        fits = yield from self._fits(successor)
        self._board.back()
        return fits

    def _fits(self, successor: PodInfo) -> Generator[Effect, Answer, Mask]:
        runner = self._context.runners[self._context.profile_of(successor.pod)]
        fits = yield from self._board.rows(runner, successor)
        fits[self._home] = False
        return fits

    def _move(self, info: PodInfo) -> Steps:
        """Suppose that a pod moves, if a node accepts its successor."""
        successor = clone_of(self._cluster, info)  # while its node is known
        self._board.leave(info)
        fits = yield from self._fits(successor)
        fate = self._fates[info.pod.uid]
        if not fits.any():
            self._board.back()
            why = "no node accepts its successor beside those of the other pods"
            self._fates[info.pod.uid] = fate._replace(fate=NOWHERE, why=why)
            return
        peers = self._peers_of(info)
        rows = self._amounts.tightest(fits)
        row = min(rows, key=lambda row: peers[row])  # the first of equals
        node = self._cluster.nodes.node_at[row]
        assert node is not None
        self._board.come(successor, node.name)
        self._moves.append(Move(info, successor, node.name))
        self._fates[info.pod.uid] = fate._replace(node=node.name)

    def _peers_of(self, info: PodInfo) -> Counter[int]:
        """By row: pods of the same controller, those that move on their new nodes."""
        owner, placed = info.pod.metadata.controller, self._cluster.placed
        assert owner is not None
        uids = self.rules.pods_of(owner.uid)
        rows = [placed[uid].row for uid in uids if uid in placed]
        row_of = self._cluster.nodes.row_of
        moved = [move for move in self._moves if move.pod.pod.metadata.controller == owner]
        return Counter([*rows, *(row_of[move.node] for move in moved)])

    def _size(self, info: PodInfo) -> float:
        """The largest share of the node that a pod uses."""
        read = self._cluster.nodes.columns.read
        offered, find = read("allocatable")[:, self._home], self._cluster.nodes.find_resource
        shares = [
            amount / max(int(offered[at]), 1)
            for name, amount in info.cls.accounted.items()
            if (at := find(name)) is not None
        ]
        return max(shares, default=0.0)
