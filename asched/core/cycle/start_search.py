"""The search for the earliest start of pods that fit nowhere now.

    moments at which known ends leave room enough by amounts (`gang/timeline.py`)
      ─> tried there by all rules, one pod after the other, supposing gone who will have ended

It is the trial of any gang (`group_trial.py`), with pods of its own names and what is promised to
others held; while others have their turn all is as it is.

Bounds  TRIALS_MAX trials and SCAN_MAX moments, TRIAL_ROWS_MAX rows in one trial.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Final, NamedTuple

import msgspec
import numpy as np

from asched.core.cycle.company import Company
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.cycle.group import GroupAttempt, Result
from asched.core.cycle.group_trial import let_go, pause_if_due, try_group
from asched.core.cycle.start_keeping import StartTimes
from asched.core.cycle.supposed import without
from asched.core.framework.effects import Effect
from asched.core.framework.results.nominated_filter import ignores_pods
from asched.core.framework.runner import Runner
from asched.core.gang.timeline import I64, Demand, Ending, Mask, Promised, Timeline, rows_for
from asched.core.model.pod import PodStatus
from asched.core.queue.queued import QueuedPod
from asched.core.state.cluster import Cluster
from asched.core.state.consumers import request_of
from asched.core.state.ends import Ends
from asched.core.state.facts import Answer
from asched.core.state.holds import HeldAmounts, HeldPlace
from asched.core.state.pods import PodInfo
from asched.core.state.reservations import CLONE, Need, Reservation, Reservations, vector

TRIALS_MAX: Final = 6
SCAN_MAX: Final = 256
TRIAL_ROWS_MAX: Final = 1_024
#: Rows of a trial have so many times the slots that are needed, and in a second trial all.
SPARE: Final = 1.25
#: Steps of the budget for what comes before a trial.
LOOK_STEPS: Final = 20
#: Who holds what is promised to others for the time of a trial.
HOLDER: Final = "start-times:trial"


class NodesMovedError(Exception):
    """Nodes came or went while others had their turn: what was counted by row means nothing."""


class Found(NamedTuple):
    """A start, and where; `is_hard` as in `Reservation`."""

    start_s: float
    end_s: float
    needs: dict[str, Need]
    is_hard: bool


def is_beyond(runner: Runner, infos: Sequence[PodInfo]) -> bool:
    """Whether nobody can suppose these pods anywhere: what is asked about them is not asked of the
    cluster alone, or is written under their names.
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
) -> Generator[Effect, Answer, Found | None]:
    """Where and when they fit, beside what is promised to those `respected`. Raises PointError,
    OutOfTurn, NodesMovedError.
    """
    cluster, runner = context.cluster, first.runner
    now_s, generation = cluster.wall_clock_s, cluster.nodes.generation
    demands = [_demand(cluster, runner, alike) for alike in _by_class(infos)]
    timeline = _timeline(cluster, respected)
    ends = [cluster.singleton(Ends).of(info, now_s) for info in infos]
    lasts_s = max(inf if end is None else end.at_s - now_s for end in ends)
    group = _clones(context, first, infos)
    trials = 0
    for start_s, room in timeline.starts(demands, lasts_s, now_s + horizon_s, SCAN_MAX):
        for spare in (SPARE, inf):
            yield from pause_if_due(context, group, LOOK_STEPS)
            if cluster.nodes.generation != generation:
                raise NodesMovedError
            within = rows_for(demands, room, spare)
            if spare == inf:
                within[np.flatnonzero(within)[TRIAL_ROWS_MAX:]] = False
            free_then = timeline.free_at(start_s)
            outcome = yield from _try_at(context, group, start_s, within, free_then - room)
            if isinstance(outcome, Found):
                return outcome._replace(end_s=start_s + lasts_s)
            trials += 1
            if trials >= TRIALS_MAX:
                return None
    return None


def _by_class(infos: Sequence[PodInfo]) -> list[list[PodInfo]]:
    found: dict[int, list[PodInfo]] = {}
    for info in infos:
        found.setdefault(info.cls.number, []).append(info)
    return list(found.values())


def _demand(cluster: Cluster, runner: Runner, alike: Sequence[PodInfo]) -> Demand:
    """Raises PointError, OutOfTurn as a look at the pod does."""
    info, height = alike[0], cluster.nodes.height
    within: Mask = cluster.nodes.columns.read("live")[:height].copy()
    state = runner.cache.state_of(info)
    if state.update(info).rejection is None:
        for verdict in state.active:
            if ignores_pods(verdict.plugin):
                within &= verdict.codes[:height] == 0
    return Demand(vector(cluster, info.cls.accounted, 1), len(alike), within)


