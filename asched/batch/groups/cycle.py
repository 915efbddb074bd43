"""The cycle of a pod group: place all of its pods or none, and report to each.

    trial ─> scheduled                its pods keep their places and are bound concurrently
          ─> waiting for preemption   places are given back and nominated, evictions begin
          ─> no place                 room is made for the group as a whole, if its gate is on
          ─> unschedulable, error     places are given back
    pods without a place return to the queue in any case

Unlike upstream, no evictions begin for a group that does not fit with them (docs/parity.md).

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go (podGroupCycle,
        submitPodGroupAlgorithmResult)
"""

from collections.abc import Callable, Generator, Hashable, Iterable

import msgspec
from msgspec.structs import replace

from asched import names
from asched.batch.groups import incomplete
from asched.batch.groups.agreement import disagreement, is_of_1_36
from asched.batch.groups.attempt import (
    GroupAttempt,
    GroupOutcome,
    Result,
    gather,
    unschedulable_with,
)
from asched.batch.groups.dry_runs import GangDryRuns
from asched.batch.groups.min_resources import refuse_if_short
from asched.batch.groups.placements import try_placements
from asched.batch.groups.preemption import Evictions, make_room_for_group
from asched.batch.groups.reports import condition_patches
from asched.batch.groups.search import search_if_due
from asched.batch.groups.tree import try_tree
from asched.batch.groups.trial import let_go, release, seen, try_group, undo
from asched.core.cluster.facts import Answer
from asched.core.cluster.gang import gang_of
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.extension import Extension
from asched.core.cycle.failure import skip
from asched.core.cycle.freed_places import TELL_STEPS, notify_of_freed
from asched.core.cycle.queue_steps import room_is_free
from asched.core.cycle.unit import CLEARED, Failure, Tried, Unit, UnitOutcome, error, unschedulable
from asched.core.framework.effects import Effect
from asched.core.framework.points import Nomination, PostFilterResult
from asched.core.framework.runner import Runner
from asched.core.queue.queued import NO_NAMES, QueuedPod


class GroupUnit(GroupAttempt, Unit):
    """A group as the scheduling cycle tries it."""

    #: the nodes that its pods were nominated to before
    promised: list[tuple[Attempt, str]] = msgspec.field(default_factory=list)

    def place(self, context: SchedulerContext) -> Generator[Effect, Answer, UnitOutcome]:
        """Reserve places for all pods or none, and prepare the failure of each pod without one."""
        for attempt in self.attempts if context.nominator else ():
            node = context.nominator.node_of(attempt.pod.uid)
            if node:
                self.promised.append((attempt, node))
        return (yield from seen(self, _place(context, self)))

    def report(
        self, context: SchedulerContext, outcome: UnitOutcome, added: str
    ) -> Generator[Effect, Answer, None]:
        """Write the group's condition, and notify waiting pods of places that it does not use."""
        if outcome.is_placed:
            tried = {tried.attempt.pod.uid for tried in outcome.tried}
            yield from _put_back(context, [a for a in self.attempts if a.pod.uid not in tried])
        if self.freed:
            yield from notify_of_freed(context, self.freed)
        if self.outcome is not None:
            self.outcome.start = added
            yield from condition_patches(context, self, self.outcome)
        for attempt, node in self.promised:
            info = context.cluster.placed.get(attempt.pod.uid)
            now = context.nominator.node_of(attempt.pod.uid) if info is None else info.node_name
            if node != now:
                room_is_free(context, attempt.pod, node)

    def undo(self, context: SchedulerContext) -> Generator[Effect, Answer, None]:
        """Give back all places, because an exception ended the attempt."""
        if self.outcome is not None:
            yield from undo(context, self, self.outcome)
        yield from release(context, self)
        for attempt, node in self.promised:  # so that its end is announced
            context.nominator.add(attempt.pod, node)


class GroupUnits(Extension):
    """Pods of a group are tried together, and groups that stay incomplete are reported."""

    name = "groups"

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self._dry_runs = GangDryRuns()

    def is_used(self) -> bool:
        return self.context.gangs.are_tried

    def unit(self, popped: Attempt, begin: Callable[[QueuedPod], Attempt | None]) -> Unit:
        group = GroupUnit(popped, [popped], popped.queued.gang)
        gather(self.context, group, begin)
        return group

    def lacks_places(self, runner: Runner, queued: QueuedPod, version: Hashable) -> bool:
        return self._dry_runs.has_no_places(self.context, runner, queued, version)

    def may_start(self, runner: Runner, queued: QueuedPod, version: Hashable) -> bool:
        return self._dry_runs.may_start(self.context, runner, queued, version)

    def begin_turn(self) -> Iterable[Effect]:
        return incomplete.report_incomplete(self.context)

    def next_deadline_s(self) -> float | None:
        return incomplete.next_report_s(self.context.cluster)


