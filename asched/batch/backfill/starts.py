"""Promise starts to units that fit on no node now, and reserve their future room.

    no place now ─> the earliest start by known ends (`search.py`)
                 ─> promised: a reservation, which the plugin Backfill makes other pods respect
                 ─> maintained, turn by turn

A promise lasts until its owner starts or is deleted. Meanwhile an earlier start is searched for, in
case pods ended early; all other promises are respected then, so that it can only move to an earlier
time. A promise that cannot be kept any more is made anew, respecting the promises that take
precedence; the cause of the move is written to its pods and counted.

A promise has the lowest priority of its pods; pods of higher priority do not respect it. No
promised start is later than horizonSeconds after the first search for its owner, so that a promise
which is moved again and again ends. All promises to one namespace reserve no more than its share of
amounts and of nodes (`share.py`), and count as usage of its ElasticQuota while another start is
searched for.

The owner of a promise is tried at its start, when the promise cannot be kept any more, and when a
pod has ended since the last attempt, but at most every REPLAN_S. The attempt's result decides about
the promise.

A promise is stored in its pods' conditions only, in the text of `start_text`. A new leader reads it
once. Owners with such a promise are tried before other owners of their priority, and if their start
is later now, the condition names the cause.

Bounds  one search at a time, which knows an end of every pod and pauses; other owners wait, as for
        a reservation. One reservation an owner, as many as the profiles allow; WAITING_MAX owners
        that wait for a reservation, OWNERS_MAX end times; an entry per placed pod. AWAITED_MAX pods
        whose ends a promise depends on are stored. One pass over the pods to recall promises,
        RECALLED_MAX owners, the earliest starts first.
"""

import re
from collections.abc import Generator, Sequence
from itertools import islice
from math import inf
from typing import Final, NamedTuple

from asched.batch.backfill.expected_ends import Ends
from asched.batch.backfill.moved_starts import why_moved
from asched.batch.backfill.reservations import (
    CLONE,
    POD_OWNER,
    WAITING_MAX,
    Reservation,
    Reservations,
    StartOrder,
    StartTimes,
    date_of,
)
from asched.batch.backfill.search import NodesMovedError, Start, is_beyond, search
from asched.batch.share import BEYOND_SHARE, is_beyond_nodes, is_beyond_share, nodes_max
from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.changes import RESERVATION_MOVED, Change
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.gang import count_missing, gang_of
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import BackfillArgs
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.extension import Extension
from asched.core.cycle.extension_points import NOTHING_TO_ADD, Addition
from asched.core.framework.effects import Effect
from asched.core.framework.status import MISTAKES, PluginError, PointError
from asched.core.model.pod import Pod
from asched.core.model.timestamp import microseconds

RECALLED_MAX: Final = WAITING_MAX
AWAITED_MAX: Final = 1_000
#: The outcomes of a promise: made, moved to an earlier or later time, its owner started in time or
#: late, dropped, or displaced by a promise to a more important owner.
CHANGES: Final = ("made", "earlier", "later", "kept", "late", "dropped", "displaced")
#: By outcome: why a promise was lost for a time.
LOST: Final = {
    "displaced": "others who are more important were promised a start in its place",
    "dropped": "no start was known for a while",
}
#: All kinds of causes why a promise cannot be kept.
CAUSES: Final = ("node", "overrun", "order", "arrival", "hold", "rules")
#: Between two searches for an earlier start. Slurm's backfill interval is as long.
REPLAN_S: Final = 30.0
#: A promise is dropped this long after its start if its owner could not be tried, as behind a gate.
GIVE_UP_S: Final = 300.0
POD_SCHEDULED: Final = "PodScheduled"
STARTED_ANEW: Final = "the scheduler was started anew"
_START_TEXT: Final = re.compile(
    r"; expected to start by (\S{20}) \((?:hard|soft)\)(?:, not by (\S{20}): ([^;]+))?"
)


