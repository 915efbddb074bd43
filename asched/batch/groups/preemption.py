"""Make room for a group as a whole: repeat its trial without proposed victims.

    no place ─> the plugin proposes victims ─> a trial without the victims ─> ... ─> evictions
                                                                                └─> or a reason

A trial removes its victims from the columns, so that all rules, Reserve and Permit see the cluster
as it will be after the evictions. Whenever the trial pauses, or calls an extender, the victims are
put back before other pods have their turn, and removed again afterwards.

Unlike upstream, every pod that had a place in the last trial is nominated to it, so that other pods
do not take the room of the victims while the group backs off (docs/parity.md).

Bounds  after a search for room without success, no further search for REST_FACTOR times its
        duration, if that is REST_S_MIN at least.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go
        (runWorkloadAwarePreemption)
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final, TypeVar

from asched.batch.groups.attempt import GroupAttempt, GroupOutcome, GroupPauses, Result
from asched.batch.groups.board import accepting
from asched.batch.groups.placements import try_placements
from asched.batch.groups.tree import try_tree
from asched.batch.groups.trial import TRY_STEPS, let_go, try_group
from asched.batch.groups.trial_without import MOVE_STEPS, without
from asched.core.cluster.budget import STEP_US, OutOfTurn
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.failure import failure_of
from asched.core.cycle.freed_places import TELL_STEPS
from asched.core.cycle.history import DecisionStep
from asched.core.cycle.post_filter import Background
from asched.core.framework.effects import Effect, Pause, WaitFor
from asched.core.framework.group_post_filter import EqualMembers, Probe, RoomMade
from asched.core.framework.order_free import takes_of
from asched.core.framework.placements import Placement
from asched.core.framework.status import (
    MISTAKES,
    SKIP,
    Code,
    PluginError,
    Status,
    failure,
    unschedulable,
)
from asched.core.model.kinds import POD_GROUP
from asched.core.model.pod import Pod
from asched.core.model.workload import PodGroup
from asched.core.preemption.pods_by_priority import PodsByPriority
from asched.core.preemption.under_way import standing

T = TypeVar("T")

NO_PLUGIN: Final = (
    "default preemption plugin is not registered, workload aware preemption is disabled"
)
#: How long a group waits for the end of its victims before it is tried anyway. A guess.
VICTIMS_LEAVE_S: Final = 600.0
REST_FACTOR: Final = 20
REST_S_MIN: Final = 1.0
#: Budget steps to name a victim.
VICTIM_STEPS: Final = 0.1
#: Victims that are named between two checks of the budget.
VICTIMS_AT_ONCE: Final = 500


def make_room_for_group(
    context: SchedulerContext, group: GroupAttempt, outcome: GroupOutcome
) -> Generator[Effect, Answer, None]:
    """Try to make room after a trial without places, and store the result in its outcome."""
    is_enabled = context.gangs.makes_room and not group.is_coscheduled
    is_enabled = is_enabled and not context.extensions.defers_evictions(group.popped)
    if not is_enabled or outcome.result is not Result.UNSCHEDULABLE:
        return
    yield from let_go(context, group, outcome)
    plugins = group.runner.profile.group_post_filters
    known: PodGroup | None = context.cluster.get(POD_GROUP, group.key)
    if group.tree is not None:
        if group.tree.fault:
            return
        known = group.tree.root.group
    if not plugins:
        outcome.message += f", {NO_PLUGIN}"
        return
    if known is None:
        name = group.key.rpartition("/")[2]
        outcome.result = Result.ERROR
        outcome.message = (
            f'failed to get pod group object: podgroup.scheduling.k8s.io "{name}" not found'
        )
        return
    failed, metadata = context.cluster.singleton(GroupPauses), known.metadata
    if message := failed.text(metadata.key, metadata.uid, context.now_s):
        outcome.message, outcome.asks_again = f"{outcome.message}, {message}", True
        return
    yield from _sort_victims(context)
    trial = GroupSupposition(context, group, known, outcome.message)
    started_s = context.monotonic_s()
    try:
        room = yield from plugins[0].group_post_filter(trial)
    except MISTAKES as raised:
        named = PluginError.of(plugins[0].name, "podGroupPostFilter", raised)
        room = RoomMade(failure(failure_of(context, named, group.key).message))
    took_s = context.monotonic_s() - started_s
    context.observer.group_preempting(
        room.status.code.text, len(room.victims), took_s, room.violations, room.disruptions
    )
    pause_s = trial.spent * STEP_US * 1e-6 * REST_FACTOR
    if not room.status.is_success and pause_s >= REST_S_MIN:
        failed.note(metadata.key, metadata.uid, context.now_s + pause_s, room.status.message)
    if room.status.code is Code.ERROR:
        outcome.result, outcome.message = Result.ERROR, room.status.message
    elif not room.status.is_success:
        outcome.message += f", {room.status.message}"
    else:
        outcome.result, outcome.room = Result.WAITING_ON_PREEMPTION, room
        if room.status.message:
            outcome.message += f", {room.status.message}"
        yield from _note(context, group, room)


def _sort_victims(context: SchedulerContext) -> Generator[Effect, Answer, None]:
    """Sort the pods of all nodes in the order of eviction, over as many turns as needed."""
    while True:
        try:
            context.cluster.singleton(PodsByPriority).catch_up()
        except OutOfTurn:
            yield Pause()
        else:
            return


class Evictions(Background):
    """The evictions for a group. They end when all victims are gone; then the group's pods are
    tried at once, because the plugins that rejected them may have missed the deletion of victims
    while the pods were gated, or may not be registered for it.
    """

    victims: tuple[str, ...] = ()
    preemptor: ClassVar = "podgroup"

    def run(self) -> Generator[Effect, Answer, tuple[Status, Pod]]:
        cluster, remaining = self.context.cluster, list[Pod]()
        for start in range(0, len(self.victims), VICTIMS_AT_ONCE):
            some = self.victims[start : start + VICTIMS_AT_ONCE]
            yield from self.context.pause_if_due(VICTIM_STEPS * len(some), is_alone=True)
            seen = map(cluster.pods_seen.get, some)
            remaining += [victim for victim in seen if victim is not None]

        def are_gone() -> bool:
            while remaining and standing(remaining[-1], cluster) is None:
                remaining.pop()
            return not remaining

        status, pod = yield from Background.run(self)
        if status.is_success:
            yield WaitFor(ready=are_gone, timeout_s=VICTIMS_LEAVE_S)
            status = SKIP
        return status, pod


def _note(
    context: SchedulerContext, group: GroupAttempt, room: RoomMade
) -> Generator[Effect, Answer, None]:
    seen = context.cluster.pods_seen
    found: list[tuple[str, int]] = []
    for start in range(0, len(room.victims), VICTIMS_AT_ONCE):
        some = room.victims[start : start + VICTIMS_AT_ONCE]
        yield from context.pause_if_due(VICTIM_STEPS * len(some), is_alone=True)
        found += [(key, seen[key].priority) for key in some if key in seen]
    victims = tuple(found)
    for attempt in group.attempts:
        yield from context.pause_if_due(TELL_STEPS, is_alone=True)
        node = room.places.get(attempt.pod.uid)
        if node is not None:
            context.tell(attempt, DecisionStep.NOMINATED, (node, victims))


class GroupSupposition:
    """The trial of a group without some placed pods (`GroupTrial`)."""

    def __init__(
        self, context: SchedulerContext, group: GroupAttempt, known: PodGroup, refusal: str
    ) -> None:
        self._context = context
        self._attempt = group
        profile = group.runner.profile
        self.cluster = context.cluster
        self.nominator = context.nominator
        self.waiting = context.waiting
        self.group = known
        self.pods: Sequence[PodInfo] = [attempt.info for attempt in group.attempts]
        self.refusal = refusal
        self.moves = 0
        self.spent = 0.0
        self._nominated = dict(group.nominated)
        gang = known.spec.scheduling_policy.gang
        waits = any(getattr(permit, "awaits_pods", False) for permit in profile.permits)
        needed = gang.min_count if gang is not None and waits else 1
        placed = len(context.cluster.pod_groups.get(group.key).placed)
        self.needed = max(needed - placed, 1) if group.tree is None else 1

    def alike(self) -> list[EqualMembers]:
        classes: dict[tuple[int, int], list[PodInfo]] = {}
        for info in self.pods:
            classes.setdefault((info.cls.number, info.pod.priority), []).append(info)
        equal_members = []
        for infos in classes.values():
            example, rows = infos[0], Placement().mask(self.cluster.nodes)
            state = self._attempt.runner.cache.state_of(example)
            takes = takes_of([f.plugin for f in state.active_plugins.filters], example)
            with suppress(*MISTAKES):  # the trial reports the error; until then any row may do
                rows = accepting(state, example, rows)
            equal_members.append(EqualMembers(tuple([info.pod.uid for info in infos]), takes, rows))
        return equal_members

    def charge(self, steps: float, *, is_alone: bool = False) -> Generator[Effect, Answer, None]:
        self.spent += steps
        yield from self._watched(self._context.pause_if_due(steps, is_alone=is_alone))

    def fits_without(
        self, gone: Sequence[PodInfo], hints: Mapping[str, str]
    ) -> Generator[Effect, Answer, Probe]:
        context, group = self._context, self._attempt
        group.nominated = {**self._nominated, **hints}
        if group.tree is not None:
            trial = try_tree(context, group, only_whether=True)
        elif context.gangs.tries_placements:
            trial = try_placements(context, group, only_whether=True)
        else:
            trial = try_group(context, group, plan={}, only_whether=True)
        outcome = yield from self._watched(without(self.cluster, gone, trial))
        places = {
            tried.attempt.pod.uid: tried.decision.node
            for tried in outcome.tried
            if tried.decision is not None
        }
        yield from self._watched(let_go(context, group, outcome))
        steps = 2 * MOVE_STEPS * len(gone) + TRY_STEPS * len(outcome.tried)
        self.spent += steps
        if outcome.result is Result.SCHEDULED:
            return Probe(places=places, steps=steps)
        make_status = failure if outcome.result is Result.ERROR else unschedulable
        return Probe(make_status(outcome.message), steps=steps)

    def _watched(self, steps: Generator[Effect, Answer, T]) -> Generator[Effect, Answer, T]:
        """Run steps, and count the pauses in which the cluster changed."""
        answer: Any = None
        while True:
            try:
                effect = steps.send(answer)
            except StopIteration as end:
                found: T = end.value
                return found
            before = self._context.version
            answer = yield effect
            self.moves += self._context.version != before
