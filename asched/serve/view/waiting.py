"""Why pods wait: all queued pods, grouped by the result of their last attempt; gangs; and what is
promised to waiting pods: held places, and starts.

Two pods are in one group if the same plugins gave the same reasons, for any number of nodes, or if
the same plugin gates them.

Bounds  GROUPS_MAX groups are shown, and EXAMPLES_MAX pods of each; REASONS_MAX different reasons
        are distinguished, further ones count together; OWNERS_MAX requests, those with the most
        slots; GANGS_MAX gangs, MEMBERS_MAX pods of one, with the totals. Linear in the waiting
        pods, groups and bookings, in slices.
"""

from collections.abc import Mapping, Sequence
from heapq import nlargest
from typing import Any, Final

import msgspec

from asched import names
from asched.batch.backfill.reservations import POD_OWNER, Reservations, date_of
from asched.batch.backfill.starts import named
from asched.batch.groups.incomplete import why_incomplete
from asched.batch.provisioning.book import Booking, Bookings
from asched.batch.rebalance.units import RebalanceUnits
from asched.core.cluster.consumers import request_of
from asched.core.cluster.gang import gang_of, kind_of, object_of
from asched.core.cluster.pod_groups import GroupPods, coscheduled_key
from asched.core.cluster.shortages import amounts_of
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.decision_records import RecordedRejection
from asched.core.cycle.history import DecisionStep, Histories
from asched.core.model.pod import Pod
from asched.core.model.requests import written
from asched.core.queue.queue import SchedulingQueue
from asched.core.queue.queued import QueuedPod
from asched.insight.explain.places import BOUND, place_of
from asched.serve.view.slices import in_slices

GROUPS_MAX: Final = 50
EXAMPLES_MAX: Final = 10
REASONS_MAX: Final = 1_000
#: Maximum length of a reason, which users' plugins choose.
REASON_CHARS: Final = 300
#: Verdicts shown per group, those of most nodes first.
VERDICTS_MAX: Final = 8

RESULTS: Final = (DecisionStep.REJECTED, DecisionStep.ERROR, DecisionStep.FAILED)
NOT_TRIED: Final = ("", "not tried yet")
OTHERS: Final = ("", "other reasons")

#: ((plugin, reason) ...)
Why = tuple[tuple[str, str], ...]


class _Group(msgspec.Struct):
    pods: int = 0
    oldest_s: float = 0.0
    examples: list[str] = msgspec.field(default_factory=list)


def why_of(queued: QueuedPod, histories: Histories) -> Why:
    """Why a pod waits, by its last attempt."""
    if queued.gated_by:
        return ((queued.gated_by, "gates it before the first attempt"),)
    line = histories.newest(queued.key, RESULTS)
    if line is None:
        if queued.rejectors:  # the history has been dropped
            return tuple((plugin, "") for plugin in sorted(queued.rejectors))
        return (NOT_TRIED,)
    if line.step is DecisionStep.REJECTED:
        summary = RecordedRejection(*line.details).summary
        return tuple(sorted({(plugin, reason[:REASON_CHARS]) for plugin, _, reason, _ in summary}))
    return (("", str(line.details)[:REASON_CHARS]),)


async def grouped(queue: SchedulingQueue, histories: Histories, now_s: float) -> dict[str, Any]:
    """The largest groups first; `now_s` is the queue's time."""
    groups: dict[Why, _Group] = {}
    pods = queue.places.all()
    async for part in in_slices(pods):
        for queued in part:
            why = why_of(queued, histories)
            group = groups.get(why)
            if group is None:
                why = why if len(groups) < REASONS_MAX else (OTHERS,)
                group = groups.setdefault(why, _Group(oldest_s=queued.timestamp_s))
            group.pods += 1
            since_s = queued.initial_attempt_s or queued.timestamp_s
            group.oldest_s = min(group.oldest_s, since_s)
            if len(group.examples) < EXAMPLES_MAX:
                group.examples.append(queued.key)
    most = sorted(groups.items(), key=lambda item: -item[1].pods)[:GROUPS_MAX]
    shown = sum(group.pods for _, group in most)
    return {
        "pods": len(pods),
        "groups": [_described(why, group, histories, now_s) for why, group in most],
        "otherGroups": len(groups) - len(most),
        "otherPods": len(pods) - shown,
    }


