"""What is held for groups of scheduling.x-k8s.io: what their minResources name beyond their pods.

    trial of a group's first pods ─> they fit, and so does the rest ─> bound, the rest is held
                                  └> the rest does not ─> the group waits, its pods hold nothing
    later pods ─> the hold is lifted while they are tried; what they took is held no longer

So Spark's driver, whose group has minMember 1 and minResources for its executors, starts only where
they have room too, and nobody else gets that room before they come. How large they will be, and
which nodes they may use, nobody knows yet: rows that the known pods of the group may use come
first.

A hold ends with the last pod of its group, once nothing is left to be held, or when its time is up:
minResourcesHoldSeconds (or scheduleTimeoutSeconds of the group, if that is longer) after the last
pod of the group got its place. All of this is read off the API's objects, so that a new process
comes to the same: nothing leaks.

Bounds  CLASSES_MAX classes of a group's pods are asked where they may go; a settlement costs a few
        passes over the rows.
"""

from collections.abc import Generator, Iterable, Mapping
from itertools import chain, islice
from typing import Any, Final

import numpy as np

from asched import names
from asched.core.config.args import CoschedulingArgs
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.failure import Failure
from asched.core.cycle.group import UNSCHEDULABLE, GroupAttempt, Outcome, Result
from asched.core.framework.effects import Effect
from asched.core.framework.results.nominated_filter import ignores_pods
from asched.core.framework.status import PointError
from asched.core.gang.holding import Room, Shortages, amounts_of, spread, told
from asched.core.gang.problem import I64, Mask
from asched.core.model.meta import ObjectMeta
from asched.core.model.pod import Container, Pod, PodSpec, ResourceList, ResourceRequirements
from asched.core.model.requests import CPU
from asched.core.model.timestamp import microseconds
from asched.core.state.budget import OutOfTurn
from asched.core.state.changes import ASSIGNED_POD_DELETE, Change
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Answer
from asched.core.state.gang import gang_of
from asched.core.state.holds import HeldAmounts, HeldPlace
from asched.core.state.pod_groups import Gang
from asched.core.state.pods import PodInfo

CLASSES_MAX: Final = 8
#: Amounts of rows before something was held or let go: node to (int64[R] requested, pods).
Taken = dict[str, tuple[I64, int]]
Steps = Generator[Effect, Answer, Any]


def on_lifted(context: SchedulerContext, key: str, steps: Steps) -> Steps:
    """Run the cycle of a group without what is held for it; whenever others may have their turn,
    that counts. In the end, what its pods did not take is held.
    """
    holds = context.cluster.holds
    before, answer = taken(context.cluster, key), None
    while True:
        holds.lift(key)
        try:
            effect = steps.send(answer)  # type: ignore[arg-type]
        except StopIteration as end:
            result = end.value
            break
        if effect.lets_others:
            holds.restore(key)
        answer = yield effect
    settle(context, key, before)
    return result


def refuse_if_short(context: SchedulerContext, group: GroupAttempt, outcome: Outcome) -> None:
    """The first pods of a group fit: does the rest of its minResources? If not, they do not start.

    To be called while their places are counted.
    """
    gang = gang_of(context.cluster, group.key)
    if outcome.result is not Result.SCHEDULED or gang is None or not gang.min_resources:
        return
    mine = {attempt.pod.uid for attempt in group.attempts}
    shortages = context.cluster.singleton(Shortages)
    shortages.drop(group.key)
    if not context.cluster.pod_groups.get(group.key).placed.keys() <= mine:
        return  # it has started: what is left of its hold, or could be found, is all there is
    missing = _book(context, group.key, left_of(context.cluster, group.key, gang))[1]
    if not missing:
        return
    wanted = amounts_of(gang.min_resources)
    shortages.note(group.key, wanted)
    outcome.result = Result.UNSCHEDULABLE
    outcome.message = (
        f"{UNSCHEDULABLE}, minResources of the PodGroup ({told(wanted)}) are not free: beside the"
        f" pods that fit, {told(missing)} found no room"
    )
    gates = group.runner.profile.pre_enqueue
    blamed = frozenset(plugin.name for plugin in gates if plugin.awaits_pods)
    outcome.refusal = Failure(outcome.message, names.REASON_UNSCHEDULABLE, blamed)


def settle(context: SchedulerContext, key: str, before: Taken | None = None) -> None:
    """Hold what a group is due now, and tell those who wait what became free. `before`: what was
    taken on the rows of its hold when that counted for the last time.
    """
    cluster = context.cluster
    before = taken(cluster, key) if before is None else before
    cluster.pod_groups.moved.pop(key, None)
    cluster.holds.touched.pop(key, None)
    until_s, wanted = _due(context, key)
    if wanted:
        cluster.holds.lift(key)
        places, _ = _book(context, key, wanted)
        cluster.holds.put(key, places, until_s)
    else:
        cluster.holds.drop(key)
    for node, (requested, pods) in before.items():
        row = cluster.nodes.row_of.get(node)
        if row is not None:
            freed = _freed(cluster, row, requested, pods)
            if freed is not None:
                context.queue.move(Change(ASSIGNED_POD_DELETE, freed), context.now_s)


def taken(cluster: Cluster, key: str) -> Taken:
    hold = cluster.holds.of(key)
    if hold is None:
        return {}
    read, row_of = cluster.nodes.columns.read, cluster.nodes.row_of
    rows = {place.node_name: row_of[place.node_name] for place in hold.places}
    return {
        node: (read("requested")[:, row].copy(), int(read("pod_count")[row]))
        for node, row in rows.items()
    }


