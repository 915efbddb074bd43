"""Room for a group as a whole: the group is tried as if others were gone, as often as it takes.

    no place ─> the plugin proposes who goes ─> the group is tried without them ─> ... ─> evictions
                                                                                    └─> or why not

A trial supposes its victims gone as a fact, so that every rule, Reserve and Permit judge the group
as they will once that is true. Whenever it pauses, or asks an extender, everybody is back before
others have their turn, and gone again after it.

Unlike upstream, every pod that had a place in the last trial is nominated to it: what is given up
for the group is not given to somebody else while it backs off (docs/parity.md).

Bounds  after room was sought in vain, REST_FACTOR times as long as that took nobody seeks it again,
        if that is REST_S_MIN at least; VAIN_MAX groups are remembered.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go
        (runWorkloadAwarePreemption)
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final, TypeVar

from asched.batch.groups.attempt import GroupAttempt, GroupOutcome, Result
from asched.batch.groups.placements import try_placements
from asched.batch.groups.trial import TELL_STEPS, TRY_STEPS, let_go, pause_if_due, try_group
from asched.batch.groups.without_pods import MOVE_STEPS, without
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.history import DecisionStep
from asched.core.cycle.scheduling import Background, failure_of
from asched.core.framework.effects import Effect, Pause, WaitFor
from asched.core.framework.group_post_filter import EqualMembers, Probe, RoomMade, group_post_filter
from asched.core.framework.order_free import takes_of
from asched.core.framework.placements import Mask, Placement
from asched.core.framework.results.nominated_filter import ignores_pods
from asched.core.framework.status import MISTAKES, SKIP, Code, Status, failure, unschedulable
from asched.core.model.kinds import POD_GROUP
from asched.core.model.pod import Pod
from asched.core.model.workload import PodGroup
from asched.core.preemption.pods_by_priority import PodsByPriority
from asched.core.preemption.under_way import standing
from asched.core.state.budget import STEP_US, OutOfTurn
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Answer
from asched.core.state.pods import PodInfo

T = TypeVar("T")

NO_PLUGIN: Final = (
    "default preemption plugin is not registered, workload aware preemption is disabled"
)
CONSTRAINED: Final = (
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)
#: How long a group is patient with its victims before it is tried all the same. A guess.
VICTIMS_LEAVE_S: Final = 600.0
REST_FACTOR: Final = 20
REST_S_MIN: Final = 1.0
VAIN_MAX: Final = 1_024
#: Steps of the budget to name a victim.
VICTIM_STEPS: Final = 0.1
#: Named between two looks at it.
VICTIMS_AT_ONCE: Final = 500


def make_room_for_group(
    context: SchedulerContext, group: GroupAttempt, outcome: GroupOutcome
) -> Generator[Effect, Answer, None]:
    """After a trial that found no place: write into its outcome what came of making room."""
    is_asked = context.gangs.makes_room and not group.is_coscheduled
    if not is_asked or outcome.result is not Result.UNSCHEDULABLE:
        return
    yield from let_go(context, group, outcome)
    plugin = group_post_filter(group.runner.profile.plugins)
    known: PodGroup | None = context.cluster.get(POD_GROUP, group.key)
    if plugin is None:
        outcome.message += f", {NO_PLUGIN}"
        return
    if known is None:
        name = group.key.rpartition("/")[2]
        outcome.result = Result.ERROR
        outcome.message = (
            f'failed to get pod group object: podgroup.scheduling.k8s.io "{name}" not found'
        )
        return
    if known.topology_key:
        outcome.message += f", {CONSTRAINED}"
        return
    vain = context.cluster.singleton(Vain)
    words = vain.words(known, context.now_s)
    if words:
        outcome.message, outcome.asks_again = f"{outcome.message}, {words}", True
        return
    yield from _lined_up(context)
    trial = GroupSupposition(context, group, known, outcome.message)
    try:
        room = yield from plugin.group_post_filter(trial)
    except MISTAKES as raised:
        room = RoomMade(failure(failure_of(context, raised, group.key).message))
    if not room.status.is_success:
        vain.note(known, room.status.message, context.now_s, trial.spent)
    if room.status.code is Code.ERROR:
        outcome.result, outcome.message = Result.ERROR, room.status.message
    elif not room.status.is_success:
        outcome.message += f", {room.status.message}"
    else:
        outcome.result, outcome.room = Result.WAITING_ON_PREEMPTION, room
        yield from _note(context, group, room)


def _lined_up(context: SchedulerContext) -> Generator[Effect, Answer, None]:
    """All nodes' pods are in the order in which they would go, in as many turns as that takes."""
    while True:
        try:
            context.cluster.singleton(PodsByPriority).catch_up()
        except OutOfTurn:
            yield Pause()
        else:
            return


