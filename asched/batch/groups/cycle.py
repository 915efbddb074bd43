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

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from asched import names
from asched.batch.groups import reports
from asched.batch.groups.attempt import (
    UNSCHEDULABLE,
    GroupAttempt,
    GroupOutcome,
    Result,
    gather,
    unschedulable_with,
)
from asched.batch.groups.board import GangDryRuns
from asched.batch.groups.preemption import Evictions, make_room_for_group
from asched.batch.groups.reports import condition_patches
from asched.batch.groups.search import search_if_due, try_placements
from asched.batch.groups.tree import try_tree
from asched.batch.groups.trial import (
    let_go,
    release,
    seen,
    try_group,
    undo,
)
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.gang import Shortages, amounts_of, amounts_text, gang_of
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.cycle.extension import Extension
from asched.core.cycle.failure import skip
from asched.core.cycle.intake import TELL_STEPS, notify_of_freed, room_is_free
from asched.core.cycle.unit import (
    CLEARED,
    Failure,
    Tried,
    Unit,
    UnitOutcome,
    error,
    unschedulable,
)
from asched.core.framework.effects import Effect
from asched.core.framework.points import Nomination, PostFilterResult
from asched.core.framework.runner import Runner
from asched.core.model.kinds import POD_GROUP
from asched.core.model.pod import Pod
from asched.core.model.workload import PodGroup
from asched.core.queue.queued import NO_NAMES, QueuedPod

# Check that the pods of a group agree, before any of them is tried.
#
# Since 1.37 not only the scheduler's name must agree: each pod's priority is its group's, and all
# pods have one preemption policy, running pods included. A disagreement is an error, written to the
# conditions of the pods and of the group.
#
# Source  kubernetes/kubernetes v1.37 pkg/scheduler/schedule_one_podgroup.go (validatePodGroup)

#: The policy of a pod without one.
PREEMPTS: Final = "PreemptLowerPriority"
ALL: Final = "all pods in a single pod group should have the same"
ALL_GROUPS: Final = "all pod groups in a hierarchy should have the same"
ALL_OF_TREE: Final = "all pods in a pod group hierarchy should have the same"


def is_of_1_36(cluster: Cluster) -> bool:
    """Whether the API server serves the PodGroups of 1.36."""
    return cluster.spoken(POD_GROUP).group_version == POD_GROUP.group_version


def disagreement(cluster: Cluster, group: GroupAttempt, *, heeds_policy: bool) -> str:
    """The error of the group's pods by the rules of 1.37; empty if they agree, or if the API server
    serves the PodGroups of 1.36. `heeds_policy`: the gate PodGroupPreemptionPolicy is on.
    """
    if is_of_1_36(cluster) or group.is_coscheduled:
        return ""
    known: PodGroup | None = cluster.get(POD_GROUP, group.key)
    if known is None:
        return ""
    every, first = ALL, group.attempts[0].pod
    nodes = list(group.tree.nodes.values()) if group.tree is not None else []
    if nodes:
        known, every = nodes[0].group, ALL_OF_TREE
    own = (known.spec.preemption_policy or PREEMPTS) if heeds_policy else ""
    for node in nodes:
        at, priority = node.group.metadata.name, node.group.priority
        if priority != known.priority:
            both = f"{priority} ({at}) and {known.priority} ({known.metadata.name})"
            return f"{ALL_GROUPS} priority as the root pod group's priority, got {both}"
        policy = node.group.spec.preemption_policy or PREEMPTS
        if own and policy != own:
            whose = "as the root pod group's preemption policy"
            return f"{ALL_GROUPS} preemption policy {whose}, got {policy} ({at}) and {own}"
    for pod in _pods(cluster, group):
        name = pod.spec.scheduler_name
        if name != first.spec.scheduler_name:
            both = f'"{name}" and "{first.spec.scheduler_name}"'
            return f"{every} .spec.schedulerName set, got: {both}"
        if pod.priority != known.priority:
            both = f"{pod.priority} and {known.priority}"
            return f"{every} priority as the pod group's priority, got {both}"
        policy, wanted = _policy(pod), own or _policy(first)
        if policy != wanted:
            whose = " as the pod group's preemption policy" if own else ""
            return f"{every} preemption policy{whose}, got {policy} and {wanted}"
    return ""


def _pods(cluster: Cluster, group: GroupAttempt) -> Iterator[Pod]:
    for attempt in group.attempts:
        yield attempt.pod
    for key in cluster.pod_groups.leaves_of(group.key):
        yield from cluster.pod_groups.get(key).placed.values()


