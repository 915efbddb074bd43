"""Search for the earliest start of pods that fit on no node now.

    times at which the known ends of pods leave enough room by amounts (`timeline.py`)
      ─> trial at that time by all rules, without the pods that will have ended

The trial is that of a gang (`groups/trial.py`), with clones of the pods, and with places held for
what is promised to other owners. Before other pods have their turn, all of this is undone.

Bounds  TRIALS_MAX trials and SCAN_MAX moments, TRIAL_ROWS_MAX rows in one trial.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from itertools import chain
from math import inf
from typing import Final, NamedTuple

import msgspec
import numpy as np

from asched.batch.backfill.expected_ends import Ends
from asched.batch.backfill.reservations import (
    CLONE,
    NodeNeed,
    Reservation,
    Reservations,
    StartTimes,
)
from asched.batch.backfill.timeline import Promised, Timeline, TimelineDemand, may_fit, rows_for
from asched.batch.groups.attempt import GroupAttempt, Result
from asched.batch.groups.board import accepting
from asched.batch.groups.trial import let_go, released, seen, try_group
from asched.batch.groups.trial_without import MOVE_STEPS, without
from asched.batch.placement.plan import R, Steps
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.consumers import request_of
from asched.core.cluster.facts import Answer
from asched.core.cluster.holds import HeldAmounts, HeldPlace
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.room import vector
from asched.core.cluster.supposition import Supposition
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.hypothetical_gang import HypotheticalGang
from asched.core.framework.effects import Effect
from asched.core.framework.runner import Runner
from asched.core.model.arrays import I64, Mask
from asched.core.model.pod import PodStatus
from asched.core.queue.queued import QueuedPod

TRIALS_MAX: Final = 6
SCAN_MAX: Final = 256
TRIAL_ROWS_MAX: Final = 1_024
#: The rows of a first trial have this many times the needed slots; a second trial uses all rows.
SPARE: Final = 1.25
#: Budget steps before a trial.
TRIAL_STEPS: Final = 20
#: Budget steps for each class, for each row, and for each pod's end. Measured.
CLASS_STEPS: Final = 3
ROW_STEPS: Final = 0.1
END_STEPS: Final = 0.3
#: Budget steps to sort the ends, for each of them.
SORT_STEPS: Final = 0.02
#: Pods that are handled between two checks of the budget.
PODS_AT_ONCE: Final = 32
#: Prefix of the owner of holds for other owners' promises during a trial; the node's name follows.
HOLDER: Final = "start-times:trial"
#: By row: the pods that will have ended, and whether their end is certain.
Leaving = dict[int, list[tuple[PodInfo, bool]]]


class NodesMovedError(Exception):
    """Nodes were added or removed during a pause, so counts by row are invalid."""


class Start(NamedTuple):
    """A start, and where; `is_hard` as in `Reservation`."""

    start_s: float
    end_s: float
    needs: dict[str, NodeNeed]
    is_hard: bool


def is_beyond(runner: Runner, infos: Sequence[PodInfo]) -> bool:
    """Whether these pods cannot be tried hypothetically, because extenders are called for them, or
    objects depend on their names (claims, ephemeral volumes, ProvisioningRequests).
    """
    return any(
        info.pod.spec.resource_claims
        or any(volume.ephemeral is not None for volume in info.pod.spec.volumes or ())
        or request_of(info.pod)
        or runner.consults(info)
        for info in {info.cls.number: info for info in infos}.values()
    )


def search(
    context: SchedulerContext,
    first: Attempt,
    infos: Sequence[PodInfo],
    respected: Sequence[Reservation],
    horizon_s: float,
    rows_max: int,
) -> Generator[Effect, Answer, Start | None]:
    """Find a start for the pods that keeps the `respected` reservations; starts on `rows_max` rows
    are tried first. Raises PointError, OutOfTurn, NodesMovedError.
    """
    cluster, kept = context.cluster, context.cluster.singleton(StartTimes)
    now_s, generation = cluster.steady_s, cluster.nodes.generation
    group = _clones(context, first, infos)
    demands, counts = [], Counter(info.cls.number for info in infos)
    for number, like in {info.cls.number: info for info in infos}.items():
        yield from context.pause_if_due(0)
        demands.append(_demand(cluster, first.runner, like, counts[number]))
        cluster.budget.note(CLASS_STEPS)
    _stop_if_moved(cluster, generation)
    read, height = cluster.nodes.columns.read, cluster.nodes.height
    offered = np.vstack((read("allocatable")[:, :height], read("allowed_pods")[:height]))
    if not (yield from _counted(context, may_fit(demands, offered))):
        return None
    timeline = yield from _timeline(context, respected, generation)
    ends = [cluster.singleton(Ends).of(info, now_s) for info in infos]
    lasts_s = max(inf if end is None else end.at_s - now_s for end in ends)
    trials = 0
    for start in timeline.starts(demands, lasts_s, now_s + horizon_s, SCAN_MAX):
        if not isinstance(start, tuple):
            yield from context.pause_if_due(start)
            continue
        at_s, room = start
        for spare, most in ((SPARE, rows_max), (inf, TRIAL_ROWS_MAX)):
            yield from context.pause_if_due(TRIAL_STEPS)
            within = yield from _counted(context, rows_for(demands, room, spare, most))
            leaving = yield from _leaving(context, within, at_s, generation)
            blocked = timeline.free_at(at_s) - room
            kept.is_trying = True
            try:
                active = [promise for promise in respected if promise.is_active(at_s)]
                steps = _try_at(context, group, at_s, leaving, within, blocked, active)
                found = yield from released(context, group, steps)
            finally:
                kept.is_trying = False
            if found is not None:
                return found._replace(end_s=at_s + lasts_s)
            trials += 1
            if trials >= TRIALS_MAX:
                return None
    return None


def _stop_if_moved(cluster: Cluster, generation: int) -> None:
    if cluster.nodes.generation != generation:
        raise NodesMovedError


def _counted(context: SchedulerContext, steps: Steps[R]) -> Generator[Effect, Answer, R]:
    """Run steps that yield their costs, with pauses; returns their result."""
    while True:
        try:
            cost = next(steps)
        except StopIteration as end:
            found: R = end.value
            return found
        yield from context.pause_if_due(cost)


def _demand(cluster: Cluster, runner: Runner, info: PodInfo, count: int) -> TimelineDemand:
    """The demand of equal pods. Raises PointError, OutOfTurn like the filters."""
    height = cluster.nodes.height
    within: Mask = cluster.nodes.columns.read("live")[:height].copy()
    within = accepting(runner.cache.state_of(info), info, within)
    return TimelineDemand(vector(cluster.nodes, info.cls.accounted, 1), count, within)


def _timeline(
    context: SchedulerContext, respected: Sequence[Reservation], generation: int
) -> Generator[Effect, Answer, Timeline]:
    """Build the timeline. Pods that arrive during a pause are assumed to stay, and pods that leave
    to give nothing back. Raises NodesMovedError.
    """
    cluster = context.cluster
    ends, now_s = cluster.singleton(Ends), cluster.steady_s
    cursor = cluster.nodes.log.end
    placed = tuple(cluster.placed.values())
    at_s = np.empty(len(placed), dtype=np.float64)
    on, of = np.empty((2, len(placed)), dtype=np.intp)
    known: list[PodInfo] = []
    kinds: dict[tuple[tuple[str, int], ...], int] = {}  # by amounts: deadlines make classes
    read = cluster.nodes.columns.read
    width = len(read("allocatable")) + 1
    amounts = np.empty((len(placed), width), dtype=np.int64)  # by kind
    for at in range(0, len(placed), PODS_AT_ONCE):
        some = placed[at : at + PODS_AT_ONCE]
        yield from context.pause_if_due(END_STEPS * len(some))
        _stop_if_moved(cluster, generation)
        for info in some:
            end = ends.of(info, now_s) if info.row >= 0 else None
            if end is not None:
                number = len(known)
                at_s[number], on[number] = end.at_s, info.row
                accounted = tuple(info.cls.accounted.items())
                if accounted not in kinds:
                    kinds[accounted] = len(kinds)
                    amounts[kinds[accounted]] = vector(cluster.nodes, info.cls.accounted, 1)
                of[number] = kinds[accounted]
                known.append(info)
    yield from context.pause_if_due(SORT_STEPS * len(known))
    _stop_if_moved(cluster, generation)
    there = np.arange(len(known))
    if cluster.nodes.log.end != cursor:
        there = there[[info.row == row for info, row in zip(known, on.tolist(), strict=False)]]
    there = there[np.argsort(at_s[there])]
    promised = []
    for reservation in respected:
        needs = [
            (cluster.nodes.row_of[n], need)
            for n, need in reservation.needs.items()
            if n in cluster.nodes.row_of
        ]
        if needs:
            taken = np.array(
                [vector(cluster.nodes, need.accounted, need.pods) for _, need in needs]
            ).T
            rows = np.array([row for row, _ in needs], dtype=np.intp)
            promised.append(Promised(reservation.start_s, reservation.end_s, rows, taken))
    room, pods = read("allocatable") - read("requested"), read("allowed_pods") - read("pod_count")
    free = np.vstack((room, pods))[:, : cluster.nodes.height]
    ended = at_s[there], on[there], of[there]
    return Timeline(now_s, free, *ended, amounts[: len(kinds)].T, promised)


def _clones(context: SchedulerContext, first: Attempt, infos: Sequence[PodInfo]) -> GroupAttempt:
    """Copies of the pods with other uids, so that a trial is never taken for their attempt."""
    gang, began_s = HypotheticalGang(context.cluster, len(infos)), first.started_s
    attempts = []
    for info in infos:
        metadata = msgspec.structs.replace(info.pod.metadata, uid=info.pod.uid + CLONE)
        pod = msgspec.structs.replace(info.pod, metadata=metadata, status=PodStatus())
        queued, clone = QueuedPod(pod, context.now_s), PodInfo(pod, info.cls)
        attempts.append(
            Attempt(first.id, queued, clone, first.runner, began_s, hypothetical_gang=gang)
        )
    return GroupAttempt(first, attempts, HOLDER)


def _leaving(
    context: SchedulerContext, within: Mask, start_s: float, generation: int
) -> Generator[Effect, Answer, Leaving]:
    """The pods on these rows that will have ended by `start_s`. Raises NodesMovedError."""
    cluster, by_row = context.cluster, {}
    ledger = cluster.singleton(Reservations)
    _stop_if_moved(cluster, generation)
    for row in np.flatnonzero(within).tolist():
        steps = ROW_STEPS + END_STEPS * len(cluster.pods_on(row))
        yield from context.pause_if_due(steps)
        _stop_if_moved(cluster, generation)
        by_row[row] = list(ledger.leaving(row, start_s))
    return by_row


def _try_at(
    context: SchedulerContext,
    group: GroupAttempt,
    start_s: float,
    leaving: Leaving,
    within: Mask,
    blocked: I64,
    active: Sequence[Reservation],
) -> Generator[Effect, Answer, Start | None]:
    """Try all pods in the state of the cluster at `start_s`. `blocked` int64[R+1, N]: amounts that
    the reservations `active` promise. Promises in the same namespace count as usage there.
    """
    cluster = context.cluster
    ledger = cluster.singleton(Reservations)
    group.was_seen = False  # none of its pods has been placed yet
    ended = [info for some in leaving.values() for info, _ in some]
    places = [place for row in leaving if (place := _place(cluster, row, blocked[:, row]))]
    steps = seen(group, try_group(context, group, within, plan={}))

    def promises(suppose: Supposition) -> Iterator[float]:
        """Hold what is promised to other owners, and suspend the reservations themselves."""
        ledger.suspend({attempt.info.cls.number for attempt in group.attempts})
        suppose.also(partial(ledger.suspend, ()))
        namespace = group.pod.metadata.namespace
        for need in chain(*(r.needs.values() for r in active if r.namespace == namespace)):
            cluster.usage.add(namespace, need.accounted, 1)
            suppose.also(partial(cluster.usage.add, namespace, need.accounted, -1))
        for place in places:
            if place.node_name in cluster.nodes.row_of:
                yield MOVE_STEPS
                owner = f"{HOLDER}/{place.node_name}"
                cluster.holds.put(owner, (place,))
                suppose.also(partial(cluster.holds.drop, owner))

    outcome = yield from without(cluster, ended, steps, promises)
    needs: dict[str, NodeNeed] = {}
    for tried in outcome.tried:
        if tried.decision is not None and outcome.result is Result.SCHEDULED:
            before = needs.get(tried.decision.node, NodeNeed({}, 0))
            total = Counter(before.accounted)
            total.update(tried.attempt.info.cls.accounted)
            needs[tried.decision.node] = NodeNeed(dict(total), before.pods + 1)
    yield from seen(group, let_go(context, group, outcome))
    cluster.singleton(StartTimes).freed.take_over(group.freed)
    if not needs:
        return None
    row_of = cluster.nodes.row_of
    used = [hard for name in needs for _, hard in leaving.get(row_of.get(name, -1), ())]
    return Start(start_s, inf, needs, all(used))


def _place(cluster: Cluster, row: int, amounts: I64) -> HeldPlace | None:
    """The amounts promised to other owners on a row, as a held place; None if there are none."""
    node, names = cluster.nodes.node_at[row], cluster.nodes.resources.values
    assert node is not None
    taken = {names[at + 1]: int(amounts[at]) for at in np.flatnonzero(amounts[:-1]).tolist()}
    pods = int(amounts[-1])
    return HeldPlace(HeldAmounts(taken, pods), node.name) if taken or pods else None