def _described(why: Why, group: _Group, histories: Histories, now_s: float) -> Mapping[str, Any]:
    """Node counts are those of the first example."""
    counts: dict[tuple[str, str], int] = {}
    line = histories.newest(group.examples[0], (DecisionStep.REJECTED,))
    if line is not None:
        for plugin, _, reason, nodes in RecordedRejection(*line.details).summary:
            key = plugin, reason[:REASON_CHARS]
            counts[key] = counts.get(key, 0) + nodes
    verdicts: Sequence[tuple[str, str]] = sorted(why, key=lambda reason: -counts.get(reason, 0))
    return {
        "pods": group.pods,
        "oldestSeconds": round(max(now_s - group.oldest_s, 0.0), 1),
        "reasons": [
            {"plugin": plugin, "reason": reason, "nodes": counts.get((plugin, reason), 0)}
            for plugin, reason in verdicts[:VERDICTS_MAX]
        ],
        "otherReasons": max(len(verdicts) - VERDICTS_MAX, 0),
        "examples": group.examples,
    }


OWNERS_MAX: Final = 10


def holds_for(context: SchedulerContext, pod: Pod) -> list[dict[str, Any]]:
    """By request: the number of slots, of nodes, and the seconds left; `own` is true for the
    request that the pod itself consumes.
    """
    own, cluster = request_of(pod), context.cluster
    bookings = cluster.singleton(Bookings).all()
    largest = nlargest(OWNERS_MAX, bookings, key=lambda booking: (_places(booking), booking.key))
    return [
        {
            "owner": f"provisioningrequest/{booking.key}",
            "own": booking.key == own,
            "places": _places(booking),
            "nodes": len({node for _, node in list(booking.free_on)}),
            "seconds": max(round(booking.until_s - cluster.steady_s), 0),
        }
        for booking in largest
        if _places(booking)
    ]


def _places(booking: Booking) -> int:
    return sum(len(slots) for slots in list(booking.free.values()))


def moves_for(context: SchedulerContext, pod: Pod) -> dict[str, Any] | None:
    """What the last search for moves found for a pod or its gang, and the seconds until the next
    one; None if it is not tracked.
    """
    units = context.cluster.singleton(RebalanceUnits)
    unit = units.tracked.get(context.gangs.key_of(pod)) or units.tracked.get(pod.uid)
    if unit is None:
        return None
    is_active = units.active is not None and units.active.cause.subject is unit
    return {
        "text": unit.text.removeprefix("; "),
        "moved": unit.moved,
        "underWay": is_active,
        "seconds": 0 if is_active else max(round(unit.search_s - context.now_s), 0),
    }


def drain_of(context: SchedulerContext, pod: Pod) -> dict[str, str] | None:
    """Where a place is held for the successor of a pod whose node is drained; None if it is not."""
    units = context.cluster.singleton(RebalanceUnits)
    drain, active = units.drains.get(pod.spec.node_name), units.active
    if drain is None:
        return None
    is_active = active is not None and active.cause.subject is drain
    place = active.places.place_of(pod.uid) if is_active else ""
    return {"node": drain.node, "place": place}


#: Promised starts of other owners shown for a waiting pod, earliest first.
OTHERS_MAX: Final = 10
NODES_MAX: Final = 20


def start_of(context: SchedulerContext, owner: str) -> dict[str, Any] | None:
    """None without a promise. `first` is the earliest start that was promised."""
    promise = context.cluster.singleton(Reservations).of(owner)
    if promise is None:
        return None
    return {
        "at": date_of(context.cluster, promise.start_s + 1),
        "certainty": "hard" if promise.is_hard else "soft",
        "first": date_of(context.cluster, promise.first_s + 1),
        "cause": promise.cause,
        "count": len(promise.needs),
        "nodes": list(promise.needs)[:NODES_MAX],
    }


def start_of_pod(context: SchedulerContext, pod: Pod) -> dict[str, Any] | None:
    """The start of the pod's gang, or its own."""
    return start_of(context, context.gangs.key_of(pod)) or start_of(context, POD_OWNER + pod.uid)


