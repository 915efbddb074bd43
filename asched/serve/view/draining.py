"""Where the pods of a node go: of one that is drained, or, by a dry run, of any other.

Bounds  TRIES searches, if nodes or pods of the search change meanwhile; slices of the cluster's
        budget, other work runs between them.
"""

from typing import Any, Final

from asched.batch.rebalance.draining import (
    NOWHERE,
    WAITS,
    DrainRequest,
    NodeDrain,
    PodFate,
    search_for,
)
from asched.batch.rebalance.units import RebalanceUnits
from asched.core.config.args import RebalanceArgs
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.status import PointError
from asched.serve.view.slices import as_it_is, in_steps

TRIES: Final = 5
NO_PLUGIN: Final = "no profile has the plugin Rebalance"
DRY_RUN: Final = "dryRun of the plugin Rebalance is set: no pod is moved"
UNSTEADY: Final = "nodes and pods keep changing; try again"


async def drain_page(
    context: SchedulerContext, node: str, *, deletes_data: bool
) -> dict[str, Any] | None:
    """None if the node does not exist. `now`: the wall clock, by which requests end; `why`: why no
    pod would be moved at all.
    """
    cluster, units = context.cluster, context.cluster.singleton(RebalanceUnits)
    await as_it_is(cluster)
    if node not in cluster.nodes.row_of:
        return None
    args = next(iter(context.args_by_profile(RebalanceArgs).values()), None)
    drain, active = units.drains.get(node), units.active
    page = {
        "node": node,
        "now": cluster.wall_clock_s,
        "requested": drain is not None,
        "underWay": active is not None and active.cause.subject is drain,
        "moved": 0 if drain is None else drain.moved,
        "why": NO_PLUGIN if args is None else DRY_RUN if args.dry_run else "",
    }
    fates: tuple[PodFate, ...] = ()
    if drain is not None and drain.fates is not None:
        fates = _of_drain(context, drain)
    elif drain is None and args is not None:
        found = await _searched(context, args, node, DrainRequest(0.0, deletes_data))
        fates = found or ()
        page["why"] = page["why"] or ("" if found is not None else UNSTEADY)
    return {**page, "pods": [fate._asdict() for fate in fates]}


def _of_drain(context: SchedulerContext, drain: NodeDrain) -> tuple[PodFate, ...]:
    """What the last search found for the pods that are still on the node."""
    cluster = context.cluster
    row = cluster.nodes.row_of.get(drain.node)
    known = {fate.pod: fate for fate in drain.fates or ()}
    pods = [] if row is None else [info.pod for info in cluster.pods_on(row).values()]
    new = "it was not considered yet"
    return tuple([known.get(pod.key) or PodFate(pod.key, WAITS, new) for pod in pods])


async def _searched(
    context: SchedulerContext, args: RebalanceArgs, node: str, request: DrainRequest
) -> tuple[PodFate, ...] | None:
    for _ in range(TRIES):
        if node not in context.cluster.nodes.row_of:
            return ()
        search = search_for(context, args, node, request)
        try:
            found = await in_steps(context.cluster, search.find())
        except PointError as error:
            return (PodFate("", NOWHERE, str(error)),)
        if not found.is_moved:
            return found.fates
    return None