class Vain:
    """Groups for which room was sought at length and in vain: for a while, they are told so again.
    For `Cluster.singleton`.
    """

    def __init__(self, _cluster: Cluster) -> None:
        self._until: dict[str, tuple[str, float, str]] = {}  # uid, when that ends, words; by key

    def words(self, group: PodGroup, now_s: float) -> str:
        """What it was told; empty if it is to be tried."""
        uid, until_s, words = self._until.get(group.metadata.key, ("", 0.0, ""))
        return words if uid == group.metadata.uid and now_s < until_s else ""

    def note(self, group: PodGroup, words: str, now_s: float, steps: float) -> None:
        key, pause_s = group.metadata.key, steps * STEP_US * 1e-6 * REST_FACTOR
        self._until.pop(key, None)
        if pause_s >= REST_S_MIN:
            self._until[key] = group.metadata.uid, now_s + pause_s, words
            if len(self._until) > VAIN_MAX:
                self._until.pop(next(iter(self._until)))


class Evictions(Background):
    """The evictions for a group. They end when all victims have gone: then its pods are tried at
    once. Whoever rejected them may not have heard of those who left while they were held back, nor
    care for the last one.
    """

    victims: tuple[str, ...] = ()

    def run(self) -> Generator[Effect, Answer, tuple[Status, Pod]]:
        cluster, left = self.context.cluster, list[Pod]()
        for start in range(0, len(self.victims), VICTIMS_AT_ONCE):
            some = self.victims[start : start + VICTIMS_AT_ONCE]
            yield from pause_if_due(self.context, VICTIM_STEPS * len(some), is_alone=True)
            seen = map(cluster.pods_seen.get, some)
            left += [victim for victim in seen if victim is not None]

        def have_gone() -> bool:
            while left and standing(left[-1], cluster) is None:
                left.pop()
            return not left

        status, pod = yield from Background.run(self)
        if status.is_success:
            yield WaitFor(ready=have_gone, timeout_s=VICTIMS_LEAVE_S)
            status = SKIP
        return status, pod


def _note(
    context: SchedulerContext, group: GroupAttempt, room: RoomMade
) -> Generator[Effect, Answer, None]:
    if room.victims:
        context.observer.preempting(len(room.victims))
    seen = context.cluster.pods_seen
    found: list[tuple[str, int]] = []
    for start in range(0, len(room.victims), VICTIMS_AT_ONCE):
        some = room.victims[start : start + VICTIMS_AT_ONCE]
        yield from pause_if_due(context, VICTIM_STEPS * len(some), is_alone=True)
        found += [(key, seen[key].priority) for key in some if key in seen]
    victims = tuple(found)
    for attempt in group.attempts:
        yield from pause_if_due(context, TELL_STEPS, is_alone=True)
        node = room.places.get(attempt.pod.uid)
        if node is not None:
            context.tell(attempt, DecisionStep.NOMINATED, (node, victims))


class GroupSupposition:
    """The trial of a group while others are supposed gone (`GroupTrial`)."""

    def __init__(
        self, context: SchedulerContext, group: GroupAttempt, known: PodGroup, refusal: str
    ) -> None:
        self._context = context
        self._attempt = group
        profile = group.runner.profile
        self.scheduler_name = profile.scheduler_name
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
        self.needed = max(needed - placed, 1)

    def alike(self) -> list[EqualMembers]:
        classes: dict[tuple[int, int], list[PodInfo]] = {}
        for info in self.pods:
            classes.setdefault((info.cls.number, info.pod.priority), []).append(info)
        return [self._alike(infos) for infos in classes.values()]

    def _alike(self, infos: Sequence[PodInfo]) -> EqualMembers:
        example, runner = infos[0], self._attempt.runner
        uids = tuple([info.pod.uid for info in infos])
        rows: Mask = Placement().mask(self.cluster.nodes)
        filters = runner.cache.state_of(example).active_plugins.filters
        takes = takes_of([f.plugin for f in filters], example)
        try:
            fitting = runner.fitting(example)
        except MISTAKES:  # the trial says what is wrong; until then any row may do
            return EqualMembers(uids, takes, rows)
        if fitting.rejection is None:
            for verdict in fitting.state.active:
                if ignores_pods(verdict.plugin):
                    rows &= verdict.codes == 0
        return EqualMembers(uids, takes, rows)

    def charge(self, steps: float, *, is_alone: bool = False) -> Generator[Effect, Answer, None]:
        self.spent += steps
        yield from self._watched(pause_if_due(self._context, steps, is_alone=is_alone))

    def fits_without(
        self, gone: Sequence[PodInfo], hints: Mapping[str, str]
    ) -> Generator[Effect, Answer, Probe]:
        context, group = self._context, self._attempt
        group.nominated = {**self._nominated, **hints}
        trial = (
            try_placements(context, group, only_whether=True)
            if context.gangs.tries_placements
            else try_group(context, group, plan={}, only_whether=True)
        )
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
        told = failure if outcome.result is Result.ERROR else unschedulable
        return Probe(told(outcome.message), steps=steps)

    def _watched(self, steps: Generator[Effect, Answer, T]) -> Generator[Effect, Answer, T]:
        """Run steps, and note whether anything happened meanwhile."""
        answer: Any = None
        while True:
            try:
                effect = steps.send(answer)
            except StopIteration as end:
                found: T = end.value
                return found
            before = self._version()
            answer = yield effect
            self.moves += self._version() != before

    def _version(self) -> tuple[int, int, int, int]:
        nodes = self.cluster.nodes
        generations = nodes.generation, self.cluster.epoch, self.nominator.generation
        return nodes.log.end, *generations
