"""Gangs: which of them wait, and one in full.

Bounds  GANGS_MAX gangs, MEMBERS_MAX pods of one are told, with how many there are. Linear in the
        groups, in slices.
"""

from collections.abc import Mapping
from heapq import nlargest
from typing import Any, Final

from asched.core.cycle.context import SchedulerContext
from asched.core.model.pod import Pod
from asched.core.state.gang import gang_of
from asched.core.state.pod_groups import GroupPods
from asched.edge.host.view.slices import in_slices

GANGS_MAX: Final = 50
MEMBERS_MAX: Final = 500


async def waiting_gangs(context: SchedulerContext) -> dict[str, Any]:
    """Those with pods that have no place, the largest first."""
    found: list[tuple[int, str, GroupPods]] = []
    groups = context.cluster.pod_groups.all()
    async for part in in_slices(groups):
        found += [(len(group.unplaced), key, group) for key, group in part if group.unplaced]
    gangs = [
        {"group": key, "unplaced": unplaced, **_counts(context, key, group)}
        for unplaced, key, group in nlargest(GANGS_MAX, found, key=lambda one: one[:2])
    ]
    return {"count": len(found), "gangs": gangs}


def one_gang(context: SchedulerContext, key: str) -> Mapping[str, Any] | None:
    """A group and where its pods are; None if no pod names it."""
    group = context.cluster.pod_groups.get(key)
    if not group.count:
        return None
    pods = [(pod, "") for pod in group.unplaced.values()]
    pods += [(pod, "held") for uid, pod in group.placed.items() if uid in group.held]
    pods += [(pod, "placed") for uid, pod in group.placed.items() if uid not in group.held]
    return {
        "group": key,
        "unplaced": len(group.unplaced),
        **_counts(context, key, group),
        "pods": [_member(context, pod, place) for pod, place in pods[:MEMBERS_MAX]],
    }


def _counts(context: SchedulerContext, key: str, group: GroupPods) -> dict[str, int]:
    gang = gang_of(context.cluster, key)
    return {
        "placed": len(group.placed),
        "held": len(group.held),
        "minCount": gang.min_count if gang is not None else 0,
    }


def _member(context: SchedulerContext, pod: Pod, place: str) -> Mapping[str, Any]:
    info = context.cluster.placed.get(pod.uid)
    if not place:
        queued = context.queue.places.get(pod.key)
        place = "in flight" if queued is None else context.queue.places.name_of(queued)
        place = "gated" if queued is not None and queued.is_gated else place
    return {"pod": pod.key, "place": place, "node": info.node_name if info is not None else ""}