def _place(context: SchedulerContext, group: GroupUnit) -> Generator[Effect, Answer, UnitOutcome]:
    if group.disagreement:
        failure = error(group.disagreement)
        tries = [Tried(attempt, failure=failure) for attempt in group.attempts]
        return UnitOutcome(tries, is_placed=False)
    started_s = context.monotonic_s()
    outcome = yield from _try(context, group)
    context.observer.group_algorithm_ran(context.monotonic_s() - started_s)
    is_placed, blamed, pause_s, reason = outcome.result is Result.SCHEDULED, NO_NAMES, 0.0, ""
    evictions = None
    if not is_placed:
        yield from make_room_for_group(context, group, outcome)
        yield from let_go(context, group, outcome)
        yield from release(context, group)
        room = outcome.room
        if room is not None and room.background is not None:
            evictions = Evictions(context, group.pod, room.background, room.victims)
        blamed = _blamed(context, group, outcome)
        rule = context.gangs.coscheduled.get(group.runner.profile.scheduler_name)
        if rule is not None and group.is_coscheduled:
            pause_s = float(rule.pod_group_backoff_s)
        reasons = {tried.failure.reason for tried in outcome.tried if tried.failure is not None}
        if names.REASON_NEW_NODES_DO_NOT_HELP in reasons:  # one pod keeps out the whole group
            reason = names.REASON_NEW_NODES_DO_NOT_HELP
    elif outcome.infeasible:
        blamed = _blamed(context, group, outcome)
    group.outcome = outcome  # not the newest trial, if room was made
    for tried in outcome.tried:
        if not is_placed or tried.failure is not None:
            failure = _failure(context, outcome, tried)
            tried.failure = _with(blamed, failure, pause_s, reason)
            tried.post_filter = _room(outcome, tried)
    tries = outcome.tried
    if not is_placed:
        were_tried = {tried.attempt.pod.uid for tried in tries}
        untried = [attempt for attempt in group.attempts if attempt.pod.uid not in were_tried]
        failure = _with(blamed, outcome.failure, pause_s, reason)
        tries = [*tries, *[Tried(attempt, failure=failure) for attempt in untried]]
    now_s = context.monotonic_s()
    for tried in tries:
        tried.attempt.started_s = now_s - tried.duration_s
    result, profile = outcome.result.value, group.runner.profile.scheduler_name
    context.observer.group_attempt_ended(result, profile, now_s - started_s)
    # What is promised to the whole group is no promise if minResources are not free.
    takes_additions = outcome.result is Result.UNSCHEDULABLE and outcome.refusal is None
    takes_additions &= group.tree is None
    return UnitOutcome(tries, is_placed, takes_additions, evictions)


def _try(context: SchedulerContext, group: GroupUnit) -> Generator[Effect, Answer, GroupOutcome]:
    uses_policy, minimum = context.gangs.rules["PodGroupPreemptionPolicy"], ""
    discord = disagreement(context.cluster, group, uses_policy=uses_policy)
    if discord:
        outcome = GroupOutcome(Result.ERROR, discord)
    elif group.tree is not None:
        outcome = yield from try_tree(context, group)
        minimum = outcome.minimum
    elif tries_placements(context, group):
        outcome = yield from try_placements(context, group)
    else:
        outcome = yield from try_group(context, group)
        if context.gangs.rules["groups-report-their-minimum"] and not group.is_coscheduled:
            minimum = _minimum_text(context, group, outcome)
        outcome = yield from search_if_due(context, group, outcome)
    if group.is_coscheduled:
        refuse_if_short(context, group, outcome)
    outcome.minimum = minimum
    return outcome


def _put_back(
    context: SchedulerContext, attempts: Iterable[Attempt]
) -> Generator[Effect, Answer, None]:
    """Queue pods beyond the group's minimum again; they are tried by their own priority."""
    for attempt in attempts:
        yield from context.pause_if_due(TELL_STEPS, is_alone=True)
        now = context.cluster.pods_seen.get(attempt.pod.key)
        if now is None or context.is_obsolete(attempt) or not context.owns(now):
            yield from skip(context, attempt)
            continue
        context.queue.put_back(attempt.queued, now, context.now_s)
        context.nominator.add(now)


