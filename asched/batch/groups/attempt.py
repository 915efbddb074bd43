"""A pod group on its way through one attempt: who takes part, and what it came to.

    popped pod ─gather─> GroupAttempt ─group_trial─> Outcome ─group_cycle─> bindings, or back

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final

import msgspec

from asched.core.cycle.company import HypotheticalGang
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.cycle.failure import KEPT, Failure, error, unschedulable
from asched.core.cycle.history import StoredLine
from asched.core.cycle.queue_steps import FreedPlaces
from asched.core.framework.group_post_filter import RoomMade
from asched.core.framework.points import PostFilterResult
from asched.core.framework.runner import Decision, Runner
from asched.core.framework.status import MISTAKES, Status
from asched.core.framework.waiting import WaitingPod
from asched.core.model.pod import Pod
from asched.core.queue.queued import QueuedPod
from asched.core.state.gang import count_missing
from asched.core.state.pod_groups import is_coscheduled

UNSCHEDULABLE: Final = "pod group is unschedulable"
WAITING_ON_PREEMPTION: Final = f"{UNSCHEDULABLE}, pod group is waiting for preemption to complete"
#: Steps of the budget to take one of a group from the queue, and of how many it is told at once.
MATE_STEPS, MATES_AT_ONCE = 1.0, 64
#: What upstream adds to the words of a plugin that lets a pod wait at Permit.
ASKED_TO_WAIT: Final = "one or more plugins asked to wait and no plugin rejected pod"


class GroupAttempt(msgspec.Struct):
    """One try at all waiting pods of a group, in the order in which they are tried.

    `key` is "namespace/name". `id`, `pod` and `started_s` are those of the pod that was popped.
    `nominated`: uid to the node that had been promised to a pod before.
    """

    key: str
    attempts: list[Attempt]
    id: int
    pod: Pod
    started_s: float  # of the duration counter
    nominated: dict[str, str] = msgspec.field(default_factory=dict)
    #: whether a PodGroup of scheduling.x-k8s.io makes it
    is_coscheduled: bool = False
    #: whether others had their turn meanwhile, to whom its places were taken
    was_seen: bool = False
    #: of the latter those that were given back
    freed: FreedPlaces = msgspec.field(default_factory=FreedPlaces)
    #: whether some that wait have still to be taken from the queue
    is_gathering: bool = False
    #: the newest trial; what it began is taken back if an exception ends the attempt
    outcome: "GroupOutcome | None" = None

    def __post_init__(self) -> None:
        self.is_coscheduled = is_coscheduled(self.key)

    @property
    def runner(self) -> Runner:
        """That of all of them, once `disagreement` found nothing."""
        return self.attempts[0].runner

    @property
    def company(self) -> HypotheticalGang | None:
        """That of pods which are only supposed."""
        return self.attempts[0].company

    @property
    def consults(self) -> bool:
        """Whether extenders have a say in any pod's place."""
        return bool([one for one in self.attempts if one.consults])

    @property
    def takes_long(self) -> bool:
        """Whether an attempt at a pod of it does."""
        return bool([one for one in self.attempts if one.info.cls.takes_long])

    @property
    def disagreement(self) -> str:
        """What is wrong with pods that name different schedulers; empty if they do not."""
        first = self.attempts[0]
        for attempt in self.attempts:
            if attempt.runner is not first.runner and attempt.profile != first.profile:
                return (
                    "all pods in a single pod group should have the same .spec.schedulerName set,"
                    f' got: "{first.profile}" and "{attempt.profile}"'
                )
        return ""


def gather(
    context: SchedulerContext, popped: Attempt, begin: Callable[[QueuedPod], Attempt | None]
) -> GroupAttempt:
    """Take the pods of the popped pod's group from the queue that wait there. Of thousands, the
    queue's next slices take the rest, before anything is taken in or decided.

    The order: priority, then the time of the first attempt, then age and name. Left out are pods
    behind a gate, pods of other schedulers, and, once the group has its minimum, pods of another
    priority than the popped one: their turn comes by their own.
    """
    group = GroupAttempt(popped.queued.gang, [popped], popped.id, popped.pod, popped.started_s)
    group.is_gathering = True
    steps = _gathering(context, group, popped, begin)
    for _ in steps:  # the first part is all of most
        context.queue.sliced.do(steps)
        break
    return group


