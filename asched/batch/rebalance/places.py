"""The places of a plan that is carried out: held for the pods of the unit and for successors.

    held ─> open, while its own pod is tried there ─┬─> taken
                                                    └─> held again

Every place counts in the columns from the beginning, also one that a pod has still to leave: its
node then has less than no room, so that no other pod comes. A pod takes its own place only if all
filters accept it. Pods above the priority of the unit may take the room of all places, which ends
the plan.

A successor is a pod of the same controller and class that was not there when the plan began; of a
StatefulSet, the one with the same name.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
import numpy as np

from asched.batch.backfill.reservations import CLONE
from asched.batch.rebalance.board import is_by_node
from asched.batch.rebalance.movable import Movable
from asched.batch.rebalance.search import Move, MovePlan
from asched.core.cluster.holds import HeldPlace
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.room import free_amounts, has_room, vector
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.freed_places import FreedPlaces
from asched.core.framework.placements import Mask, is_within
from asched.core.framework.runner import Decision, Runner
from asched.core.model.kinds import STATEFUL_SET
from asched.core.model.pod import Pod

#: Before the first colon of an owner in the ledger of holds.
OWNERS: Final = "Rebalance"


class PlanPlace(msgspec.Struct, eq=False):
    """A place for one future pod. `uid`: of the unit's pod, empty for the successor of `move`."""

    owner: str
    what: PodInfo
    node: str
    uid: str = ""
    move: Move | None = None
    opened_for: str = ""
    taken_by: str = ""
    #: other pods took its room after its pod was evicted; nothing is held any more
    is_given_up: bool = False


