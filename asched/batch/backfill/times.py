"""Promise starts to units that fit on no node now, and reserve their future room.

    no place now ─> the earliest start by known ends (`search.py`)
                 ─> promised: a reservation, which the plugin Backfill makes other pods respect
                 ─> maintained, turn by turn (`keeping.py`)

A promise lasts until its owner starts or is deleted. Meanwhile an earlier start is searched for, in
case pods ended early; all other promises are respected then, so that it can only move to an earlier
time. A promise that cannot be kept any more is made anew beside the promises that take precedence;
the cause of the move (`causes.py`) is written to its pods and counted.

A promise has the lowest priority of its pods; pods of higher priority do not respect it. No
promised start is later than horizonSeconds after the first search for its owner, so that a promise
which is moved again and again ends. All promises to one namespace reserve no more than its share
(`share.py`), and count as usage of its ElasticQuota while another start is searched for.

Bounds  one search at a time, which knows an end of every pod and pauses; other owners wait, as for
        a reservation. AWAITED_MAX pods whose ends a promise depends on are stored.
"""

from collections.abc import Generator, Sequence
from itertools import islice
from math import inf
from typing import Final

from asched.batch.backfill.causes import why_moved
from asched.batch.backfill.keeping import REPLAN_S, WAITING_MAX, StartTimes, drop, is_due, owner_of
from asched.batch.backfill.recall import start_text
from asched.batch.backfill.reservations import POD_OWNER, Reservation, Reservations, StartOrder
from asched.batch.backfill.search import FoundStart, NodesMovedError, is_beyond, search
from asched.batch.share import BEYOND_SHARE, is_beyond_share
from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.gang import count_missing
from asched.core.cluster.pods import PodInfo
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.framework.effects import Effect
from asched.core.framework.status import MISTAKES, PointError

AWAITED_MAX: Final = 1_000


def promise(
    context: SchedulerContext, attempts: Sequence[Attempt]
) -> Generator[Effect, Answer, str]:
    """Find a start for pods of one owner that found no places now; returns the end of their
    message. Empty if an exception ended the search.
    """
    try:
        return (yield from _promise(context, attempts))
    except MISTAKES as raised:
        context.contain(raised, "starts", attempts[0].pod.key)
        drop(context, owner_of(context, attempts[0].pod), "dropped")
        return ""


def _promise(
    context: SchedulerContext, attempts: Sequence[Attempt]
) -> Generator[Effect, Answer, str]:
    cluster, first = context.cluster, attempts[0]
    ledger, kept = cluster.singleton(Reservations), cluster.singleton(StartTimes.of)
    args = kept.args.get(first.profile) if ledger.is_on else None
    if args is None:
        return ""
    owner = owner_of(context, first.pod)
    old, needed = ledger.of(owner), _needed(cluster, owner)
    infos = [attempt.info for attempt in attempts[:needed]]
    if len(infos) < needed or is_beyond(first.runner, infos):
        drop(context, owner, "dropped")
        return ""
    # An owner with a promise precedes owners of its priority with later promises.
    since_s = -inf if owner in kept.recalled else context.now_s
    since_s = since_s if old is None else old.order.since_s
    # The priority of a group is the lowest of the pods that it needs.
    priority = min(info.pod.priority for info in infos)
    order = StartOrder(-priority, since_s, kept.number_of(owner, old))
    if old is None and not _has_turn(ledger, kept, order, attempts, owner):
        return ""
    left_s = kept.until(owner, cluster.wall_clock_s + args.horizon_s) - cluster.wall_clock_s
    if left_s <= 0:
        drop(context, owner, "dropped")
        return ""
    if is_beyond_share(context, owner, infos, args.max_namespace_percentage):
        drop(context, owner, "dropped")
        return BEYOND_SHARE.format(args.max_namespace_percentage)
    is_broken = old is not None and (is_due(cluster, old) or ledger.is_broken(old))
    if kept.searching:
        if old is None:
            _wait(kept, order, attempts, owner)
        return start_text(old)  # `keep` activates it again
    if old is not None:
        old.woken_s = None
        if not is_broken and cluster.wall_clock_s < old.made_s + REPLAN_S:
            return start_text(old)  # `keep` activates it then
        old.made_s = cluster.wall_clock_s
        if old.seen == cluster.nodes.log.end and not is_broken:
            return start_text(old)
    respected = [
        other
        for other in ledger.all()
        if other.owner != owner and ((old is not None and not is_broken) or other.order < order)
    ]
    began_s, kept.searching = cluster.wall_clock_s, owner
    try:
        found = yield from search(context, first, infos, respected, left_s)
    except (PointError, OutOfTurn, NodesMovedError):
        return start_text(old)  # an attempt reports the error, or tries again
    finally:
        kept.searching = ""
    if ledger.of(owner) is not old:  # it changed during a pause
        return ""
    now = _settle(context, owner, order, infos, None if is_broken else old, found)
    if now is not None:
        now.made_s = began_s
    if now is not None and old is None:
        kept.outcomes["made"] += 1
        first_s, cause = kept.lost.pop(owner, (now.first_s, ""))
        kept.recalled.discard(owner)
        if first_s < now.start_s:
            now.first_s, now.cause = first_s, cause
    elif now is not None and old is not None and is_broken:
        _moved(context, old, now)
    return start_text(now)