def _gathering(
    context: SchedulerContext,
    group: GroupAttempt,
    popped: Attempt,
    begin: Callable[[QueuedPod], Attempt | None],
) -> Iterator[None]:
    attempts, queue, own_uid = group.attempts, context.queue, popped.pod.uid
    mates = tuple(context.cluster.pod_groups.get(group.key).unplaced.items())
    try:
        if count_missing(context.cluster, group.key) <= 0:
            mates = tuple([(uid, pod) for uid, pod in mates if pod.priority == popped.pod.priority])
        for number, (uid, pod) in enumerate(mates, 1):
            if uid != own_uid:
                queued = queue.pop_mate(pod, popped.queued, context.now_s)
                attempt = begin(queued) if queued is not None else None
                if attempt is not None:
                    attempts.append(attempt)
            if not number % MATES_AT_ONCE:
                queue.sliced.budget.note(MATE_STEPS * MATES_AT_ONCE)
                yield
        if len(attempts) > 1:
            attempts.sort(key=_order)
    except MISTAKES as raised:  # the group is tried with the pods that were found
        context.contain(raised, "groups", group.key)
    group.is_gathering = False


def _order(attempt: Attempt) -> tuple[int, float, str, str]:
    pod, first_s = attempt.info.pod, attempt.queued.initial_attempt_s or 0.0
    metadata = pod.metadata
    return -(pod.spec.priority or 0), first_s, metadata.creation_timestamp or "", metadata.name


class Tried(msgspec.Struct):
    """What the trial of one pod came to.

    A pod has a place (`decision`), or a `failure`, or both: then the place is free once the
    background of `room` has evicted those in the way. `room`: what PostFilter plugins said.
    """

    attempt: Attempt
    duration_s: float = 0.0
    decision: Decision | None = None
    #: what is kept of the decision, as it was then
    line: StoredLine | None = None
    failure: Failure | None = None
    permit: Status | None = None
    #: while the place is counted and promised
    waiting: WaitingPod | None = None
    room: PostFilterResult | None = None

    @property
    def fits(self) -> bool:
        return self.failure is None

    @property
    def needs_room(self) -> bool:
        return self.failure is not None and self.decision is not None

    def unschedulable(self) -> Failure:
        """What a pod is told that has a place, or would have one, while its group has not."""
        said = list(self.permit.reasons) if self.permit is not None else []
        if said:
            said.append(ASKED_TO_WAIT)
        return unschedulable(", ".join((UNSCHEDULABLE, *(said or ("",)))))


class Result(Enum):
    """How an attempt at a group ends; the values are the metrics' words."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    WAITING_ON_PREEMPTION = "waiting_on_preemption"
    ERROR = "error"


class GroupOutcome(msgspec.Struct):
    """What the trial of a group came to. After an error, `tried` may hold fewer pods.

    `message` is what the pods hear if it is the group's fault. `proof`: what the search for places
    came to. `room`: what was made for the group as a whole; `asks_again`: nobody was
    asked for it just now.
    """

    result: Result
    message: str
    tried: list[Tried] = msgspec.field(default_factory=list)
    #: some pod has a place only once others have gone
    needs_room: bool = False
    #: what keeps pods that have places from starting, where that is not for want of others
    refusal: Failure | None = None
    proof: str = ""
    room: RoomMade | None = None
    asks_again: bool = False
    #: when it can start, in the words of `start_times.py`
    start: str = ""

    @property
    def told(self) -> str:
        """What the PodGroup's condition says."""
        has_proof = self.proof and self.result is Result.UNSCHEDULABLE
        return (f"{self.message}: {self.proof}" if has_proof else self.message) + self.start

    @property
    def failure(self) -> Failure:
        """The group's own, for pods that have none."""
        if self.result is Result.ERROR:
            return error(self.message)
        return unschedulable(self.message, KEPT)
