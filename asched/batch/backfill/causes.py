"""Why a start that was promised cannot be kept: one cause, in words, and its kind for counting.

The owner of the promise reads the words in its pods' conditions. So they name pods and groups of
its own namespace only.

Asked in the order in which a cause explains the others: a node that went, somebody who has not
ended in time, somebody who goes before, somebody who came.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Final

from asched.core.cycle.context import SchedulerContext
from asched.core.model.timestamp import rfc3339
from asched.core.state.pods import PodInfo
from asched.core.state.reservations import POD_OWNER, Reservation, Reservations

#: The kinds there are.
CAUSES: Final = ("node", "overrun", "order", "arrival", "hold", "rules")


def why_moved(context: SchedulerContext, one: Reservation) -> tuple[str, str]:
    """(kind, words)."""
    causes = chain(
        _nodes(context, one),
        _overrun(context, one),
        _order(context, one),
        _arrivals(context, one),
    )
    return next(causes, ("rules", "its places do not suit it any more by the rules of its profile"))


def _nodes(context: SchedulerContext, one: Reservation) -> Iterator[tuple[str, str]]:
    nodes = context.cluster.nodes
    for name in one.needs:
        row = nodes.row_of.get(name)
        if row is None:
            yield "node", f"node {name} went"
        elif nodes.columns.read("unschedulable")[row]:
            yield "node", f"node {name} was cordoned"


def _overrun(context: SchedulerContext, one: Reservation) -> Iterator[tuple[str, str]]:
    cluster = context.cluster
    ledger = cluster.singleton(Reservations)
    for key, uid in one.awaited:
        info = cluster.placed.get(uid)
        if info is None:
            continue
        ends = any(left.pod.uid == uid for left, _ in ledger.leaving(info.row, one.start_s))
        if not ends or one.start_s <= cluster.wall_clock_s:
            if info.pod.metadata.namespace == one.namespace:
                late = f"pod {key} does not end by {rfc3339(one.start_s)}, as was expected"
            else:
                late = "a pod of another namespace does not end as was expected"
            yield "overrun", late


def _order(context: SchedulerContext, one: Reservation) -> Iterator[tuple[str, str]]:
    for other in context.cluster.singleton(Reservations).all():
        is_before = other.order < one.order
        if is_before and other.made_s >= one.made_s and other.needs.keys() & one.needs.keys():
            is_own = other.namespace == one.namespace
            who = named(other.owner, other) if is_own else "a start of another namespace"
            yield "order", f"{who} goes before it and was moved there"


def _arrivals(context: SchedulerContext, one: Reservation) -> Iterator[tuple[str, str]]:
    """Those first whom the promise does not bind: the others left it enough when they came."""
    cluster = context.cluster
    came = [
        (_pod(one, info), name, _why(context, one, info))
        for name in one.needs
        for info in cluster.pods_on(cluster.nodes.row_of[name]).values()
        if info.pod.uid not in one.there
    ]
    for pod, name, why in sorted(came, key=lambda one: not one[2]):
        yield "arrival", f"{pod} came to node {name}{why}"
    for name in one.needs:
        if any(cluster.holds.owners_on(cluster.nodes.row_of[name])):
            yield "hold", f"room is held for others on node {name}"


def _pod(one: Reservation, info: PodInfo) -> str:
    is_own = info.pod.metadata.namespace == one.namespace
    return f"pod {info.pod.key}" if is_own else "a pod of another namespace"


def _why(context: SchedulerContext, one: Reservation, info: PodInfo) -> str:
    if info.pod.priority > one.priority:
        return ", which is more important"
    runner = context.runners.get(info.pod.spec.scheduler_name)
    if runner is None:
        return " by another scheduler"
    if not any(plugin.name == "Backfill" for plugin in runner.profile.plugins.values()):
        return ", whose profile has no Backfill"
    if any(like.cls is info.cls for like in one.likes):
        return ", which is like it"
    return ""


def named(owner: str, one: Reservation) -> str:
    """As people call it."""
    if owner.startswith(POD_OWNER):
        return f"pod {one.likes[0].pod.key}"
    return f"podgroup {owner.rpartition(':')[2]}"