class PromisedStarts(Extension):
    """Backfill: units that fit on no node now get a promised start time."""

    name = "starts"

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self._cluster = context.cluster
        self._kept = context.cluster.singleton(StartTimes)
        self._ledger = context.cluster.singleton(Reservations)

    def is_used(self) -> bool:
        return bool(self.context.args_by_profile(BackfillArgs))

    def rejected(self, attempts: Sequence[Attempt]) -> Generator[Effect, Answer, Addition]:
        """Find a start for pods of one owner that found no places now; returns the end of their
        message. Empty if an exception ended the search.
        """
        try:
            return Addition((yield from self._promise(attempts)))
        except MISTAKES as raised:
            self.context.contain(raised, "starts", attempts[0].pod.key)
            self._drop(self._owner_of(attempts[0].pod), "dropped")
            return NOTHING_TO_ADD

    def _promise(self, attempts: Sequence[Attempt]) -> Generator[Effect, Answer, str]:
        cluster, ledger, kept, first = self._cluster, self._ledger, self._kept, attempts[0]
        if not ledger.is_on:
            return ""
        args, owner = kept.args.get(first.profile), self._owner_of(first.pod)
        if args is None:
            self._drop(owner, "dropped")  # of before it came to another pool
            return ""
        is_alone = owner.startswith(POD_OWNER)
        old, needed = ledger.of(owner), 1 if is_alone else max(count_missing(cluster, owner), 1)
        if old is not None:
            old.profile = first.profile
        infos = [attempt.info for attempt in attempts[:needed]]
        if len(infos) < needed or is_beyond(first.runner, infos):
            self._drop(owner, "dropped")
            return ""
        # An owner with a promise precedes owners of its priority with later promises.
        since_s = -inf if owner in kept.recalled else self.context.now_s
        since_s = since_s if old is None else old.order.since_s
        # The priority of a group is the lowest of the pods that it needs.
        priority = min(info.pod.priority for info in infos)
        order = StartOrder(-priority, since_s, kept.number_of(owner, old))
        is_full = len(ledger) >= kept.reservations_max
        if old is None and is_full and not order < ledger.all()[-1].order:
            self._wait(order, attempts, owner)
            return ""
        remaining_s = kept.until(owner, cluster.steady_s + args.horizon_s) - cluster.steady_s
        if remaining_s <= 0:
            self._drop(owner, "dropped")
            return ""
        share = args.max_namespace_percentage
        if is_beyond_share(self.context, owner, infos, share):
            self._drop(owner, "dropped")
            return BEYOND_SHARE.format(share)
        is_broken = old is not None and (old.start_s <= cluster.steady_s or ledger.is_broken(old))
        if kept.searching:
            if old is None:
                self._wait(order, attempts, owner)
            return start_text(cluster, old)  # `begin_turn` activates it again
        if old is not None:
            old.woken_s = None
            if not is_broken and cluster.steady_s < old.made_s + REPLAN_S:
                return start_text(cluster, old)  # `begin_turn` activates it then
            old.made_s = cluster.steady_s
            if old.seen == cluster.nodes.log.end and not is_broken:
                return start_text(cluster, old)
        respected = [
            other
            for other in ledger.all()
            if other.owner != owner and ((old is not None and not is_broken) or other.order < order)
        ]
        began_s, kept.searching = cluster.steady_s, owner
        try:
            rows_max = nodes_max(cluster, share)
            start = yield from search(self.context, first, infos, respected, remaining_s, rows_max)
        except PluginError:
            raise
        except (PointError, OutOfTurn, NodesMovedError):
            return start_text(cluster, old)  # an attempt reports the error, or tries again
        finally:
            kept.searching = ""
        if ledger.of(owner) is not old:  # it changed during a pause
            return ""
        namespace = first.pod.metadata.namespace
        if start is not None and is_beyond_nodes(
            self.context, owner, namespace, start.needs, share
        ):
            self._drop(owner, "dropped")
            return BEYOND_SHARE.format(share)
        now = self._settle(owner, order, infos, None if is_broken else old, start)
        if now is None:
            return ""
        now.made_s = began_s
        if ledger.is_broken(now):  # an attempt at once would find the same
            now.woken_s = cluster.steady_s
        if old is None:
            kept.outcomes["made"] += 1
            first_s, cause = kept.lost.pop(owner) or (now.first_s, "")
            kept.recalled.discard(owner)
            if first_s < now.start_s:
                now.first_s, now.cause = first_s, cause
        elif is_broken:
            if now.start_s > old.start_s:
                kind, now.cause = why_moved(self.context, old)
                kept.causes[kind] += 1
            kept.outcomes["later" if now.start_s > old.start_s else "earlier"] += 1
        return start_text(cluster, now)

    def _settle(
        self,
        owner: str,
        order: StartOrder,
        infos: Sequence[PodInfo],
        standing: Reservation | None,
        start: Start | None,
    ) -> Reservation | None:
        """Store the start that was found, unless the standing promise is as early."""
        cluster, ledger, kept = self._cluster, self._ledger, self._kept
        if standing is not None and (start is None or start.start_s >= standing.start_s):
            standing.seen = cluster.nodes.log.end
            return standing
        if start is None:
            self._drop(owner, "dropped")
            return None
        if standing is not None:
            kept.outcomes["earlier"] += 1
        rows = [cluster.nodes.row_of[name] for name in start.needs if name in cluster.nodes.row_of]
        there = [info for row in rows for info in cluster.pods_on(row).values()]
        awaited = [info for row in rows for info, _ in ledger.leaving(row, start.start_s)]
        first_s, cause, old = start.start_s, "", ledger.of(owner)
        if old is not None and old.first_s < start.start_s:  # still later than the first promise
            first_s, cause = old.first_s, old.cause
        reservation = Reservation(
            owner,
            self.context.profile_of(infos[0].pod),
            order,
            start.start_s,
            start.end_s,
            start.is_hard,
            start.needs,
            tuple({info.cls.number: info for info in infos}.values()),
            first_s,
            cause=cause,
            there=frozenset(info.pod.uid for info in there),
            awaited=tuple((info.pod.key, info.pod.uid) for info in islice(awaited, AWAITED_MAX)),
            made_s=cluster.steady_s,
            seen=cluster.nodes.log.end,
        )
        kept.has_moved |= old is not None
        ledger.put(reservation)
        kept.waiting.pop(owner, None)
        if len(ledger) > kept.reservations_max:
            last = ledger.all()[-1]
            self._drop(last.owner, "displaced")
            kept.waiting[last.owner] = last.order, last.likes[0].pod.key
        return reservation

    def _wait(self, order: StartOrder, attempts: Sequence[Attempt], owner: str) -> None:
        """Add an owner to those that wait for a reservation."""
        waiting = self._kept.waiting
        tried_s = min((tried.queued.initial_attempt_s or order.since_s) for tried in attempts)
        waiting[owner] = order._replace(since_s=tried_s), attempts[0].pod.key
        if len(waiting) > WAITING_MAX:
            del waiting[max(waiting, key=lambda known: waiting[known][0])]

    def _owner_of(self, pod: Pod) -> str:
        """The owner of a promise for the pod: its gang, else the pod itself."""
        key = self.context.gangs.key_of(pod)
        if key and gang_of(self._cluster, key) is not None:
            return key
        return POD_OWNER + pod.uid

    def _drop(self, owner: str, outcome: str) -> None:
        """Drop the promise to an owner. The owner's next promise names the cause if it was
        displaced, or if no start was found any more.
        """
        dropped, kept = self._ledger.drop(owner), self._kept
        if dropped is not None:
            kept.outcomes[outcome] += 1
            kept.has_moved = True
            if cause := LOST.get(outcome, ""):
                kept.lost.put(owner, (dropped.first_s, cause))

    def placed(self, pod: Pod) -> None:
        """End the promise to a pod, or its gang, that has its place."""
        if self._kept.ends_s or len(self._ledger):
            owner = self._owner_of(pod)
            self._kept.ends_s.pop(owner, None)
            reservation = self._ledger.of(owner)
            if reservation is not None:
                is_late = self._cluster.steady_s > reservation.start_s + REPLAN_S
                self._drop(owner, "late" if is_late else "kept")

    def begin_turn(self) -> Sequence[Effect]:
        """Try owners whose promises are due or broken, and drop promises."""
        kept, ledger = self._kept, self._ledger
        if kept.runners is not self.context.runners:
            self._learn()
        if not ledger.is_on:
            return ()
        ledger.tick()
        for change in kept.freed.take():
            self.context.queue.move(change, self.context.now_s)
        if kept.has_moved:
            kept.has_moved = False
            self.context.queue.move(Change(RESERVATION_MOVED), self.context.now_s)
        self._learn_ends()
        for reservation in () if kept.is_trying else ledger.all():
            if reservation.owner == kept.searching:
                continue
            try:
                self._check(reservation)
            except MISTAKES as raised:
                self.context.contain(raised, "starts", reservation.owner)
                self._drop(reservation.owner, "dropped")
        if self._may_go_on():
            owner = min(kept.waiting, key=lambda owner: kept.waiting[owner][0])
            self._activate((kept.waiting.pop(owner)[1],))
        if not kept.has_recalled:
            self._recall()
        return ()

    def _may_go_on(self) -> bool:
        """Whether an owner that waits may be tried."""
        kept, has_room = self._kept, len(self._ledger) < self._kept.reservations_max
        return bool(kept.waiting) and has_room and not kept.searching

    def next_deadline_s(self) -> float | None:
        kept, ledger = self._kept, self._ledger
        if kept.has_moved or kept.freed or self._may_go_on():
            return 0.0
        if not len(ledger):
            return None
        now_s = self._cluster.steady_s
        due = [reservation.start_s for reservation in ledger.all() if reservation.start_s > now_s]
        for reservation in ledger.all():
            if reservation.woken_s is not None:
                due.append(reservation.woken_s + REPLAN_S)
            elif kept.ended_early_s > reservation.made_s:
                due.append(reservation.made_s + REPLAN_S)
        return max(min(due), now_s) if due else None

    def _learn(self) -> None:
        """Read the arguments of new profiles."""
        kept = self._kept
        kept.runners = self.context.runners
        kept.args = self.context.args_by_profile(BackfillArgs)
        kept.reservations_max = max((args.reservations for args in kept.args.values()), default=0)
        self._ledger.is_on = bool(kept.args)
        ends = self._cluster.singleton(Ends)
        ends.believes_soft = any(args.soft_ends for args in kept.args.values())
        ends.learns = any(args.learn_durations for args in kept.args.values())
        for reservation in self._ledger.all():
            if reservation.profile not in kept.args:
                self._drop(reservation.owner, "dropped")

    def _learn_ends(self) -> None:
        """Record the durations of pods that left since the last turn, and that room became free."""
        cluster, kept = self._cluster, self._kept
        log, ends, now_s = cluster.nodes.log, cluster.singleton(Ends), cluster.steady_s
        if log.end == kept.cursor:
            return
        rows = log.rows(kept.cursor, -1)
        kept.cursor = log.end
        every = range(cluster.nodes.height) if rows is None else rows
        for row in every:
            for uid, info in kept.known.pop(row, {}).items():
                if uid not in cluster.placed and not uid.endswith(CLONE):
                    ends.ended(info, now_s)
                    kept.ended_early_s = now_s
            if row < cluster.nodes.height and (now := cluster.pods_on(row)):
                kept.known[row] = dict(now)

    def _check(self, reservation: Reservation) -> None:
        kept, now_s = self._kept, self._cluster.steady_s
        pods = self._waiting_pods(reservation)
        if not pods:
            kept.ends_s.pop(reservation.owner, None)
        if not pods or reservation.start_s + GIVE_UP_S < now_s:
            self._drop(reservation.owner, "dropped")
            return
        if reservation.woken_s is not None and now_s < reservation.woken_s + REPLAN_S:
            return
        reservation.woken_s = None
        has_room_come = kept.ended_early_s > reservation.made_s
        has_room_come &= now_s >= reservation.made_s + REPLAN_S
        is_due = reservation.start_s <= now_s
        if has_room_come or is_due or self._ledger.is_broken(reservation):
            reservation.woken_s = now_s
            self._activate(pods[:1])

    def _waiting_pods(self, reservation: Reservation) -> list[str]:
        """The keys of the waiting pods of a reservation."""
        cluster = self._cluster
        if reservation.owner.startswith(POD_OWNER):
            pod = reservation.likes[0].pod
            now = cluster.pods_seen.get(pod.key)
            waits = now is not None and now.uid == pod.uid and not now.spec.node_name
            return [pod.key] if waits and pod.uid not in cluster.placed else []
        if gang_of(cluster, reservation.owner) is None:
            return []
        return [pod.key for pod in cluster.pod_groups.get(reservation.owner).unplaced.values()]

    def _activate(self, keys: Sequence[str]) -> None:
        seen = self._cluster.pods_seen
        pods = [pod for pod in map(seen.get, keys) if pod is not None]
        self.context.queue.activate(pods, self.context.now_s)

    def _recall(self) -> None:
        """Queue the owners of recalled promises before other owners of their priority."""
        kept = self._kept
        kept.has_recalled = True
        recalled_of: dict[str, tuple[Recalled, Pod]] = {}
        for pod in self._cluster.pods_seen.values():
            if pod.spec.node_name or self.context.profile_of(pod) not in kept.args:
                continue
            recalled = read(pod)
            if recalled is not None:
                recalled_of.setdefault(self._owner_of(pod), (recalled, pod))
        by_start = sorted(recalled_of.items(), key=lambda item: (item[1][0].start_s, item[0]))
        for owner, (recalled, pod) in by_start[:RECALLED_MAX]:
            first_s = recalled.first_s - self._cluster.wall_ahead_s
            kept.lost.put(owner, (first_s, recalled.cause))
            kept.recalled.add(owner)
            kept.numbers += 1
            order = StartOrder(-pod.priority, -inf, kept.numbers)
            kept.waiting[owner] = order, pod.key


class Recalled(NamedTuple):
    """A promised start, the start that was promised first (since 1970), and why they differ."""

    start_s: float
    first_s: float
    cause: str


def start_text(cluster: Cluster, reservation: Reservation | None) -> str:
    """The end of the message of a reservation's pods, after why they have no place now."""
    if reservation is None:
        return ""
    certainty = "hard" if reservation.is_hard else "soft"
    text = f"; expected to start by {date_of(cluster, reservation.start_s + 1)} ({certainty})"
    if reservation.cause and reservation.start_s > reservation.first_s:
        text += f", not by {date_of(cluster, reservation.first_s + 1)}: {reservation.cause}"
    return text


def read(pod: Pod) -> Recalled | None:
    """Read a promised start from a pod's condition; None if there is none."""
    condition = pod.condition(POD_SCHEDULED)
    match = _START_TEXT.search(condition.message) if condition is not None else None
    if match is None:
        return None
    try:
        start_s = microseconds(match[1]) / 1e6
        first_s = microseconds(match[2]) / 1e6 if match[2] else start_s
    except ValueError:
        return None
    return Recalled(start_s, first_s, match[3] or STARTED_ANEW)
