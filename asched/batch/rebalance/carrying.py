"""Carry out a plan: its moves one after the other, each once its new place is free.

    all places are held ─> written down ─> evict a pod whose new place is free ─> its successor
    takes the place ─> ... ─> the unit takes the freed places

The condition with the number of moves is written before the first eviction. Each eviction goes
through the Eviction API, after all rules were checked again: the pod may still move, its place
accepts it now, and the limits allow it. When all pods have left, the unit is tried at once.

Pods of other schedulers know nothing of held places. If they take that of a successor, another one
is held, or none, if its pod has left already. No pod is evicted for a unit that has its room.

A plan is abandoned where it is (`units.ABANDONED` has the reasons): its places are given back,
successors are scheduled like other pods, and nothing is repeated for the unit before a backoff.

Bounds  CHECK_S between two checks without news; a unit, or successor, that was not placed is tried
        again every TRY_S.
"""

from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any, Final

from asched import names
from asched.batch.rebalance.board import clone_of
from asched.batch.rebalance.causes import Cause
from asched.batch.rebalance.movable import Movable
from asched.batch.rebalance.places import PlanPlace, PlanPlaces
from asched.batch.rebalance.search import Move, MovePlan
from asched.batch.rebalance.units import CARRIED_OUT, RebalanceUnits
from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import ObservedChange
from asched.core.cluster.facts import Answer, Refused
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import RebalanceArgs
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.freed_places import FreedPlaces, notify_of_freed
from asched.core.framework.effects import Effect, EmitEvent, Evict, WaitFor, ref_of
from asched.core.framework.status import MISTAKES
from asched.core.model.kinds import NODE, POD, STATEFUL_SET
from asched.core.model.meta import OwnerReference
from asched.core.model.pod import Pod

CHECK_S: Final = 5.0
TRY_S: Final = 5.0
NOT_FOUND, TOO_MANY, FORBIDDEN = 404, 429, 403
ACTION: Final = "Rebalancing"

Steps = Generator[Effect, Answer, Any]