def left_of(cluster: Cluster, key: str, gang: Gang) -> dict[str, int]:
    """What minResources name beyond the pods that have places."""
    left = amounts_of(gang.min_resources or {})
    for uid in cluster.pod_groups.get(key).placed:
        for name, amount in cluster.placed[uid].cls.accounted.items():
            if name in left:
                left[name] -= amount
    return {name: amount for name, amount in left.items() if amount > 0}


def _due(context: SchedulerContext, key: str) -> tuple[float, Mapping[str, int]]:
    """(until when, what) is to be held for a group; nothing if it has not started or had its
    time.
    """
    gang = gang_of(context.cluster, key)
    if gang is None or not gang.min_resources:
        return 0.0, {}
    rules = context.gangs.coscheduled
    placed = context.cluster.pod_groups.get(key).placed
    ours = [pod for pod in placed.values() if pod.spec.scheduler_name in rules]
    if not ours:
        return 0.0, {}
    args: CoschedulingArgs = rules[ours[0].spec.scheduler_name]
    patience_s = max(args.min_resources_hold_s, gang.timeout_s or 0)
    until_s = max(_placed_s(context, pod) for pod in ours) + patience_s
    if until_s <= context.now_s:
        return 0.0, {}
    return until_s, left_of(context.cluster, key, gang)


def _placed_s(context: SchedulerContext, pod: Pod) -> float:
    """When a pod got its place, by the time that turns are told. It is just now if the API does not
    know of it yet.
    """
    info = context.cluster.placed[pod.uid]
    condition = info.pod.condition(names.POD_SCHEDULED)
    text = info.pod.status.start_time or info.pod.metadata.creation_timestamp
    if condition is not None and condition.status == "True":
        text = condition.last_transition_time
    if info.assumed or not text or not context.cluster.wall_clock_s:
        return context.now_s
    try:
        ago_s = context.cluster.wall_clock_s - microseconds(text) / 1e6
    except ValueError:
        return context.now_s
    return context.now_s - max(ago_s, 0.0)


def _book(
    context: SchedulerContext, key: str, wanted: Mapping[str, int]
) -> tuple[list[HeldPlace], dict[str, int]]:
    """(places for as much of it as there is room for, what found none). The group's own hold must
    not count meanwhile.
    """
    cluster = context.cluster
    room = Room.of(cluster, wanted)
    if not room.names:
        return [], room.unknown
    held, missing = spread(room.free, room.wanted, _tiers(context, key))
    places = []
    for row in np.flatnonzero(held.any(axis=0)).tolist():
        node = cluster.nodes.node_at[row]
        assert node is not None
        amounts = zip(room.names, held[:, row].tolist(), strict=True)
        here = {name: amount for name, amount in amounts if amount}
        places.append(HeldPlace(HeldAmounts(here, pods=1), node.name))
    lacking = zip(room.names, missing.tolist(), strict=True)
    return places, {**{name: amount for name, amount in lacking if amount}, **room.unknown}


def _tiers(context: SchedulerContext, key: str) -> I64:
    """int64[N]: rows that the group's pods may use before others, and of those the ones on which
    something is held already.
    """
    cluster = context.cluster
    tier = np.where(_eligible(context, key), 0, 2).astype(np.int64)
    hold = cluster.holds.of(key)
    rows = [cluster.nodes.row_of.get(p.node_name) for p in hold.places] if hold is not None else []
    kept = np.ones(len(tier), dtype=np.int64)
    kept[[row for row in rows if row is not None]] = 0
    return tier + kept


def _eligible(context: SchedulerContext, key: str) -> Mask:
    """bool[N]: where some known pod of the group may go as far as nodes are concerned."""
    height = context.cluster.nodes.height
    found: Mask = np.zeros(height, dtype=np.bool_)
    for known in islice(_distinct(context.cluster, key), CLASSES_MAX):
        # One that runs names its node; those that come later may use others.
        pod = context.cluster.classes.info_of(known.pod.on("")) if known.node_name else known
        runner = context.runners.get(pod.pod.spec.scheduler_name)
        if runner is None:
            continue
        state = runner.cache.state_of(pod)
        try:
            if state.update(pod).rejection is not None:
                continue
        except (PointError, OutOfTurn):
            continue
        mask = np.ones(height, dtype=np.bool_)
        for verdict in state.active:
            if ignores_pods(verdict.plugin) and not verdict.plugin.reads_only_amounts:
                mask &= verdict.codes[:height] == 0
        found |= mask
    return found


def _distinct(cluster: Cluster, key: str) -> Iterable[PodInfo]:
    """A pod of each class of a group."""
    pods, seen = cluster.pod_groups.get(key), set()
    infos = chain(
        (cluster.placed[uid] for uid in pods.placed),
        (cluster.classes.info_of(pod) for pod in pods.unplaced.values()),
    )
    for info in infos:
        if info.cls.number not in seen:
            seen.add(info.cls.number)
            yield info


def _freed(cluster: Cluster, row: int, requested: I64, pods: int) -> Pod | None:
    """What is taken less on a row than before, as a pod that would leave it; None if nothing is."""
    read, nodes = cluster.nodes.columns.read, cluster.nodes
    now = read("requested")[:, row]
    common = min(len(now), len(requested))
    less = requested[:common] - now[:common]
    amounts = {
        nodes.resources.values[at + 1]: int(less[at]) for at in np.flatnonzero(less > 0).tolist()
    }
    if not amounts and int(read("pod_count")[row]) >= pods:
        return None
    requests: ResourceList = {
        name: f"{amount}m" if name == CPU else str(amount) for name, amount in amounts.items()
    }
    node = nodes.node_at[row]
    assert node is not None
    container = Container(resources=ResourceRequirements(requests=requests))
    return Pod(ObjectMeta(name="held"), PodSpec(node_name=node.name, containers=(container,)))