def starts_of_others(context: SchedulerContext, pod: Pod) -> list[dict[str, Any]]:
    """Promised starts that keep a pod off nodes."""
    binding = context.cluster.singleton(Reservations).binding(context.cluster.classes.info_of(pod))
    return [
        {
            "owner": named(promise.owner, promise),
            "at": date_of(context.cluster, promise.start_s + 1),
            "nodes": len(promise.needs),
        }
        for promise in sorted(binding, key=lambda promise: promise.start_s)[:OTHERS_MAX]
    ]


GANGS_MAX: Final = 50
MEMBERS_MAX: Final = 500


async def waiting_gangs(context: SchedulerContext) -> dict[str, Any]:
    """Groups with pods that have no node, the largest first."""
    found: list[tuple[int, str, GroupPods]] = []
    groups = context.cluster.pod_groups.all()
    async for part in in_slices(groups):
        found += [(len(group.unplaced), key, group) for key, group in part if group.unplaced]
    gangs = [
        {"group": key, "unplaced": unplaced, **_counts(context, key, group)}
        for unplaced, key, group in nlargest(GANGS_MAX, found, key=lambda item: item[:2])
    ]
    return {"count": len(found), "gangs": gangs}


def one_gang(context: SchedulerContext, key: str) -> Mapping[str, Any] | None:
    """A group by "namespace/name" and its pods; if two APIs have one of this name, that of
    scheduling.k8s.io. None if neither its object nor a pod of it exists.
    """
    found = (name for name in (key, coscheduled_key(key)) if _is_known(context, name))
    key = next(found, "")
    if not key:
        return None
    group = context.cluster.pod_groups.get(key)
    pods = [(pod, "") for pod in group.unplaced.values()]
    pods += [(pod, "held") for uid, pod in group.placed.items() if uid in group.held]
    pods += [(pod, "") for uid, pod in group.placed.items() if uid not in group.held]
    return {
        "group": key,
        "api": kind_of(key).group_version.partition("/")[0],
        "unplaced": len(group.unplaced),
        **_counts(context, key, group),
        "pods": [_member(context, pod, place) for pod, place in pods[:MEMBERS_MAX]],
        "lacks": why_incomplete(context, key),
        **_rejection(context, group),
        **_promised(context, key),
    }


def _is_known(context: SchedulerContext, key: str) -> bool:
    return bool(context.cluster.pod_groups.get(key).count) or (
        object_of(context.cluster, key) is not None
    )


def _rejection(context: SchedulerContext, group: GroupPods) -> dict[str, str]:
    """The last message of its waiting pods, and the first of them without a feasible node."""
    shown: dict[str, str] = {}
    for pod in group.unplaced.values():
        condition = pod.condition(names.POD_SCHEDULED)
        if condition is not None and condition.message:
            shown.setdefault("said", condition.message)
        last = context.histories.of(pod.key)[-1:]
        if last and last[0].step is DecisionStep.REJECTED:
            shown.setdefault("rejected", pod.key)
    return shown


def _promised(context: SchedulerContext, key: str) -> dict[str, Any]:
    """Its minResources, and its promised start."""
    gang, shown = gang_of(context.cluster, key), dict[str, Any]()
    if gang is not None and gang.min_resources:
        shown["minResources"] = _written(amounts_of(gang.min_resources))
    if (start := start_of(context, key)) is not None:
        shown["start"] = start
    return shown


def _written(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: written(name, amount) for name, amount in amounts.items()}


def _counts(context: SchedulerContext, key: str, group: GroupPods) -> dict[str, int]:
    gang = gang_of(context.cluster, key)
    return {
        "placed": len(group.placed),
        "held": len(group.held),
        "minCount": gang.min_count if gang is not None else 0,
    }


def _member(context: SchedulerContext, pod: Pod, place: str) -> Mapping[str, Any]:
    found = place_of(context, pod)
    place = place or ("placed" if found["place"] == BOUND else found["place"])
    return {"pod": pod.key, "place": place, "node": found.get("node", "")}
