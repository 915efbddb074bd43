"""The attempt at a pod group: its pods, and its outcome.

    popped pod ─gather─> GroupAttempt ─trial.py─> GroupOutcome ─cycle.py─> bindings, or back

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final

import msgspec

from asched.core.cluster.gang import count_missing
from asched.core.cluster.group_trees import GroupTree
from asched.core.cluster.pod_groups import is_coscheduled
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.freed_places import FreedPlaces
from asched.core.cycle.hypothetical_gang import HypotheticalGang
from asched.core.cycle.unit import KEPT, Attempts, Failure, Tried, error, unschedulable
from asched.core.framework.group_post_filter import RoomMade
from asched.core.framework.status import MISTAKES
from asched.core.model.lru import Lru
from asched.core.queue.queued import QueuedPod

UNSCHEDULABLE: Final = "pod group is unschedulable"
WAITING_ON_PREEMPTION: Final = f"{UNSCHEDULABLE}, pod group is waiting for preemption to complete"
#: Budget steps to pop a pod of a group, and the number of pods that are charged at once.
MEMBER_STEPS, MEMBERS_AT_ONCE = 1.0, 64
#: Upstream's addition to the message of a plugin that lets a pod wait at Permit.
PERMIT_WAITS: Final = "one or more plugins asked to wait and no plugin rejected pod"


class GroupAttempt(Attempts):
    """All waiting pods of a group, in the order in which they are tried. `nominated`: uid to the
    node that had been promised to a pod before.
    """

    nominated: dict[str, str] = msgspec.field(default_factory=dict)
    #: of a group with a parent; then the pods are those of all leaves
    tree: GroupTree | None = None
    #: whether a PodGroup of scheduling.x-k8s.io makes it
    is_coscheduled: bool = False
    #: whether other pods were tried meanwhile, which saw its places as taken
    was_seen: bool = False
    #: such places that were given back
    freed: FreedPlaces = msgspec.field(default_factory=FreedPlaces)
    #: the newest trial, which is undone if an exception ends the attempt
    outcome: "GroupOutcome | None" = None

    def __post_init__(self) -> None:
        self.is_coscheduled = is_coscheduled(self.key)

    @property
    def hypothetical_gang(self) -> HypotheticalGang | None:
        """The gang of hypothetical pods; None for real pods."""
        return self.attempts[0].hypothetical_gang

    @property
    def disagreement(self) -> str:
        """The error of pods with different scheduler names; empty if they agree."""
        first = self.attempts[0]
        for attempt in self.attempts:
            if attempt.runner is not first.runner and attempt.profile != first.profile:
                return (
                    "all pods in a single pod group should have the same .spec.schedulerName set,"
                    f' got: "{first.profile}" and "{attempt.profile}"'
                )
        return ""


def gather(
    context: SchedulerContext, group: GroupAttempt, begin: Callable[[QueuedPod], Attempt | None]
) -> None:
    """Pop the other waiting pods of the popped pod's group. Of a large group the queue's next
    slices pop the rest, before other facts or attempts.

    The order: priority, then the time of the first attempt, then age and name. Left out are gated
    pods, pods of other schedulers, and, once the group has its minimum, pods of another priority
    than the popped pod, which are tried by their own priority.
    """
    group.tree, group.is_gathering = context.cluster.pod_groups.tree_of(group.key), True
    steps = _gathering(context, group, begin)
    for _ in steps:  # the first part suffices for most groups
        context.queue.sliced_work.do(steps)
        break


def _gathering(
    context: SchedulerContext,
    group: GroupAttempt,
    begin: Callable[[QueuedPod], Attempt | None],
) -> Iterator[None]:
    attempts, queue, popped = group.attempts, context.queue, group.popped
    groups = context.cluster.pod_groups
    leaves = groups.leaves_of(group.key)
    members = tuple([member for key in leaves for member in groups.get(key).unplaced.items()])
    try:
        if group.tree is None and count_missing(context.cluster, group.key) <= 0:
            priority = popped.pod.priority
            members = tuple([(uid, pod) for uid, pod in members if pod.priority == priority])
        for number, (uid, pod) in enumerate(members, 1):
            if uid != popped.pod.uid:
                queued = queue.pop_member(pod, popped.queued, context.now_s)
                attempt = begin(queued) if queued is not None else None
                if attempt is not None:
                    attempts.append(attempt)
            if not number % MEMBERS_AT_ONCE:
                queue.sliced_work.budget.note(MEMBER_STEPS * MEMBERS_AT_ONCE)
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


def unschedulable_with(tried: Tried) -> Failure:
    """The failure of a pod that has a place, or would have one, while its group does not."""
    reasons = list(tried.permit.reasons) if tried.permit is not None else []
    if reasons:
        reasons.append(PERMIT_WAITS)
    return unschedulable(", ".join((UNSCHEDULABLE, *(reasons or ("",)))))


class Result(Enum):
    """How an attempt at a group ends; the values are labels of metrics."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    WAITING_ON_PREEMPTION = "waiting_on_preemption"
    ERROR = "error"


class GroupOutcome(msgspec.Struct):
    """The result of the trial of a group. After an error, `tried` may have fewer pods.

    `message`: for pods that failed because of the group. `proof`: the result of the search for
    places. `room`: the room made for the group as a whole; `asks_again`: preemption for the group
    was skipped this time.
    """

    result: Result
    message: str
    tried: list[Tried] = msgspec.field(default_factory=list)
    #: whether a pod has a place only once victims are gone
    waits_for_victims: bool = False
    #: why pods with places may not start, other than missing pods
    refusal: Failure | None = None
    proof: str = ""
    room: RoomMade | None = None
    asks_again: bool = False
    #: what the condition has in place of UNSCHEDULABLE, if anything
    minimum: str = ""
    #: of a tree: the groups that found no places, by key, with the reason
    infeasible: dict[str, str] = msgspec.field(default_factory=dict)
    #: its promised start, in the text of `batch/backfill/starts.py`
    start: str = ""

    @property
    def condition_message(self) -> str:
        """The message of the PodGroup's condition."""
        has_proof = self.proof and self.result is Result.UNSCHEDULABLE
        text = self.message.replace(UNSCHEDULABLE, self.minimum or UNSCHEDULABLE, 1)
        return (f"{text}: {self.proof}" if has_proof else text) + self.start

    @property
    def failure(self) -> Failure:
        """The group's failure, for pods without one."""
        if self.result is Result.ERROR:
            return error(self.message)
        return unschedulable(self.message, KEPT)


PAUSED_MAX: Final = 4_096


class GroupPauses:
    """By key of a group: uid, end, text."""

    def __init__(self, *_: object) -> None:
        self._until: Lru[str, tuple[str, float, str]] = Lru(PAUSED_MAX)

    def text(self, key: str, uid: str, now_s: float) -> str | None:
        """The text of a pause; None without one."""
        paused, until_s, text = self._until.get(key) or ("", 0.0, "")
        return text if paused == uid and now_s < until_s else None

    def note(self, key: str, uid: str, until_s: float, text: str = "") -> None:
        self._until.put(key, (uid, until_s, text))
