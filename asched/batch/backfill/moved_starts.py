"""Why a promised start moved.

The text goes into the conditions of the owner's pods, so it names only pods and groups of the same
namespace. The order of the checks is the order in which one cause explains the next: a removed
node, a pod that has not ended in time, a start that takes precedence, a new pod.
"""

from asched.batch.backfill.reservations import POD_OWNER, Reservation, Reservations, date_of
from asched.core.cluster.pods import PodInfo
from asched.core.cycle.context import SchedulerContext


def why_moved(context: SchedulerContext, reservation: Reservation) -> tuple[str, str]:
    """The (kind, text) of the cause."""
    cluster, nodes = context.cluster, context.cluster.nodes
    ledger = cluster.singleton(Reservations)
    for name in reservation.needs:
        row = nodes.row_of.get(name)
        if row is None:
            return "node", f"node {name} went"
        if nodes.columns.read("unschedulable")[row]:
            return "node", f"node {name} was cordoned"
    for key, uid in reservation.awaited:
        info = cluster.placed.get(uid)
        if info is None:
            continue
        leaving = [each.pod.uid for each, _ in ledger.leaving(info.row, reservation.start_s)]
        if uid not in leaving or reservation.start_s <= cluster.steady_s:
            if info.pod.metadata.namespace != reservation.namespace:
                return "overrun", "a pod of another namespace does not end as was expected"
            by = date_of(cluster, reservation.start_s)
            return "overrun", f"pod {key} does not end by {by}, as was expected"
    for other in ledger.all():
        if (
            other.order < reservation.order
            and other.made_s >= reservation.made_s
            and other.needs.keys() & reservation.needs.keys()
        ):
            is_own = other.namespace == reservation.namespace
            who = named(other.owner, other) if is_own else "a start of another namespace"
            return "order", f"{who} goes before it and was moved there"
    rows = {name: nodes.row_of[name] for name in reservation.needs}
    arrived = [
        (_pod(reservation, info), name, _why(context, reservation, info))
        for name, row in rows.items()
        for info in cluster.pods_on(row).values()
        if info.pod.uid not in reservation.there
    ]
    # Pods that need not respect the promise first: other pods left it enough room on arrival.
    if arrived:
        pod, name, why = min(arrived, key=lambda arrival: not arrival[2])
        return "arrival", f"{pod} came to node {name}{why}"
    for name, row in rows.items():
        if cluster.holds.by_row.get(row):
            return "hold", f"room is held for others on node {name}"
    return "rules", "its places do not suit it any more by the rules of its profile"


def _pod(reservation: Reservation, info: PodInfo) -> str:
    is_own = info.pod.metadata.namespace == reservation.namespace
    return f"pod {info.pod.key}" if is_own else "a pod of another namespace"


def _why(context: SchedulerContext, reservation: Reservation, info: PodInfo) -> str:
    if info.pod.priority > reservation.priority:
        return ", which is more important"
    runner = context.runner_of(info.pod)
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
