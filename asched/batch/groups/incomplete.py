"""Report groups that stay incomplete, so that their pods are not even tried, in one event each.

A pod that waits for the rest of its gang is gated, where it has no attempts and no condition.
Most gangs are complete a moment later. For a gang that is not, an event on its PodGroup and its
first pod names what is missing: the PodGroup, pods that do not exist, scheduling gates that are
not removed, pods of another scheduler. Pods that were tried while the gang was complete lose
their nomination, and the condition for which an autoscaler would add a node. For a tree of groups
its fault, or the minimum that is not met, is in the conditions of its groups as well.

Bounds  GROUPS_AT_ONCE groups a turn, all of them every LOOK_S; of a group PODS_MAX waiting pods,
        GATES_MAX gates of each, NAMES_MAX names of a kind, STATUSES_MAX statuses; one entry per
        waiting group, a note within the limit of events; EVENTS_AT_ONCE events a turn.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from asched import names
from asched.batch.groups.attempt import GroupOutcome, Result
from asched.batch.groups.reports import condition_patch
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.gang import kind_of, object_of
from asched.core.cluster.group_trees import COMPOSITE, GroupTree
from asched.core.cluster.pod_groups import GroupPods, is_coscheduled
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.failure import note, status_patch
from asched.core.cycle.queue_steps import room_is_free
from asched.core.cycle.unit import CLEARED
from asched.core.framework.effects import Effect, EmitEvent
from asched.core.framework.status import MISTAKES
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod

#: A gang is reported after this time. A guess: controllers create pods within seconds.
GRACE_S: Final = 30.0
CHECK_S: Final = 10.0
#: Until the next part of an unfinished pass.
PART_S: Final = 0.1
GROUPS_AT_ONCE: Final = 100
PODS_MAX: Final = 100
GATES_MAX: Final = 4
STATUSES_MAX: Final = 1_000
NAMES_MAX: Final = 3
EVENTS_AT_ONCE: Final = 100
#: CompositePodGroups of a tree whose conditions a pass writes.
COMPOSITES_AT_ONCE: Final = 100


class Incomplete:
    """The waiting groups, since when, and their reports. Made by `Cluster.singleton`."""

    def __init__(self, _cluster: Cluster) -> None:
        self.since_s: dict[str, float] = {}
        self.reports: dict[str, str] = {}
        self.next_check_s = 0.0
        self.unchecked: list[str] = []  # groups of the present pass


def report_incomplete(context: SchedulerContext) -> Iterator[Effect]:
    """Check the next groups if a pass is due; yield the events of groups that wait too long."""
    memory = context.cluster.singleton(Incomplete)
    if context.now_s < memory.next_check_s or not (context.cluster.pod_groups or memory.since_s):
        return
    if not memory.unchecked:
        memory.unchecked = [*dict.fromkeys((*memory.since_s, *context.cluster.pod_groups))]
    part, memory.unchecked = memory.unchecked[:GROUPS_AT_ONCE], memory.unchecked[GROUPS_AT_ONCE:]
    memory.next_check_s = context.now_s + (PART_S if memory.unchecked else CHECK_S)
    reported = 0
    for key in part:
        try:
            why = why_incomplete(context, key)
        except MISTAKES as raised:  # checked again after LOOK_S
            context.contain(raised, "groups", key)
            why = ""
        if not why:
            memory.since_s.pop(key, None)
            memory.reports.pop(key, None)
            continue
        since_s = memory.since_s.setdefault(key, context.now_s)
        if context.now_s - since_s < GRACE_S:
            continue
        yield from _statuses(context, key, why)
        yield from _conditions(context, key, why)
        if memory.reports.get(key) == why:
            continue
        if reported < EVENTS_AT_ONCE:
            memory.reports[key] = why
            reported += 1
            yield from _events(context, key, why)


def next_report_s(cluster: Cluster) -> float | None:
    """When `report_incomplete` should be called again; None while there are no groups."""
    memory = cluster.singleton(Incomplete)
    return memory.next_check_s if cluster.pod_groups or memory.since_s else None


def why_incomplete(context: SchedulerContext, key: str) -> str:
    """Why the pods of a group are not tried; empty if they are."""
    cluster = context.cluster
    gangs = cluster.pod_groups.gangs
    gang = gangs.get(key)
    if gang is None and key in gangs and cluster.pod_groups.trees is None:
        return ""
    pods = cluster.pod_groups.get(key)
    ours = _ours(context, pods)
    if not any(map(context.gangs.has, ours)):
        return ""
    tree = cluster.pod_groups.tree_of(key)
    if tree is not None:
        return tree.fault or ("" if tree.is_complete else _lacking(tree))
    if gang is None and key in gangs:
        return ""
    if gang is None:
        name, api = key.rpartition("/")[2], kind_of(key).group_version.partition("/")[0]
        return f"waits for its PodGroup {name} of {api}, which does not exist"
    ready = pods.ready if is_coscheduled(key) else pods.present
    are_gated = is_coscheduled(key) and any(pod.uid in pods.gated for pod in ours)
    return (
        "" if ready >= gang.min_count and not are_gated else _shortage(context, key, gang.min_count)
    )


def _shortage(context: SchedulerContext, key: str, minimum: int) -> str:
    pods = context.cluster.pod_groups.get(key)
    waiting = list(islice(pods.unplaced.values(), PODS_MAX))
    word = "minMember" if is_coscheduled(key) else "minCount"
    reasons = [f"{pods.count} of {word} {minimum} pods exist"] if pods.count < minimum else []
    least = "at least " if len(pods.unplaced) > PODS_MAX else ""
    gates = [islice(pod.spec.scheduling_gates or (), GATES_MAX) for pod in waiting]
    for name, count in _counted(gate.name for some in gates for gate in some):
        reasons.append(f"{least}{count} of its pods wait behind the gate {name}")
    for name, count in _counted(
        pod.spec.scheduler_name for pod in waiting if not context.owns(pod)
    ):
        reasons.append(f"{least}{count} of its pods name scheduler {name}")
    leaving = sum(pod.is_terminating for pod in waiting) + len(pods.leaving)
    if leaving:
        reasons.append(f"{leaving} of its pods are being deleted")
    if not reasons:
        return ""
    advice = "; give all pods of the gang one schedulerName" if pods.foreign else ""
    if pods.count < minimum:
        advice = f"; should the others be made only once these run, {word} is too large"
    return note(f"the gang is incomplete: {', '.join(reasons)}", advice)


def _lacking(tree: GroupTree) -> str:
    """Which minimum of a tree is not met, from the root down."""
    lacking = [node for node in tree.nodes.values() if not node.is_ready][:NAMES_MAX]
    reasons = [
        f"{'PodGroup' if node.is_leaf else 'CompositePodGroup'} {node.group.metadata.name} lacks"
        f" {node.minimum - node.count} of {node.minimum} {'pods' if node.is_leaf else 'groups'}"
        for node in lacking
    ]
    return note(f"the tree of groups is incomplete: {', '.join(reasons)}")


def _conditions(context: SchedulerContext, key: str, why: str) -> Iterator[Effect]:
    """Conditions of a group with a parent, and by the first leaf also of the composites."""
    tree = context.cluster.pod_groups.tree_of(key)
    if tree is None:
        return
    about = [key]
    if key in (*tree.leaves, key)[:1]:
        about += [k for k in tree.nodes if k.startswith(COMPOSITE)][:COMPOSITES_AT_ONCE]
    outcome, now_s = GroupOutcome(Result.UNSCHEDULABLE, why), context.cluster.wall_clock_s
    for each in about:
        patch = condition_patch(context.cluster, each, outcome, now_s, is_invalid=tree.is_invalid)
        if patch is not None:
            yield patch


def _counted(names: Iterable[str]) -> list[tuple[str, int]]:
    """The first NAMES_MAX names, each with its number of occurrences."""
    return list(islice(Counter(names).items(), NAMES_MAX))


def _ours(context: SchedulerContext, pods: GroupPods) -> list[Pod]:
    return [pod for pod in islice(pods.unplaced.values(), PODS_MAX) if context.decides(pod)]


def _statuses(context: SchedulerContext, key: str, why: str) -> Iterator[Effect]:
    """Clear nominations of an earlier attempt; no node helps its pods now."""
    for pod in tuple(islice(context.cluster.pod_groups.get(key).unplaced.values(), STATUSES_MAX)):
        was_tried = pod.condition(names.POD_SCHEDULED)
        is_unschedulable = was_tried is not None and was_tried.reason == names.REASON_UNSCHEDULABLE
        nominated = context.nominator.node_of(pod.uid) or pod.status.nominated_node_name
        if not (is_unschedulable or nominated) or not context.owns(pod):
            continue
        reason, wall_s = names.REASON_NEW_NODES_DO_NOT_HELP, context.cluster.wall_clock_s
        patch = status_patch(pod, reason, why, CLEARED, wall_s, was_nominated=bool(nominated))
        if nominated:
            context.nominator.add(pod, "")
            room_is_free(context, pod, nominated, except_uid=pod.uid)
        if patch is not None:
            yield patch


def _events(context: SchedulerContext, key: str, why: str) -> Iterator[EmitEvent]:
    pods = context.cluster.pod_groups.get(key)
    first = min(
        _ours(context, pods),
        key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name),
    )
    group = object_of(context.cluster, key)
    regarding = [POD.reference(first.metadata)]
    if group is not None:
        kind = context.cluster.served_kind(kind_of(key))
        regarding.append(kind.reference(group.metadata))
    for about in regarding:
        yield EmitEvent(
            regarding=about,
            type="Warning",
            reason=names.EVENT_FAILED_SCHEDULING,
            action="Scheduling",
            note=why,
            reporting_controller=first.spec.scheduler_name,
        )
