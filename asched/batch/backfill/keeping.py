"""Maintain promised starts, turn by turn: try the owners that are due, and drop lost promises.

The owner of a promise is tried at its start, when the promise cannot be kept any more, and when a
pod has ended since the last attempt, but at most every REPLAN_S. The attempt's result decides about
the promise (`times.py`).

Bounds  one reservation an owner, as many as the profiles allow; WAITING_MAX owners that wait for a
        reservation, OWNERS_MAX end times; reservation entry per placed pod.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

import msgspec

from asched.batch.backfill.ends import Ends
from asched.batch.backfill.reservations import (
    CLONE,
    POD_OWNER,
    Reservation,
    Reservations,
    StartOrder,
)
from asched.core.cluster.changes import RESERVATION_MOVED, Change
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.gang import gang_of
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import BackfillArgs
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.intake import FreedPlaces
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod

WAITING_MAX: Final = 64
OWNERS_MAX: Final = 1_024
#: The outcomes of a promise: made, moved to an earlier or later time, its owner started in time or
#: late, dropped, or displaced by a promise to a more important owner.
CHANGES: Final = ("made", "earlier", "later", "kept", "late", "dropped", "displaced")
#: By outcome: why a promise was lost for a time.
LOST: Final = {
    "displaced": "others who are more important were promised a start in its place",
    "dropped": "no start was known for a while",
}
#: Between two searches for an earlier start. Slurm's backfill interval is as long.
REPLAN_S: Final = 30.0
#: A promise is dropped this long after its start if its owner could not be tried, as behind a gate.
GIVE_UP_S: Final = 300.0


class StartTimes(msgspec.Struct):
    """Outcomes of promises, and the owners that wait for one. Made by `Cluster.singleton`."""

    args: Mapping[str, BackfillArgs] = msgspec.field(default_factory=dict)
    runners: object = None
    #: owners that wait for a reservation: order, and the key of a pod
    waiting: dict[str, tuple[StartOrder, str]] = msgspec.field(default_factory=dict)
    numbers: int = 0
    #: owners that an earlier process promised a start, until they have one again (or waited)
    recalled: set[str] = msgspec.field(default_factory=set)
    has_recalled: bool = False
    #: by owner: the start that was promised first, and why it is lost
    lost: dict[str, tuple[float, str]] = msgspec.field(default_factory=dict)
    #: by owner: the time after which no start is promised any more
    ends_s: dict[str, float] = msgspec.field(default_factory=dict)
    #: what waiting pods are notified of in the next turn: that a promise was dropped or moved, and
    #: that places of a trial are free. A notification at once would arrive during an attempt at the
    #: same pods, and cause another attempt.
    has_moved: bool = False
    freed: FreedPlaces = msgspec.field(default_factory=FreedPlaces)
    #: the owner of the running search, and whether its pods are on nodes for a trial now, so that
    #: no conclusions can be drawn
    searching: str = ""
    is_trying: bool = False
    #: by `CHANGES`
    outcomes: Counter[str] = msgspec.field(default_factory=Counter)
    #: promises that were moved to a later time, by cause
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
        """The latest start that may be promised to an owner; `at_s` at the first search for it."""
        until_s = self.ends_s.setdefault(owner, at_s)
        if len(self.ends_s) > OWNERS_MAX:
            del self.ends_s[next(iter(self.ends_s))]
        return until_s

    def number_of(self, owner: str, old: Reservation | None) -> int:
        """The serial number of an owner; a new one if it has none."""
        if old is not None:
            return old.order.number
        if owner in self.waiting:
            return self.waiting[owner][0].number
        self.numbers += 1
        return self.numbers


def owner_of(context: SchedulerContext, pod: Pod) -> str:
    """The owner of a promise for the pod: its gang, else the pod itself."""
    key = context.gangs.key_of(pod)
    if key and gang_of(context.cluster, key) is not None:
        return key
    return POD_OWNER + pod.uid


def is_due(cluster: Cluster, reservation: Reservation) -> bool:
    return reservation.start_s <= cluster.wall_clock_s


def drop(context: SchedulerContext, owner: str, outcome: str) -> None:
    """Drop the promise to an owner. The owner's next promise names the cause if it was displaced,
    or if no start was found any more.
    """
    cluster = context.cluster
    dropped = cluster.singleton(Reservations).drop(owner)
    if dropped is not None:
        kept = cluster.singleton(StartTimes.of)
        kept.outcomes[outcome] += 1
        kept.has_moved = True
        if cause := LOST.get(outcome, ""):
            kept.lost.pop(owner, None)
            kept.lost[owner] = dropped.first_s, cause
            if len(kept.lost) > WAITING_MAX:
                del kept.lost[next(iter(kept.lost))]


def started(context: SchedulerContext, pod: Pod) -> None:
    """End the promise to a pod, or its gang, that has its place."""
    kept, ledger = context.cluster.singleton(StartTimes.of), context.cluster.singleton(Reservations)
    if kept.ends_s or len(ledger):
        owner = owner_of(context, pod)
        kept.ends_s.pop(owner, None)
        reservation = ledger.of(owner)
        if reservation is not None:
            is_late = context.cluster.wall_clock_s > reservation.start_s + REPLAN_S
            drop(context, owner, "late" if is_late else "kept")


def keep(context: SchedulerContext) -> bool:
    """Try owners whose promises are due or broken, and drop promises; to be called once a turn by
    the leader. Returns whether the promises of an earlier process have still to be recalled.
    """
    cluster = context.cluster
    kept, ledger = cluster.singleton(StartTimes.of), cluster.singleton(Reservations)
    if kept.runners is not context.runners:
        _learn(context, kept, ledger)
    if not ledger.is_on:
        return False
    ledger.tick()
    _notify(context, kept)
    _learn_ends(context, kept)
    for reservation in ledger.all() if len(ledger) and not kept.is_trying else ():
        if reservation.owner == kept.searching:
            continue
        try:
            _check(context, kept, ledger, reservation)
        except MISTAKES as raised:
            context.contain(raised, "starts", reservation.owner)
            drop(context, reservation.owner, "dropped")
    if _may_go_on(kept, ledger):
        owner = min(kept.waiting, key=lambda owner: kept.waiting[owner][0])
        _activate(context, (kept.waiting.pop(owner)[1],))
    return not kept.has_recalled


def _may_go_on(kept: StartTimes, ledger: Reservations) -> bool:
    """Whether an owner that waits may be tried."""
    return bool(kept.waiting) and not kept.searching and len(ledger) < kept.reservations_max


def _notify(context: SchedulerContext, kept: StartTimes) -> None:
    for change in kept.freed.take():
        context.queue.move(change, context.now_s)
    if kept.has_moved:
        kept.has_moved = False
        context.queue.move(Change(RESERVATION_MOVED), context.now_s)


def next_s(cluster: Cluster) -> float | None:
    """When `keep` has work next, in seconds of turns; None if a fact has to come first."""
    ledger, kept = cluster.singleton(Reservations), cluster.singleton(StartTimes.of)
    if kept.has_moved or kept.freed or _may_go_on(kept, ledger):
        return 0.0
    if not len(ledger):
        return None
    now_s = cluster.wall_clock_s
    due = [reservation.start_s for reservation in ledger.all() if reservation.start_s > now_s]
    for reservation in ledger.all():
        if reservation.woken_s is not None:
            due.append(reservation.woken_s + REPLAN_S)
        elif kept.ended_early_s > reservation.made_s:
            due.append(reservation.made_s + REPLAN_S)
    due = [max(at_s, now_s) for at_s in due]
    return min(due) - cluster.wall_ahead_s if due else None


def _learn(context: SchedulerContext, kept: StartTimes, ledger: Reservations) -> None:
    """Read the arguments of new profiles."""
    kept.runners = context.runners
    kept.args = context.args_by_profile(BackfillArgs)
    kept.reservations_max = max((args.reservations for args in kept.args.values()), default=0)
    ledger.is_on = bool(kept.args)
    ends = context.cluster.singleton(Ends)
    ends.believes_soft = any(args.soft_ends for args in kept.args.values())
    ends.learns = any(args.learn_durations for args in kept.args.values())
    for reservation in ledger.all():
        if reservation.scheduler_name not in kept.args:
            drop(context, reservation.owner, "dropped")


def _learn_ends(context: SchedulerContext, kept: StartTimes) -> None:
    """Record the durations of pods that left since the last turn, and that room became free."""
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


def _check(
    context: SchedulerContext, kept: StartTimes, ledger: Reservations, reservation: Reservation
) -> None:
    cluster = context.cluster
    pods = _waiting_pods(context, reservation)
    if not pods:
        kept.ends_s.pop(reservation.owner, None)
        drop(context, reservation.owner, "dropped")
        return
    now_s = cluster.wall_clock_s
    if reservation.start_s + GIVE_UP_S < now_s:
        drop(context, reservation.owner, "dropped")
        return
    if reservation.woken_s is not None and now_s < reservation.woken_s + REPLAN_S:
        return
    reservation.woken_s = None
    has_room_come = (
        kept.ended_early_s > reservation.made_s and now_s >= reservation.made_s + REPLAN_S
    )
    if has_room_come or is_due(cluster, reservation) or ledger.is_broken(reservation):
        reservation.woken_s = now_s
        _activate(context, pods[:1])


def _waiting_pods(context: SchedulerContext, reservation: Reservation) -> list[str]:
    """The keys of the waiting pods of a reservation."""
    cluster = context.cluster
    if reservation.owner.startswith(POD_OWNER):
        pod = reservation.likes[0].pod
        now = cluster.pods_seen.get(pod.key)
        waits = now is not None and now.uid == pod.uid and not now.spec.node_name
        return [pod.key] if waits and pod.uid not in cluster.placed else []
    if gang_of(cluster, reservation.owner) is None:
        return []
    return [pod.key for pod in cluster.pod_groups.get(reservation.owner).unplaced.values()]


def _activate(context: SchedulerContext, keys: Sequence[str]) -> None:
    seen = context.cluster.pods_seen
    pods = [pod for pod in map(seen.get, keys) if pod is not None]
    context.queue.activate(pods, context.now_s)