class PlanPlaces:
    """All places of one plan. Pods above `priority` may take them."""

    def __init__(
        self,
        context: SchedulerContext,
        number: int,
        plan: MovePlan,
        priority: int,
        rules: Movable,
    ) -> None:
        self._context, self._cluster = context, context.cluster
        self.priority = priority
        self.of_unit = [
            PlanPlace(f"{OWNERS}:{number}.unit.{n}", info, node, uid=info.pod.uid[: -len(CLONE)])
            for n, (info, node) in enumerate(plan.places)
        ]
        self.of_moves = [
            PlanPlace(f"{OWNERS}:{number}.move.{n}", move.successor, move.node, move=move)
            for n, move in enumerate(plan.moves)
        ]
        #: by uid of a controller: its pods when the plan began, which are no successors
        owners = [move.pod.pod.metadata.controller for move in plan.moves]
        self.before = {o.uid: set(rules.pods_of(o.uid)) for o in owners if o is not None}

    def __iter__(self) -> Iterator[PlanPlace]:
        yield from self.of_unit
        yield from self.of_moves

    def hold(self) -> None:
        """Hold all places from now on."""
        for place in self:
            self._hold(place)

    def release(self) -> FreedPlaces:
        """Give back what is not taken."""
        return self._release(self)

    def give_up(self, place: PlanPlace) -> FreedPlaces:
        """Hold nothing for a successor any more: it is scheduled like other pods."""
        place.is_given_up = True
        return self._release((place,))

    def _release(self, places: Iterable[PlanPlace]) -> FreedPlaces:
        freed = FreedPlaces()
        for place in places:
            if self._cluster.holds.drop(place.owner):
                freed.add(place.what.cls.number, place.what.pod, place.node)
        return freed

    def settle(self) -> None:
        """Update the places whose pods were placed, or lost their node again."""
        placed = self._cluster.placed
        for place in self:
            if place.is_given_up:
                continue
            if place.opened_for:
                info = placed.get(place.opened_for)
                if info is not None and info.node_name == place.node:
                    place.taken_by = place.opened_for
                    self._cluster.holds.drop(place.owner)
                else:
                    self._cluster.holds.restore(place.owner)
                place.opened_for = ""
            elif place.taken_by and place.taken_by not in placed:
                place.taken_by = ""
                if place.node in self._cluster.nodes.row_of:
                    self._hold(place)

    def own_place(self, info: PodInfo) -> PlanPlace | None:
        """The place that is held for a pod, if there is one."""
        for place in self:
            is_in_use = place.taken_by or place.opened_for or place.is_given_up
            if not is_in_use and self._is_for(place, info):
                return place
        return None

    def place_of(self, uid: str) -> str:
        """The node with the place for the successor of a placed pod; empty if there is none."""
        found = [p.node for p in self.of_moves if p.move is not None and p.move.pod.pod.uid == uid]
        return "".join(found)

    def is_successor(self, move: Move, pod: Pod, cls: object) -> bool:
        """Whether a pod is the successor of a moved pod; `cls`: its class."""
        old = move.pod.pod
        own, owner = pod.metadata.controller, old.metadata.controller
        if own is None or owner is None or own.uid != owner.uid or cls is not move.successor.cls:
            return False
        if pod.uid in self.before.get(own.uid, ()):
            return False
        return owner.kind != STATEFUL_SET.name or pod.key == old.key

    def try_own(self, attempt: Attempt, place: PlanPlace, within: Mask | None) -> Decision | None:
        """Decide about the place that is held for a pod. It is open afterwards: see `settle`."""
        found = self._try(attempt, place.node, (place,), within)
        if found is None or place.move is None:
            return found
        rows = self._rows_without_holds(attempt.runner, attempt.info)
        return found if is_within(found.row, rows) else None

    def try_all(
        self, attempt: Attempt, rows: Iterable[int], within: Mask | None
    ) -> Decision | None:
        """Decide about these rows without any place of the plan, for a more important pod."""
        node_at, places = self._cluster.nodes.node_at, [p for p in self if not p.taken_by]
        held = {self._cluster.nodes.row_of.get(place.node) for place in places}
        for row in rows:
            node = node_at[row]
            if row in held and node is not None:
                found = self._try(attempt, node.name, places, within)
                if found is not None:
                    return found
                self.settle()
        return None

    def may_fit(self, info: PodInfo, rows: Iterable[int]) -> bool:
        """Whether a pod fits on one of these rows, by amounts, without the places there."""
        nodes = self._cluster.nodes
        need = vector(nodes, info.cls.accounted, 1)
        for row in rows:
            held = [p for p in self if not p.taken_by and nodes.row_of.get(p.node) == row]
            free = free_amounts(nodes, row)
            for place in held:
                free += vector(nodes, place.what.cls.accounted, 1)
            if held and has_room(free, need):
                return True
        return False

    def lost(self) -> Iterator[PlanPlace]:
        """The places that cannot be had any more: the node is gone, or other pods use the room,
        those apart that have still to leave.
        """
        nodes, cluster = self._cluster.nodes, self._cluster
        leaving = [m.move.pod.pod.uid for m in self.of_moves if m.move is not None]
        for place in self:
            row = nodes.row_of.get(place.node)
            if place.taken_by or place.is_given_up:
                continue
            if row is None:
                yield place
                continue
            free = free_amounts(nodes, row)
            for uid in leaving:
                info = cluster.placed.get(uid)
                if info is not None and info.row == row:
                    free += vector(nodes, info.cls.accounted, 1)
            need = vector(nodes, place.what.cls.accounted, 1)
            hold = cluster.holds.of(place.owner)
            is_counted = hold is not None and not hold.is_lifted
            if not has_room(free + need if is_counted else free, need):
                yield place

    def is_free(self, place: PlanPlace, without: PodInfo | None) -> bool:
        """Whether all filters accept the future pod on its place, `without` the pod that it
        replaces. Raises PointError, OutOfTurn.
        """
        row, runner = self._cluster.nodes.row_of[place.node], self._runner_of(place)
        with self._opened(place, without):
            if not runner.dry_run(place.what).rows()[row]:
                return False
            return is_within(row, self._rows_without_holds(runner, place.what))

    def find_another(self, place: PlanPlace) -> bool:
        """Hold another place for the successor of a pod that has not left, where all filters accept
        it now. False if there is none. Raises PointError, OutOfTurn.
        """
        cluster, runner = self._cluster, self._runner_of(place)
        info = None if place.move is None else cluster.placed.get(place.move.pod.pod.uid)
        if info is None:
            return False
        with self._opened(place, info):
            within = self._rows_without_holds(runner, place.what)
            rows = np.flatnonzero(runner.dry_run(place.what).rows(within)).tolist()
        node = next((cluster.nodes.node_at[row] for row in rows if row != info.row), None)
        if node is None:
            return False
        cluster.holds.drop(place.owner)
        place.node = node.name
        self._hold(place)
        return True

    @contextmanager
    def _opened(self, place: PlanPlace, without: PodInfo | None) -> Iterator[None]:
        """Suppose that a place is not held, and that a pod has left."""
        holds = self._cluster.holds
        with self._cluster.supposing() as suppose:
            if without is not None:
                suppose.without((without,))
            if holds.lift(place.owner):
                suppose.also(lambda: holds.restore(place.owner))
            yield

    def _rows_without_holds(self, runner: Runner, info: PodInfo) -> Mask | None:
        """bool[N]: where a future pod fits as long as the other places have no pods; None if these
        make no difference.

        Held places count for rules about other pods, such as spread, so that no other pod breaks
        the plan. They must not help to keep such a rule: their pods are not there yet.
        """
        if is_by_node(runner, info):
            return None
        holds = self._cluster.holds
        lifted = [place.owner for place in self if holds.lift(place.owner)]
        try:
            return runner.dry_run(info).rows()
        finally:
            for owner in lifted:
                holds.restore(owner)

    def _try(
        self, attempt: Attempt, node: str, places: Iterable[PlanPlace], within: Mask | None
    ) -> Decision | None:
        nodes, uid = self._cluster.nodes, attempt.pod.uid
        row = nodes.row_of.get(node)
        if row is None or not is_within(row, within):
            return None
        for place in places:
            place.opened_for = uid
            self._cluster.holds.lift(place.owner)
        dry_run = attempt.runner.dry_run(attempt.info)
        if not dry_run.rows(within)[row]:
            return None
        return Decision(node, row, 1, nodes.count, None, dry_run.state)

    def _runner_of(self, place: PlanPlace) -> Runner:
        return self._context.runners[self._context.profile_of(place.what.pod)]

    def _hold(self, place: PlanPlace) -> None:
        self._cluster.holds.put(place.owner, (HeldPlace(place.what, place.node),))

    def _is_for(self, place: PlanPlace, info: PodInfo) -> bool:
        if place.move is None:
            return place.uid == info.pod.uid
        return self.is_successor(place.move, info.pod, info.cls)
