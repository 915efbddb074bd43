"""Promises, turn by turn: whose start has come, whose room came early, whose is lost.

Who holds a promise is tried at its start, when it does not hold any more, and when somebody ended
since it was looked at, but not more often than every REPLAN_S. What the attempt comes to decides
about the promise (`start_times.py`).

Bounds  one reservation an owner, as many as the profiles say; WAITING_MAX owners are remembered
        that got none for want of one, OWNERS_MAX how long; one entry per placed pod.
"""

from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import Final

import msgspec

from asched.core.config.args import BackfillArgs
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.queue_steps import FreedPlaces
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.state.changes import RESERVATION_MOVED, Change
from asched.core.state.cluster import Cluster
from asched.core.state.ends import Ends
from asched.core.state.gang import gang_of
from asched.core.state.pods import PodInfo
from asched.core.state.reservations import (
    CLONE,
    POD_OWNER,
    Reservation,
    Reservations,
    StartOrder,
)

WAITING_MAX: Final = 64
OWNERS_MAX: Final = 1_024
#: What may become of a promise: made, moved to the front or back; its owner began by then, or after
#: it; he went, or gave way to others who go before him.
CHANGES: Final = ("made", "earlier", "later", "kept", "late", "dropped", "displaced")
#: Why a promise was lost for a while, by what became of it.
LOST: Final = {
    "displaced": "others who are more important were promised a start in its place",
    "dropped": "no start was known for a while",
}
#: Between two looks whether a promise can be kept earlier. As often as Slurm plans.
REPLAN_S: Final = 30.0
#: Whose start was so long ago and who was not tried since cannot be: a gate holds it, say.
GIVE_UP_S: Final = 300.0


class StartTimes(msgspec.Struct):
    """What became of promises, and who waits for one. For `Cluster.singleton`."""

    args: dict[str, BackfillArgs] = msgspec.field(default_factory=dict)
    runners: object = None
    #: by owner: its order, and the key of a pod, of those that got no reservation
    waiting: dict[str, tuple[StartOrder, str]] = msgspec.field(default_factory=dict)
    numbers: int = 0
    #: owners to whom an earlier process promised a start, until they have one again (or waited)
    recalled: set[str] = msgspec.field(default_factory=set)
    has_recalled: bool = False
    #: by owner: the start that was promised first, and why that is lost
    lost: dict[str, tuple[float, str]] = msgspec.field(default_factory=dict)
    #: by owner: from when on nothing is promised to it any more
    ends_s: dict[str, float] = msgspec.field(default_factory=dict)
    #: what those who wait are to be told in the next turn: that something is not promised any more,
    #: and that pods which were only tried have left their nodes. At once would be in the midst of
    #: an attempt at the very pods, which would be tried again for it.
    has_moved: bool = False
    freed: FreedPlaces = msgspec.field(default_factory=FreedPlaces)
    #: whose start is being looked for, and whether its pods lie on nodes on trial just now: then
    #: nothing is to be concluded
    searching: str = ""
    is_trying: bool = False
    #: by `CHANGES`
    outcomes: Counter[str] = msgspec.field(default_factory=Counter)
    #: by cause, of those that were moved back
    causes: Counter[str] = msgspec.field(default_factory=Counter)
    #: nodes' log at the last turn; pods by row as they were known then
    cursor: int = -2
    known: dict[int, dict[str, PodInfo]] = msgspec.field(default_factory=dict)
    ended_early_s: float = -inf
    reservations_max: int = 0

    @classmethod
    def of(cls, _cluster: Cluster) -> "StartTimes":
        return cls()

    def until(self, owner: str, at_s: float) -> float:
        """Until when a start may be promised to an owner: `at_s` if none was looked for before."""
        until_s = self.ends_s.setdefault(owner, at_s)
        if len(self.ends_s) > OWNERS_MAX:
            del self.ends_s[next(iter(self.ends_s))]
        return until_s

    def number_of(self, owner: str, old: Reservation | None) -> int:
        """Its own, or the next one."""
        if old is not None:
            return old.order.number
        if owner in self.waiting:
            return self.waiting[owner][0].number
        self.numbers += 1
        return self.numbers


def owner_of(context: SchedulerContext, pod: Pod) -> str:
    """Who is promised a start: a gang as a whole, else the pod."""
    key = context.gangs.key_of(pod)
    if key and gang_of(context.cluster, key) is not None:
        return key
    return POD_OWNER + pod.uid


def is_due(cluster: Cluster, one: Reservation) -> bool:
    return one.start_s <= cluster.wall_clock_s


def drop(context: SchedulerContext, owner: str, outcome: str) -> None:
    """Nothing is promised to the owner any more. Who gave way, or for whom no start is known any
    more, is told so with the next promise.
    """
    cluster = context.cluster
    had = cluster.singleton(Reservations).drop(owner)
    if had is not None:
        kept = cluster.singleton(StartTimes.of)
        kept.outcomes[outcome] += 1
        kept.has_moved = True
        if cause := LOST.get(outcome, ""):
            kept.lost.pop(owner, None)
            kept.lost[owner] = had.first_s, cause
            if len(kept.lost) > WAITING_MAX:
                del kept.lost[next(iter(kept.lost))]


def started(context: SchedulerContext, pod: Pod) -> None:
    """A pod, or its gang, has its place."""
    kept, ledger = context.cluster.singleton(StartTimes.of), context.cluster.singleton(Reservations)
    if kept.ends_s or len(ledger):
        owner = owner_of(context, pod)
        kept.ends_s.pop(owner, None)
        one = ledger.of(owner)
        if one is not None:
            is_late = context.cluster.wall_clock_s > one.start_s + REPLAN_S
            drop(context, owner, "late" if is_late else "kept")