class Carrying:
    """One plan. `is_begun`: whether `run` was started; `must_check`: whether to check it again."""

    def __init__(
        self,
        context: SchedulerContext,
        cause: Cause,
        number: int,
        plan: MovePlan,
        args: RebalanceArgs,
        rules: Movable,
    ) -> None:
        self._context, self._cluster = context, context.cluster
        self._units = context.cluster.singleton(RebalanceUnits)
        self.cause, self._plan, self._args, self._rules = cause, plan, args, rules
        self.places = PlanPlaces(context, number, plan, cause.priority, rules)
        self.is_begun = self.must_check = False
        self._began_s = context.now_s
        #: by owner of a place: when its pod was evicted, and its successor placed; before when it
        #: is not tried again, after a budget refused it
        self._evicted_s: dict[str, float] = {}
        self._successors: dict[str, str] = {}
        self._refused_until_s: dict[str, float] = {}
        #: by uid of a pod that waits: when it was tried again for the plan
        self._tried_s: dict[str, float] = {}
        self._nodes = {place.node for place in self.places}
        self._uids = {place.uid for place in self.places.of_unit}
        self._outcome = ""
        self._is_served = False
        self._freed = FreedPlaces()

    @property
    def is_over(self) -> bool:
        return bool(self._outcome)

    def saw(self, change: ObservedChange) -> None:
        """Note a change of a pod or node of the plan."""
        seen = change.old if change.new is None else change.new
        if change.kind is NODE:
            self.must_check |= seen.name in self._nodes
        elif change.kind is POD:
            owner, uid = seen.metadata.controller, seen.metadata.uid
            is_of_controller = owner is not None and owner.uid in self.places.before
            self.must_check |= is_of_controller or uid in self._uids
            self.must_check |= seen.spec.node_name in self._nodes

    def end(self, outcome: str) -> None:
        """End the plan: give back its places now, in the middle of an attempt of any pod."""
        if not self._outcome:
            self._outcome = outcome
            self._freed.take_over(self.places.release())
            self._units.active = None
            self.must_check = True

    def run(self) -> Steps:
        try:
            yield from self._run()
        except MISTAKES as raised:
            self._context.contain(raised, "moves", self.cause.key)
            self.end("error")
        self._units.outcomes[self._outcome] += 1
        self.cause.ended(self._outcome, self._args)
        yield from notify_of_freed(self._context, self._freed)

    def _run(self) -> Steps:
        if self._plan.moves:
            why = yield from self.cause.write_down(self._plan)
            if why:
                self.end(why)
        while not self.is_over:
            self.must_check = False
            self.places.settle()
            yield from self._follow()
            why = self._why_over()
            if not why and (yield from self._lacks_room()):
                why = "room"
            if why:
                self.end(why)
                return
            place = self._next_move()
            if place is not None:
                yield from self._evict(place)
            else:  # `end` has news
                self._try_again()
                yield WaitFor(ready=lambda: self.must_check, timeout_s=CHECK_S)

    # --- what became of it -----------------------------------------------------------------------

    def _follow(self) -> Iterator[Effect]:
        """Note the successors that were placed."""
        now_s = self._context.now_s
        for place in self.places.of_moves:
            uid = place.taken_by
            if uid and place.owner not in self._successors:
                self._successors[place.owner] = uid
                self._units.lost_s += now_s - self._evicted_s.get(place.owner, now_s)
                pod = self._cluster.placed[uid].pod
                yield self._event(
                    pod, names.EVENT_PLACE_HELD, f"Took the place held on {place.node}"
                )

    def _lacks_room(self) -> Steps:
        """Whether pods of other schedulers took a place that the plan needs: one of the unit, or of
        a pod that has not left, and there is no other one for it. A successor whose place was taken
        after the eviction is scheduled like other pods.
        """
        for place in tuple(self.places.lost()):
            if place.owner in self._evicted_s:
                yield from notify_of_freed(self._context, self.places.give_up(place))
                self.must_check = True
            elif not (self._is_served or self._has_another(place)):
                return True
        return False

    def _has_another(self, place: PlanPlace) -> bool:
        try:
            has_another = self.places.find_another(place)
        except OutOfTurn:  # results so far are cached: it goes on with the next check
            self.must_check = True
            return True
        self._nodes.add(place.node)
        return has_another

    def _why_over(self) -> str:
        """Why the plan is over: carried out, or the reason for which it is abandoned."""
        is_late = self._context.now_s >= self._began_s + self._args.time_limit_s
        self._is_served = self.cause.is_served(self.places)
        is_complete = all(
            place.is_given_up or place.owner in self._successors
            for place in self.places.of_moves
            if place.owner in self._evicted_s or not self._is_served
        )
        if self._is_served or (is_complete and not self.places.of_unit):
            return CARRIED_OUT if is_complete or is_late else ""
        if self._context.args_by_profile(RebalanceArgs).get(self.cause.profile) != self._args:
            return "profile"
        if why := self.cause.why_over(self.places):
            return why
        late = "budget" if self._refused_until_s else "time"
        return late if is_late else ""

    def _try_again(self) -> None:
        """Try the unit once all pods have left, and successors that wait."""
        now_s = self._context.now_s
        waiting = []
        for owner, pod in self._waiting_successors():
            if owner not in self._successors:
                waiting.append(pod)
        left = len(self._evicted_s) == len(self.places.of_moves) and not self._leaving()
        if left:
            seen = self._cluster.pods_seen
            pods = [seen.get(p.what.pod.key) for p in self.places.of_unit if not p.taken_by]
            waiting += [pod for pod in pods if pod is not None]
        due = [pod for pod in waiting if now_s >= self._tried_s.get(pod.uid, -TRY_S) + TRY_S]
        if due:
            self._tried_s.update((pod.uid, now_s) for pod in due)
            self._context.queue.activate(due, now_s)

    def _leaving(self) -> list[PlanPlace]:
        """Moves whose pods were evicted and still use their nodes."""
        placed = self._cluster.placed
        return [
            place
            for place in self.places.of_moves
            if place.owner in self._evicted_s
            and place.move is not None
            and place.move.pod.pod.uid in placed
        ]

    def _waiting_successors(self) -> Iterator[tuple[str, Pod]]:
        cluster = self._cluster
        keys = [key for owner in self.places.before for key in self._rules.pods_of(owner).values()]
        pods = [pod for key in keys if (pod := cluster.pods_seen.get(key)) is not None]
        pending = [p for p in pods if not p.spec.node_name and p.uid not in cluster.placed]
        for place in self.places.of_moves:
            for pod in pending:
                cls = cluster.classes.class_of(pod)
                if place.move is not None and self.places.is_successor(place.move, pod, cls):
                    yield place.owner, pod

    # --- moves -----------------------------------------------------------------------------------

    def _next_move(self) -> PlanPlace | None:
        """The next move that may be made now."""
        self.places.settle()
        under_way = [
            place.move
            for place in self.places.of_moves
            if place.move is not None and place.owner in self._evicted_s and not place.taken_by
        ]
        waiting = [p for p in self.places.of_moves if p.owner not in self._evicted_s]
        if self._is_served or not waiting or self._units.moves_left(self._args) < 1:
            return None
        rules = self._rules
        rules.missing = self._missing(under_way)
        if not rules.refresh():
            self.must_check = True
            return None
        for place in waiting:
            move = place.move
            info = None if move is None else self._cluster.placed.get(move.pod.pod.uid)
            if move is None or info is None:
                if self.cause.waits:  # its successor may come, or the next plan is without it
                    continue
                self.end("changed")
                return None
            if not self._is_within_limits(move, under_way) or self._waits_for_budget(place, info):
                continue
            later = rules.why_not_now(info)
            if later and self.cause.waits:
                continue
            is_other = clone_of(self._cluster, info).cls is not place.what.cls
            if later or is_other or rules.why_never(info):
                self.end("changed")
                return None
            try:
                if self.places.is_free(place, info):
                    return place
            except OutOfTurn:  # results so far are cached: it goes on with the next check
                self.must_check = True
                return None
            if not (under_way or self._leaving() or self._has_another(place)):
                self.end("room")
                return None
        return None

    def _missing(self, under_way: list[Move]) -> Counter[str]:
        """By uid of a controller: how many evicted pods have left and no successor has a node. The
        watch may show later than the answer to an eviction that a pod leaves.
        """
        placed, missing = self._cluster.placed, Counter[str]()
        for move in under_way:
            info, owner = placed.get(move.pod.pod.uid), _owner(move)
            if owner is not None and (info is None or info.pod.is_terminating):
                missing[owner.uid] += 1
        return missing

    def _waits_for_budget(self, place: PlanPlace, info: PodInfo) -> bool:
        if self._context.now_s < self._refused_until_s.get(place.owner, 0.0):
            return True
        return bool(self._rules.why_budget(info))

    def _is_within_limits(self, move: Move, under_way: list[Move]) -> bool:
        args, owner, namespace = self._args, _owner(move), move.pod.pod.metadata.namespace
        of_owner = sum(_owner(other) == owner for other in under_way)
        of_namespace = sum(m.pod.pod.metadata.namespace == namespace for m in under_way)
        most = args.max_moves_at_once_per_controller
        if owner is not None and owner.kind == STATEFUL_SET.name:
            most = 1
        return of_owner < most and of_namespace < args.max_moves_at_once_per_namespace

    def _evict(self, place: PlanPlace) -> Steps:
        assert place.move is not None
        info: PodInfo = self._cluster.placed[place.move.pod.pod.uid]
        self._evicted_s[place.owner] = self._context.now_s
        self._units.note_eviction()
        self.cause.subject.moved += 1
        answer = yield Evict(pod=ref_of(info.pod))
        if isinstance(answer, Refused) and answer.code != NOT_FOUND:
            del self._evicted_s[place.owner]
            if answer.code == TOO_MANY:
                self._refused_until_s[place.owner] = self._context.now_s + TRY_S
                return
            if answer.code == FORBIDDEN:
                self._context.observer.complaint(
                    f"cannot evict pods to make room: {answer.message}; add"
                    " deploy/components/rebalance, or remove Rebalance from the profile"
                )
            self.end("refused")
            return
        self._refused_until_s.pop(place.owner, None)
        note = f"Evicted {self.cause.note}; a place on node {place.node} is held for its successor."
        yield self._event(info.pod, names.EVENT_MOVED, note)

    def _event(self, pod: Pod, reason: str, note: str) -> EmitEvent:
        return EmitEvent(
            regarding=POD.reference(pod.metadata),
            type="Normal",
            reason=reason,
            action=ACTION,
            note=note,
            reporting_controller=self.cause.profile,
        )


def _owner(move: Move) -> OwnerReference | None:
    return move.pod.pod.metadata.controller
