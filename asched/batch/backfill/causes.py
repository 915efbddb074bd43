"""Find the cause why a promised start cannot be kept: a text, and its kind for counting.

The text goes into the conditions of the owner's pods, so it names only pods and groups of the same
namespace.

The order of the checks is the order in which one cause explains the next: a removed node, a pod
that has not ended in time, a start that takes precedence, a new pod.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Final

from asched.batch.backfill.reservations import POD_OWNER, Reservation, Reservations
from asched.core.cluster.pods import PodInfo
from asched.core.cycle.context import SchedulerContext
from asched.core.model.timestamp import rfc3339

#: All kinds of causes.
CAUSES: Final = ("node", "overrun", "order", "arrival", "hold", "rules")


def why_moved(context: SchedulerContext, reservation: Reservation) -> tuple[str, str]:
    """The (kind, text) of the cause."""
    causes = chain(
        _nodes(context, reservation),
        _overrun(context, reservation),
        _order(context, reservation),
        _arrivals(context, reservation),
    )
    return next(causes, ("rules", "its places do not suit it any more by the rules of its profile"))


def _nodes(context: SchedulerContext, reservation: Reservation) -> Iterator[tuple[str, str]]:
    nodes = context.cluster.nodes
    for name in reservation.needs:
        row = nodes.row_of.get(name)
        if row is None:
            yield "node", f"node {name} went"
        elif nodes.columns.read("unschedulable")[row]:
            yield "node", f"node {name} was cordoned"


def _overrun(context: SchedulerContext, reservation: Reservation) -> Iterator[tuple[str, str]]:
    cluster = context.cluster
    ledger = cluster.singleton(Reservations)
    for key, uid in reservation.awaited:
        info = cluster.placed.get(uid)
        if info is None:
            continue
        ends = any(
            leaving.pod.uid == uid for leaving, _ in ledger.leaving(info.row, reservation.start_s)
        )
        if not ends or reservation.start_s <= cluster.wall_clock_s:
            if info.pod.metadata.namespace == reservation.namespace:
                late = f"pod {key} does not end by {rfc3339(reservation.start_s)}, as was expected"
            else:
                late = "a pod of another namespace does not end as was expected"
            yield "overrun", late


def _order(context: SchedulerContext, reservation: Reservation) -> Iterator[tuple[str, str]]:
    for other in context.cluster.singleton(Reservations).all():
        is_before = other.order < reservation.order
        if (
            is_before
            and other.made_s >= reservation.made_s
            and other.needs.keys() & reservation.needs.keys()
        ):
            is_own = other.namespace == reservation.namespace
            who = named(other.owner, other) if is_own else "a start of another namespace"
            yield "order", f"{who} goes before it and was moved there"


def _arrivals(context: SchedulerContext, reservation: Reservation) -> Iterator[tuple[str, str]]:
    """Arrived pods; those that need not respect the promise first, since other pods left it enough
    room when they arrived.
    """
    cluster = context.cluster
    arrived = [
        (_pod(reservation, info), name, _why(context, reservation, info))
        for name in reservation.needs
        for info in cluster.pods_on(cluster.nodes.row_of[name]).values()
        if info.pod.uid not in reservation.there
    ]
    for pod, name, why in sorted(arrived, key=lambda arrival: not arrival[2]):
        yield "arrival", f"{pod} came to node {name}{why}"
    for name in reservation.needs:
        if any(cluster.holds.owners_on(cluster.nodes.row_of[name])):
            yield "hold", f"room is held for others on node {name}"


def _pod(reservation: Reservation, info: PodInfo) -> str:
    is_own = info.pod.metadata.namespace == reservation.namespace
    return f"pod {info.pod.key}" if is_own else "a pod of another namespace"


def _why(context: SchedulerContext, reservation: Reservation, info: PodInfo) -> str:
    if info.pod.priority > reservation.priority:
        return ", which is more important"
    runner = context.runners.get(info.pod.spec.scheduler_name)
    if runner is None:
        return " by another scheduler"
    if not any(plugin.name == "Backfill" for plugin in runner.profile.plugins.values()):
        return ", whose profile has no Backfill"
    if any(like.cls is info.cls for like in reservation.likes):
        return ", which is like it"
    return ""


def named(owner: str, reservation: Reservation) -> str:
    """The name of an owner for messages."""
    if owner.startswith(POD_OWNER):
        return f"pod {reservation.likes[0].pod.key}"
    return f"podgroup {owner.rpartition(':')[2]}"