def _moved(context: SchedulerContext, old: Reservation, now: Reservation) -> None:
    """Count the new promise of an owner whose old promise could not be kept."""
    kept = context.cluster.singleton(StartTimes.of)
    if now.start_s <= old.start_s:
        kept.outcomes["earlier"] += 1
        return
    kind, now.cause = why_moved(context, old)
    kept.outcomes["later"] += 1
    kept.causes[kind] += 1


def _settle(
    context: SchedulerContext,
    owner: str,
    order: StartOrder,
    infos: Sequence[PodInfo],
    standing: Reservation | None,
    found: FoundStart | None,
) -> Reservation | None:
    """Store the start that was found, unless the standing promise is as early."""
    cluster = context.cluster
    ledger, kept = cluster.singleton(Reservations), cluster.singleton(StartTimes.of)
    if standing is not None and (found is None or found.start_s >= standing.start_s):
        standing.seen = cluster.nodes.log.end
        return standing
    if found is None:
        if ledger.of(owner) is not None:
            drop(context, owner, "dropped")
        return None
    if standing is not None:
        kept.outcomes["earlier"] += 1
    rows = [cluster.nodes.row_of[name] for name in found.needs if name in cluster.nodes.row_of]
    there = [info for row in rows for info in cluster.pods_on(row).values()]
    awaited = [info for row in rows for info, _ in ledger.leaving(row, found.start_s)]
    first_s, cause, old = found.start_s, "", ledger.of(owner)
    if old is not None and old.first_s < found.start_s:  # still later than the first promise
        first_s, cause = old.first_s, old.cause
    reservation = Reservation(
        owner,
        infos[0].pod.spec.scheduler_name,
        order,
        found.start_s,
        found.end_s,
        found.is_hard,
        found.needs,
        tuple({info.cls.number: info for info in infos}.values()),
        first_s,
        cause=cause,
        there=frozenset(info.pod.uid for info in there),
        awaited=tuple((info.pod.key, info.pod.uid) for info in islice(awaited, AWAITED_MAX)),
        made_s=cluster.wall_clock_s,
        seen=cluster.nodes.log.end,
    )
    kept.has_moved |= old is not None
    ledger.put(reservation)
    kept.waiting.pop(owner, None)
    if len(ledger) > kept.reservations_max:
        last = ledger.all()[-1]
        drop(context, last.owner, "displaced")
        kept.waiting[last.owner] = last.order, last.likes[0].pod.key
    return reservation


def _needed(cluster: Cluster, owner: str) -> int:
    return 1 if owner.startswith(POD_OWNER) else max(count_missing(cluster, owner), 1)


def _has_turn(
    ledger: Reservations,
    kept: StartTimes,
    order: StartOrder,
    attempts: Sequence[Attempt],
    owner: str,
) -> bool:
    """Whether the owner may get a reservation; else it is added to the waiting owners."""
    if len(ledger) < kept.reservations_max or order < ledger.all()[-1].order:
        return True
    _wait(kept, order, attempts, owner)
    return False


def _wait(kept: StartTimes, order: StartOrder, attempts: Sequence[Attempt], owner: str) -> None:
    tried_s = min((tried.queued.initial_attempt_s or order.since_s) for tried in attempts)
    kept.waiting[owner] = order._replace(since_s=tried_s), attempts[0].pod.key
    if len(kept.waiting) > WAITING_MAX:
        del kept.waiting[max(kept.waiting, key=lambda known: kept.waiting[known][0])]