def _policy(pod: Pod) -> str:
    return pod.spec.preemption_policy or PREEMPTS


# Check that the minResources of a PodGroup of scheduling.x-k8s.io are free before it starts.
#
# They are checked once, beside the places of the first pods, as in scheduler-plugins; nothing is
# reserved for the pods that come later.
#
# Bounds  a sum over the nodes for each resource that both the group and a node name.


def refuse_if_short(context: SchedulerContext, group: GroupAttempt, outcome: GroupOutcome) -> None:
    """Refuse a group whose first pods fit but whose minResources beyond them are not free.

    To be called while the places of the first pods are assumed.
    """
    cluster, key = context.cluster, group.key
    gang = gang_of(cluster, key)
    if outcome.result is not Result.SCHEDULED or gang is None or not gang.min_resources:
        return
    shortages = cluster.singleton(Shortages)
    shortages.drop(key)
    placed = cluster.pod_groups.get(key).placed
    if not placed.keys() <= {attempt.pod.uid for attempt in group.attempts}:
        return  # it has started
    wanted = amounts_of(gang.min_resources)
    left = dict(wanted)
    for uid in placed:
        for name, amount in cluster.placed[uid].cls.accounted.items():
            if name in left:
                left[name] -= amount
    lacking = {name: amount - int(shortages.free(name)) for name, amount in left.items()}
    missing = {name: amount for name, amount in lacking.items() if amount > 0}
    if not missing:
        return
    shortages.note(key, wanted)
    outcome.result = Result.UNSCHEDULABLE
    outcome.message = (
        f"{UNSCHEDULABLE}, minResources of the PodGroup ({amounts_text(wanted)}) are not free:"
        f" beside the pods that fit, {amounts_text(missing)} found no room"
    )
    gates = group.runner.profile.pre_enqueue
    blamed = frozenset(plugin.name for plugin in gates if plugin.awaits_pods)
    outcome.refusal = Failure(outcome.message, names.REASON_UNSCHEDULABLE, blamed)


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
        return reports.report_incomplete(self.context)

    def next_deadline_s(self) -> float | None:
        return reports.next_report_s(self.context.cluster)


def _place(context: SchedulerContext, group: GroupUnit) -> Generator[Effect, Answer, UnitOutcome]:
    if group.disagreement:
        failure = error(group.disagreement)
        tries = [Tried(attempt, failure=failure) for attempt in group.attempts]
        return UnitOutcome(tries, is_placed=False)
    started_s = context.counter_s()
    outcome = yield from _try(context, group)
    context.observer.group_algorithm_ran(context.counter_s() - started_s)
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
            tried.room = _room(outcome, tried)
    tries = outcome.tried
    if not is_placed:
        were_tried = {tried.attempt.pod.uid for tried in tries}
        untried = [attempt for attempt in group.attempts if attempt.pod.uid not in were_tried]
        failure = _with(blamed, outcome.failure, pause_s, reason)
        tries = [*tries, *[Tried(attempt, failure=failure) for attempt in untried]]
    now_s = context.counter_s()
    for tried in tries:
        tried.attempt.started_s = now_s - tried.duration_s
    result, profile = outcome.result.value, group.runner.profile.scheduler_name
    context.observer.group_attempt_ended(result, profile, now_s - started_s)
    # What is promised to the whole group is no promise if minResources are not free.
    is_added_to = outcome.result is Result.UNSCHEDULABLE and outcome.refusal is None
    is_added_to &= group.tree is None
    return UnitOutcome(tries, is_placed, is_added_to, evictions)


def _try(context: SchedulerContext, group: GroupUnit) -> Generator[Effect, Answer, GroupOutcome]:
    heeds_policy, minimum = context.gangs.rules["PodGroupPreemptionPolicy"], ""
    discord = disagreement(context.cluster, group, heeds_policy=heeds_policy)
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
    room = tried.room
    helps = outcome.result is Result.WAITING_ON_PREEMPTION and tried.needs_room
    if room is not None and room.withdraw is not None and not helps:
        replace(room, first=()).drop()
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
    if own is None or (tried.needs_room and not is_waiting):
        return unschedulable_with(tried)
    return own


def tries_placements(context: SchedulerContext, group: GroupAttempt) -> bool:
    """Whether the group is tried in placements, by the feature gate or a plugin for all groups."""
    if context.gangs.tries_placements and not group.is_coscheduled:
        return True
    generators = group.runner.profile.placement_generators
    return any(plugin.serves_all_groups for plugin in generators)
