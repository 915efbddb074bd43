"""Gangs that wait, and one of them with its pods.

Bounds  GANGS_MAX gangs, MEMBERS_MAX pods of one, with the totals. Linear in the groups, in slices.
"""

from collections.abc import Mapping
from heapq import nlargest
from typing import Any, Final

from asched import names
from asched.batch.groups.incomplete import why_incomplete
from asched.core.cluster.gang import gang_of, kind_of, object_of
from asched.core.cluster.pod_groups import GroupPods, coscheduled_key
from asched.core.cluster.shortages import amounts_of
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.history import DecisionStep
from asched.core.model.pod import Pod
from asched.core.model.requests import written
from asched.insight.explain.places import BOUND, place_of
from asched.serve.view.promises import start_of
from asched.serve.view.slices import in_slices

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
