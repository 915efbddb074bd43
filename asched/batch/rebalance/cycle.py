"""The cycle of moves: units that wait get a plan, which is carried out or only reported.

    rejected ─> tracked ─waitingSeconds─> searched ─┬─ no plan, or dryRun ─> again after a backoff
                                                    └─ plan ─> all places held ─> `carrying.py`
    node with a request to drain it ────> searched ─┘

Units are tracked from their first rejection; before that, nothing of the extension is called
(`UnitsThatWait` alone is in use). A unit that evicts less important pods is not rejected, so that
preemption comes first, unless beforePreemption says otherwise: then no pod is evicted for a unit
until the first search for it has ended.

A node and a unit that are both due alternate.

Bounds  one search, and one plan that is carried out, at a time; after a search no other one for
        REST_FACTOR times its duration, and after a long one without a plan for the same unit
        UNIT_REST_FACTOR times that; PLACEMENTS_MAX parts of the cluster for a group that must
        be in one.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Final

from asched import names
from asched.batch.backfill.search import is_beyond
from asched.batch.rebalance.carrying import Carrying
from asched.batch.rebalance.causes import Cause, ForNode, ForUnit
from asched.batch.rebalance.draining import NodeDrain, request_of, search_for
from asched.batch.rebalance.movable import Movable
from asched.batch.rebalance.search import MovePlan, NoPlan, PlanSearch
from asched.batch.rebalance.units import (
    DRY_RUN,
    MINUTE_S,
    NONE,
    UNITS_MAX,
    RebalanceUnits,
    WaitingUnit,
    moved_before,
)
from asched.core.cluster.budget import STEP_US
from asched.core.cluster.cluster import ObservedChange
from asched.core.cluster.facts import Answer
from asched.core.cluster.gang import count_missing, gang_of
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import RebalanceArgs
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.extension import Extension, Steps, Work
from asched.core.cycle.extension_points import NOTHING_TO_ADD, Addition, Finding, Placing
from asched.core.framework.effects import Effect, EmitEvent
from asched.core.framework.placements import EVERYWHERE, Mask, Placement, generate
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import Runner
from asched.core.framework.status import MISTAKES
from asched.core.model.kinds import POD
from asched.core.model.lru import Lru
from asched.core.model.pod import Pod

#: After a search that ended because the cluster changed.
AGAIN_S: Final = 5.0
PLACEMENTS_MAX: Final = 16
REST_FACTOR: Final = 10
#: ... and after a search without a plan none for the same unit for so many times that: a unit
#: without a plan takes a hundredth of the time at most.
UNIT_REST_FACTOR: Final = 10
#: Pods that a message names.
NAMED_MAX: Final = 5
NEVER_S: Final = float("inf")


class UnitsThatWait(Extension):
    """Tracks units without places. The first of them puts `PodMoves` in use."""

    name = "units that wait"

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self._units = context.cluster.singleton(RebalanceUnits)
        #: keys of units for which pods were spared before they were tracked
        self._spared: Lru[str, bool] = Lru(UNITS_MAX)

    @property
    def _args(self) -> Mapping[str, RebalanceArgs]:
        """The plugin's args by profile."""
        return self.context.args_by_profile(RebalanceArgs)

    def is_used(self) -> bool:
        return bool(self._args)

    def defers_evictions(self, attempt: Attempt) -> bool:
        args = self._args.get(attempt.profile)
        if args is None or not args.before_preemption or attempt.pod.priority < args.priority:
            return False
        key = self._key_of(attempt.pod)
        unit = self._units.tracked.get(key)
        if unit is None:  # it is tracked once it is rejected, unless no plan is made for it
            was_spared = key in self._spared
            self._spared.put(key, True)
            return not was_spared
        active = self._units.active
        return not unit.was_searched or (active is not None and active.cause.subject is unit)

    def rejected(self, attempts: Sequence[Attempt]) -> Generator[Effect, Answer, Addition]:
        """Track a unit; returns what the last search for it found."""
        yield from ()
        unit = self._tracked(attempts)
        return Addition(unit.text) if unit is not None and unit.text else NOTHING_TO_ADD

    def _tracked(self, attempts: Sequence[Attempt]) -> WaitingUnit | None:
        first, units = attempts[0], self._units
        args, key = self._args.get(first.profile), self._key_of(first.pod)
        known = units.tracked.get(key)
        if known is not None:
            known.profile = first.profile  # it may have come to another pool
        if len(units.tracked) >= UNITS_MAX:
            units.forget_gone()
        if args is None or known is not None or len(units.tracked) >= UNITS_MAX:
            return known
        is_alone = key == first.pod.uid
        needed = 1 if is_alone else max(count_missing(self.context.cluster, key), 1)
        infos = [attempt.info for attempt in attempts[:needed]]
        if len(infos) < needed or min(info.pod.priority for info in infos) < args.priority:
            return None
        if is_beyond(first.runner, infos):
            return None
        now_s = self.context.now_s
        waited_s = [a.queued.initial_attempt_s for a in attempts]
        since_s = min((at_s for at_s in waited_s if at_s is not None), default=now_s)
        moved, at_s = moved_before([attempt.pod for attempt in attempts])
        search_s = since_s + args.waiting_s
        if moved:  # by an earlier process
            at_s -= self.context.cluster.wall_ahead_s
            search_s = max(search_s, at_s + args.backoff_s)
        unit = WaitingUnit(key, first.pod, first.profile, since_s, search_s, moved)
        was_awake, units.tracked[key] = units.is_awake, unit
        if not was_awake:
            self.context.extensions.follow_profiles()
        return unit

    def _key_of(self, pod: Pod) -> str:
        """The key of a gang; the uid of a pod by itself."""
        key = self.context.gangs.key_of(pod)
        return key if key and gang_of(self.context.cluster, key) is not None else pod.uid