def keep(context: SchedulerContext) -> bool:
    """See to it that promises are kept, moved or given up; to be called once a turn, leading.
    Whether those of an earlier process have still to be recalled.
    """
    cluster = context.cluster
    kept, ledger = cluster.singleton(StartTimes.of), cluster.singleton(Reservations)
    if kept.runners is not context.runners:
        _learn(context, kept, ledger)
    if not ledger.is_on:
        return False
    ledger.tick()
    _tell(context, kept)
    _look_at_rows(context, kept)
    for one in ledger.all() if len(ledger) and not kept.is_trying else ():
        if one.owner == kept.searching:
            continue
        try:
            _look_at(context, kept, ledger, one)
        except MISTAKES as raised:
            context.contain(raised, "starts", one.owner)
            drop(context, one.owner, "dropped")
    if _may_go_on(kept, ledger):
        owner = min(kept.waiting, key=lambda owner: kept.waiting[owner][0])
        _activate(context, (kept.waiting.pop(owner)[1],))
    return not kept.has_recalled


def _may_go_on(kept: StartTimes, ledger: Reservations) -> bool:
    """Whether a start may be looked for for one of those who wait."""
    return bool(kept.waiting) and not kept.searching and len(ledger) < kept.reservations_max


def _tell(context: SchedulerContext, kept: StartTimes) -> None:
    for change in kept.freed.take():
        context.queue.move(change, context.now_s)
    if kept.has_moved:
        kept.has_moved = False
        context.queue.move(Change(RESERVATION_MOVED), context.now_s)


def next_s(cluster: Cluster) -> float | None:
    """When `keep` has something to do next, in seconds of turns; None if not before a fact."""
    ledger, kept = cluster.singleton(Reservations), cluster.singleton(StartTimes.of)
    if kept.has_moved or kept.freed or _may_go_on(kept, ledger):
        return 0.0
    if not len(ledger):
        return None
    now_s = cluster.wall_clock_s
    due = [one.start_s for one in ledger.all() if one.start_s > now_s]
    for one in ledger.all():
        if one.woken_s is not None:
            due.append(one.woken_s + REPLAN_S)
        elif kept.ended_early_s > one.made_s:
            due.append(one.made_s + REPLAN_S)
    due = [max(at_s, now_s) for at_s in due]
    return min(due) - cluster.wall_ahead_s if due else None


def _learn(context: SchedulerContext, kept: StartTimes, ledger: Reservations) -> None:
    """The profiles are others."""
    kept.runners = context.runners
    kept.args = context.args_by_profile(BackfillArgs)
    kept.reservations_max = max((args.reservations for args in kept.args.values()), default=0)
    ledger.is_on = bool(kept.args)
    ends = context.cluster.singleton(Ends)
    ends.believes_soft = any(args.soft_ends for args in kept.args.values())
    ends.learns = any(args.learn_durations for args in kept.args.values())
    for one in ledger.all():
        if one.scheduler_name not in kept.args:
            drop(context, one.owner, "dropped")


def _look_at_rows(context: SchedulerContext, kept: StartTimes) -> None:
    """Who went since the last turn: what he took is learnt, and his room may be of use now."""
    cluster = context.cluster
    log, ends, now_s = cluster.nodes.log, cluster.singleton(Ends), cluster.wall_clock_s
    if log.end == kept.cursor:
        return
    rows = log.rows(kept.cursor, -1)
    kept.cursor = log.end
    every = range(cluster.nodes.height) if rows is None else rows
    for row in every:
        before = kept.known.get(row, {})
        now = cluster.pods_on(row) if row < cluster.nodes.height else {}
        for uid, info in before.items():
            if uid not in cluster.placed and not uid.endswith(CLONE):
                ends.ended(info, now_s)
                kept.ended_early_s = now_s
        if now:
            kept.known[row] = dict(now)
        else:
            kept.known.pop(row, None)


def _look_at(
    context: SchedulerContext, kept: StartTimes, ledger: Reservations, one: Reservation
) -> None:
    cluster = context.cluster
    pods = _waiting_pods(context, one)
    if not pods:
        kept.ends_s.pop(one.owner, None)
        drop(context, one.owner, "dropped")
        return
    now_s = cluster.wall_clock_s
    if one.start_s + GIVE_UP_S < now_s:
        drop(context, one.owner, "dropped")
        return
    if one.woken_s is not None and now_s < one.woken_s + REPLAN_S:
        return
    one.woken_s = None
    has_room_come = kept.ended_early_s > one.made_s and now_s >= one.made_s + REPLAN_S
    if has_room_come or is_due(cluster, one) or ledger.is_broken(one):
        one.woken_s = now_s
        _activate(context, pods[:1])


def _waiting_pods(context: SchedulerContext, one: Reservation) -> list[str]:
    """Keys of those who hold a reservation and wait."""
    cluster = context.cluster
    if one.owner.startswith(POD_OWNER):
        pod = one.likes[0].pod
        now = cluster.pods_seen.get(pod.key)
        waits = now is not None and now.uid == pod.uid and not now.spec.node_name
        return [pod.key] if waits and pod.uid not in cluster.placed else []
    if gang_of(cluster, one.owner) is None:
        return []
    return [pod.key for pod in cluster.pod_groups.get(one.owner).unplaced.values()]


def _activate(context: SchedulerContext, keys: Sequence[str]) -> None:
    seen = context.cluster.pods_seen
    pods = [pod for pod in map(seen.get, keys) if pod is not None]
    context.queue.activate(pods, context.now_s)