def _timeline(cluster: Cluster, respected: Sequence[Reservation]) -> Timeline:
    read, height = cluster.nodes.columns.read, cluster.nodes.height
    ends, now_s = cluster.singleton(Ends), cluster.wall_clock_s
    room = read("allocatable")[:, :height] - read("requested")[:, :height]
    pods = read("allowed_pods")[:height] - read("pod_count")[:height]
    endings = []
    for info in cluster.placed.values():
        end = ends.of(info, now_s) if info.row >= 0 else None
        if end is not None:
            amounts = vector(cluster, info.cls.accounted, 1)
            endings.append(Ending(end.at_s, info.row, amounts))
    cluster.budget.note(len(cluster.placed) / 4)
    promised = []
    for one in respected:
        known = [
            (cluster.nodes.row_of[n], need)
            for n, need in one.needs.items()
            if n in cluster.nodes.row_of
        ]
        if known:
            amounts = np.array([vector(cluster, need.accounted, need.pods) for _, need in known]).T
            rows = np.array([row for row, _ in known], dtype=np.intp)
            promised.append(Promised(one.start_s, one.end_s, rows, amounts))
    return Timeline(now_s, np.vstack((room, pods)), endings, promised)


def _clones(context: SchedulerContext, first: Attempt, infos: Sequence[PodInfo]) -> GroupAttempt:
    """The same pods under other uids: nobody takes a trial for their attempt."""
    company = Company(context.cluster, len(infos))
    attempts = []
    for info in infos:
        metadata = msgspec.structs.replace(info.pod.metadata, uid=info.pod.uid + CLONE)
        pod = msgspec.structs.replace(info.pod, metadata=metadata, status=PodStatus())
        queued = QueuedPod(pod, context.now_s)
        clone = PodInfo(pod, info.cls)
        attempts.append(
            Attempt(first.id, queued, clone, first.runner, first.started_s, company=company)
        )
    return GroupAttempt(HOLDER, attempts, first.id, first.pod, first.started_s)


def _try_at(
    context: SchedulerContext, group: GroupAttempt, start_s: float, within: Mask, blocked: I64
) -> Generator[Effect, Answer, Found | None]:
    """Try all pods as things will be then; `blocked` int64[R+1, N] is promised to others."""
    cluster = context.cluster
    ledger = cluster.singleton(Reservations)
    rows = np.flatnonzero(within).tolist()
    leaving = {row: list(ledger.leaving(row, start_s)) for row in rows}
    uids = [info.pod.uid for ended in leaving.values() for info, _ in ended]
    places = [place for row in rows if (place := _place(cluster, row, blocked[:, row]))]
    steps = try_group(context, group, within, plan={})

    @contextmanager
    def promises() -> Iterator[None]:
        """What is promised to others is held, and nothing else binds the pods."""
        known = [place for place in places if place.node_name in cluster.nodes.row_of]
        ledger.suspend({attempt.info.cls.number for attempt in group.attempts})
        cluster.holds.put(HOLDER, known, inf)
        try:
            yield
        finally:
            cluster.holds.drop(HOLDER)
            ledger.suspend(())

    outcome = yield from without(cluster, uids, steps, promises, len(places))
    needs: dict[str, Need] = {}
    for tried in outcome.tried:
        if tried.decision is not None and outcome.result is Result.SCHEDULED:
            before = needs.get(tried.decision.node, Need({}, 0))
            total = Counter(before.accounted)
            total.update(tried.attempt.info.cls.accounted)
            needs[tried.decision.node] = Need(dict(total), before.pods + 1)
    if group.was_seen:
        kept = cluster.singleton(StartTimes.of)
        kept.freed += [t.attempt.pod.on(t.decision.node) for t in outcome.tried if t.decision]
    yield from let_go(context, group, outcome)
    if not needs:
        return None
    row_of = cluster.nodes.row_of
    used = [hard for name in needs for _, hard in leaving.get(row_of.get(name, -1), ())]
    return Found(start_s, inf, needs, all(used))


def _place(cluster: Cluster, row: int, amounts: I64) -> HeldPlace | None:
    """What is promised to others on a row, as held amounts."""
    node, names = cluster.nodes.node_at[row], cluster.nodes.resources.values
    assert node is not None
    taken = {names[at + 1]: int(amounts[at]) for at in np.flatnonzero(amounts[:-1]).tolist()}
    pods = int(amounts[-1])
    return HeldPlace(HeldAmounts(taken, pods), node.name) if taken or pods else None