class NodesToDrain(Extension):
    """Follows the requests to drain nodes. The first of them puts `PodMoves` in use."""

    name = "nodes to drain"

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self._units = context.cluster.singleton(RebalanceUnits)

    def is_used(self) -> bool:
        return bool(self.context.args_by_profile(RebalanceArgs))

    def saw_node(self, change: ObservedChange) -> None:
        drains, node = self._units.drains, change.new
        request = None if node is None else request_of(node)
        if request is None:
            if drains:
                drains.pop((change.old if node is None else node).name, None)
            return
        known = drains.get(node.name)
        if known is not None:
            known.request = request
            return
        was_awake = self._units.is_awake
        # A node that appears with the request: it may be of an earlier process, see `ForNode`.
        after_s = MINUTE_S if change.old is None else 0.0
        drains[node.name] = NodeDrain(node.name, request, self.context.now_s + after_s)
        if not was_awake:
            self.context.extensions.follow_profiles()


class PodMoves(Extension):
    """Searches plans, and carries them out."""

    name = "moves"

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self._units = context.cluster.singleton(RebalanceUnits)
        self._plans = 0
        #: of the search or plan that is under way
        self._rules: Movable | None = None
        self._is_turn_of_nodes = True
        self._rest_until_s = 0.0

    @property
    def _args(self) -> Mapping[str, RebalanceArgs]:
        return self.context.args_by_profile(RebalanceArgs)

    def is_used(self) -> bool:
        return self._units.is_awake

    def place(self, attempt: Attempt, within: Mask | None, otherwise: Placing) -> Finding:
        """Find a node: the place that is held for the pod, or any other; a pod above the priority
        of the unit also where a place of the plan gives way.
        """
        active: Carrying | None = self._units.active
        if active is None or attempt.hypothetical_gang is not None:
            return (yield from otherwise(attempt, within))
        places = active.places
        places.settle()
        own = places.own_place(attempt.info)
        if own is not None:
            found = places.try_own(attempt, own, within)
            if found is not None:
                return found
            places.settle()
        result = yield from otherwise(attempt, within)
        if isinstance(result, Rejection) and attempt.pod.priority > places.priority:
            found = places.try_all(attempt, result.candidates.tolist(), within)
            if found is not None:
                active.end("overtaken")
                return found
        return result

    def yields_to(self, priority: int) -> bool:  # noqa: ARG002
        return self._units.active is not None

    def yields_places(self, pod: PodInfo, rejection: Rejection) -> bool:
        active: Carrying | None = self._units.active
        if active is None:
            return False
        if active.places.own_place(pod) is not None:
            return True
        is_above = pod.pod.priority > active.places.priority
        return is_above and active.places.may_fit(pod, rejection.candidates.tolist())

    def placed(self, pod: Pod) -> None:
        active: Carrying | None = self._units.active
        if active is not None:
            active.must_check = True
        key = self.context.gangs.key_of(pod)
        self._units.tracked.pop(key, None)
        self._units.tracked.pop(pod.uid, None)

    def saw(self, change: ObservedChange) -> None:
        active: Carrying | None = self._units.active
        if active is None and self._units.searching is None:
            self._rules = None
        if self._rules is not None:
            self._rules.saw(change)
        if active is not None:
            active.saw(change)

    def refresh(self, *, may_decide: bool) -> None:  # noqa: ARG002
        if self._units.active is not None:
            self._units.active.places.settle()

    def begin_turn(self) -> Iterator[Work]:
        units, context = self._units, self.context
        if context.sliced_work or not units.is_awake:
            return
        if not units.has_recalled:
            units.recall(max((args.time_limit_s for args in self._args.values()), default=0))
        if units.active is not None and not units.active.is_begun:
            units.active.is_begun = True
            yield Work(units.active.run(), decides=False)
        drain, unit = self._due_drain(), self._due()
        if drain is not None and (unit is None or self._is_turn_of_nodes):
            units.searching, self._is_turn_of_nodes = drain, False
            yield Work(self._search_for_node(drain), decides=True)
        elif unit is not None:
            units.searching, self._is_turn_of_nodes = unit, True
            yield Work(self._search(unit), decides=True)

    def next_deadline_s(self) -> float | None:
        units = self._units
        if units.active is not None and not units.active.is_begun:
            return self.context.now_s
        if units.active is not None or units.searching is not None:
            return None
        due_s = [unit.search_s for unit in units.tracked.values()]
        first_s = max(min(due_s, default=NEVER_S), units.blocked_until_s)
        for_nodes_s = [drain.search_s for drain in units.drains.values()]
        first_s = max(min([first_s, *for_nodes_s]), self._rest_until_s)
        return None if first_s == NEVER_S else first_s

    @property
    def _may_search(self) -> bool:
        units = self._units
        is_busy = units.active is not None or units.searching is not None
        return not is_busy and self.context.now_s >= self._rest_until_s

    def _due(self) -> WaitingUnit | None:
        """The unit for which a plan is searched now: the most important, then the oldest."""
        units, now_s = self._units, self.context.now_s
        if not self._may_search or now_s < units.blocked_until_s:
            return None
        due = [unit for unit in units.tracked.values() if unit.search_s <= now_s]
        return min(due, key=lambda unit: (-unit.pod.priority, unit.since_s), default=None)

    def _due_drain(self) -> NodeDrain | None:
        """The node for whose pods places are searched now. Requests whose time is over go."""
        drains, context = self._units.drains, self.context
        if not drains or not self._may_search:
            return None
        wall_s = context.cluster.wall_clock_s
        for name, drain in tuple(drains.items()):
            if drain.request.until_s <= wall_s or name not in context.cluster.nodes.row_of:
                del drains[name]
        due = [drain for drain in drains.values() if drain.search_s <= context.now_s]
        return min(due, key=lambda drain: drain.search_s, default=None)

    # --- searching -------------------------------------------------------------------------------

    def _search(self, unit: WaitingUnit) -> Steps:
        units, context = self._units, self.context
        try:
            args, infos = self._args.get(unit.profile), self._waiting(unit)
            if args is None or not infos:
                units.tracked.pop(unit.key, None)
                return
            unit.search_s = context.now_s + args.backoff_s
            if any(context.nominator.node_of(info.pod.uid) for info in infos):
                return  # room is made for it already
            priority = min(info.pod.priority for info in infos)
            rules = self._rules = Movable(context, args, priority)
            found = yield from self._find(unit, infos, rules, args)
            unit.was_searched = True
            unit.plan = found if isinstance(found, MovePlan) else None
            if isinstance(found, NoPlan):
                unit.text = f"; no pods are moved for it: {found.why}"
                if found.is_moved:
                    unit.search_s = context.now_s + AGAIN_S
                else:
                    rest_s = self._rest_until_s - context.now_s
                    unit.search_s = max(unit.search_s, context.now_s + UNIT_REST_FACTOR * rest_s)
                    units.outcomes[NONE] += 1
            elif args.dry_run:
                units.outcomes[DRY_RUN] += 1
                unit.text = f"; {planned_text(found, unit.pod)} (dryRun)"
                yield self._event(unit, f"{planned_text(found, unit.pod)}; dryRun is set.")
            else:
                self._plans += 1
                unit.text = f"; {planned_text(found, unit.pod)}"
                self._carry_out(ForUnit(context, unit, priority), found, args, rules)
                yield self._event(unit, f"{planned_text(found, unit.pod)}.")
            pods = (self._newest(info.pod) for info in infos[:1])
            context.queue.activate([pod for pod in pods if pod is not None], context.now_s)
        except MISTAKES as raised:
            unit.was_searched, unit.search_s = True, context.now_s + max(AGAIN_S, 60.0)
            context.contain(raised, self.name, unit.key)
        finally:
            units.searching = None

    def _carry_out(self, cause: Cause, plan: MovePlan, args: RebalanceArgs, rules: Movable) -> None:
        self._units.active = Carrying(self.context, cause, self._plans, plan, args, rules)
        self._units.active.places.hold()

    def _search_for_node(self, drain: NodeDrain) -> Steps:
        units, context = self._units, self.context
        drain.search_s = context.now_s + AGAIN_S
        try:
            profile, args = next(iter(self._args.items()), ("", None))
            if args is None or args.dry_run:
                return
            search = search_for(context, args, drain.node, drain.request)
            self._rules = search.rules
            found = yield from search.find()
            drain.fates = found.fates
            self._rest_after(search.spent)
            if found.plan.moves and not found.is_moved:
                self._plans += 1
                cause = ForNode(context, drain, profile, found.plan)
                self._carry_out(cause, found.plan, args, search.rules)
        except MISTAKES as raised:
            drain.search_s = context.now_s + MINUTE_S
            context.contain(raised, self.name, f"node/{drain.node}")
        finally:
            units.searching = None

    def _find(
        self, unit: WaitingUnit, infos: Sequence[PodInfo], rules: Movable, args: RebalanceArgs
    ) -> Generator[Effect, Answer, MovePlan | NoPlan]:
        """Search in the whole cluster, or in each part of it that may take the group."""
        most = min(args.max_moves_per_unit - unit.moved, args.max_moves_per_pod * len(infos))
        if most < 1:
            return NoPlan(f"{unit.moved} were moved for it before (maxMovesPerUnit)")
        yield from rules.count()
        movable = yield from rules.find()
        runner = self.context.runners[unit.profile]
        best: MovePlan | NoPlan = NoPlan("no part of the cluster may take the group")
        for placement in self._placements(unit, runner)[:PLACEMENTS_MAX]:
            search = PlanSearch(self.context, infos, rules, movable, most, placement.rows)
            found = yield from search.find()
            self._rest_after(search.spent)
            if isinstance(found, MovePlan):
                best, most = found, len(found.moves) - 1
                if most < 0:
                    break
            elif isinstance(best, NoPlan):
                best = found
        return best

    def _rest_after(self, steps: float) -> None:
        rest_s = steps * STEP_US * 1e-6 * REST_FACTOR
        self._rest_until_s = max(self._rest_until_s, self.context.now_s + rest_s)

    def _placements(self, unit: WaitingUnit, runner: Runner) -> Sequence[Placement]:
        generators = runner.profile.placement_generators
        is_divided = self.context.gangs.tries_placements or any(
            plugin.serves_all_groups for plugin in generators
        )
        if unit.key == unit.pod.uid or not is_divided:
            return (EVERYWHERE,)
        found = generate(generators, unit.key)
        return found if isinstance(found, tuple) else ()

    def _waiting(self, unit: WaitingUnit) -> list[PodInfo]:
        """The pods of a unit that need places; none if it needs none any more."""
        cluster = self.context.cluster
        if unit.key == unit.pod.uid:
            pod = self._newest(unit.pod)
            return [] if pod is None else [cluster.classes.info_of(pod)]
        needed = count_missing(cluster, unit.key)
        pods = [
            pod
            for pod in cluster.pod_groups.get(unit.key).unplaced.values()
            if self.context.owns(pod) and not pod.is_terminating
        ]
        if not 0 < needed <= len(pods):
            return []
        pods.sort(key=lambda pod: (-pod.priority, pod.metadata.name))
        unit.pod = pods[0]
        return [cluster.classes.info_of(pod) for pod in pods[:needed]]

    def _newest(self, pod: Pod) -> Pod | None:
        """The newest version of a pod that waits; None if it does not."""
        now = self.context.cluster.pods_seen.get(pod.key)
        waits = now is not None and now.uid == pod.uid and not now.is_terminating
        is_placed = pod.uid in self.context.cluster.placed
        return now if waits and not is_placed else None

    def _event(self, unit: WaitingUnit, note: str) -> EmitEvent:
        return EmitEvent(
            regarding=POD.reference(unit.pod.metadata),
            type="Normal",
            reason=names.EVENT_PODS_MOVE,
            action="Rebalancing",
            note=note[:1].upper() + note[1:],
            reporting_controller=unit.pod.spec.scheduler_name,
        )


def planned_text(plan: MovePlan, pod: Pod) -> str:
    """The moves of a plan, for a pod of the unit: pods of other namespaces are not named."""
    if not plan.moves:
        return "it fits without moves"
    named = [
        f"{move.pod.pod.metadata.name} to {move.node}"
        for move in plan.moves
        if move.pod.pod.metadata.namespace == pod.metadata.namespace
    ]
    more = len(plan.moves) - len(named[:NAMED_MAX])
    parts = named[:NAMED_MAX] + (
        [f"{more} other pods" if more > 1 else "another pod"] if more else []
    )
    plural = "" if len(plan.moves) == 1 else "s"
    return f"{len(plan.moves)} pod{plural} would move to make room: {', '.join(parts)}"