def _room(outcome: GroupOutcome, tried: Tried) -> PostFilterResult | None:
    """The PostFilter work to run for one pod; evictions only if the whole group fits with them."""
    room = tried.post_filter
    helps = outcome.result is Result.WAITING_ON_PREEMPTION and tried.waits_for_victims
    if room is not None and room.withdraw is not None and not helps:
        replace(room, before_return=()).drop()
        return replace(room, background=None, withdraw=None, victims=())
    return room


def _blamed(
    context: SchedulerContext, group: GroupAttempt, outcome: GroupOutcome
) -> frozenset[str]:
    """The plugins that rejected a group, whose events may help any of its pods; and the gates that
    wait for its minimum, where that may change.
    """
    if outcome.result is not Result.UNSCHEDULABLE and not outcome.infeasible:
        return NO_NAMES
    failures = [tried.failure for tried in outcome.tried if tried.failure is not None]
    blamed = frozenset().union(*(failure.rejectors | failure.pending for failure in failures))
    if not group.is_coscheduled and is_of_1_36(context.cluster):
        return blamed
    gates = group.runner.profile.pre_enqueue
    return blamed | {plugin.name for plugin in gates if plugin.awaits_pods}


def _with(blamed: frozenset[str], failure: Failure, pause_s: float, reason: str) -> Failure:
    if not (blamed or pause_s or reason):
        return failure
    reason = failure.reason if failure.is_error else reason or failure.reason
    return replace(failure, rejectors=failure.rejectors | blamed, pause_s=pause_s, reason=reason)


def _minimum_text(context: SchedulerContext, group: GroupAttempt, outcome: GroupOutcome) -> str:
    """Which pod of a gang showed that its minimum has no place; empty if none did."""
    gang = gang_of(context.cluster, group.key)
    if gang is None or outcome.result is not Result.UNSCHEDULABLE:
        return ""
    have_places = [tried.decision is not None for tried in outcome.tried]
    placed = len(context.cluster.pod_groups.get(group.key).placed) - sum(have_places)
    for tried, has_place in enumerate(have_places, 1):
        placed, remaining = placed + has_place, len(group.attempts) - tried
        if placed + remaining < gang.min_count:
            numbers = f"{placed} scheduled, {remaining} remaining"
            return f"minCount ({gang.min_count}) cannot be satisfied: {numbers}"
    return ""


def _failure(context: SchedulerContext, outcome: GroupOutcome, tried: Tried) -> Failure:
    """The failure of one pod that is not bound."""
    failure = _reason(outcome, tried)
    is_whole = tried.attempt.pod.spec.scheduling_group is not None and context.gangs.makes_room
    if is_whole and failure.nomination.node is None:
        # The nomination of an earlier attempt would keep other pods out for ever.
        failure = replace(failure, nomination=CLEARED)
    # No room was made for pods beyond the group's minimum: their own attempts may do so.
    is_surplus = outcome.result is Result.SCHEDULED and is_whole
    if (is_surplus or outcome.asks_again) and not failure.is_error:
        return replace(failure, comes_back=True)
    return failure


def _reason(outcome: GroupOutcome, tried: Tried) -> Failure:
    own = tried.failure
    if outcome.result is Result.ERROR:
        return own if own is not None and own.is_error else outcome.failure
    is_waiting = outcome.result is Result.WAITING_ON_PREEMPTION
    if outcome.room is not None:
        nomination = Nomination(outcome.room.places.get(tried.attempt.pod.uid, ""))
        message = outcome.message.removesuffix(f", {outcome.room.status.message}")
        return replace(own or unschedulable(message), nomination=nomination)
    if own is None and is_waiting:
        assert tried.decision is not None
        return unschedulable(outcome.message, Nomination(tried.decision.node))
    if own is None and outcome.refusal is not None:
        return outcome.refusal
    if own is None or (tried.waits_for_victims and not is_waiting):
        return unschedulable_with(tried)
    return own


def tries_placements(context: SchedulerContext, group: GroupAttempt) -> bool:
    """Whether the group is tried in placements, by the feature gate or a plugin for all groups."""
    if context.gangs.tries_placements and not group.is_coscheduled:
        return True
    generators = group.runner.profile.placement_generators
    return any(plugin.serves_all_groups for plugin in generators)
