"""The pools of the configuration: who holds them, and the pods that wait in each.

Bounds  linear in the waiting pods, in slices.
"""

from collections import Counter
from typing import Any

from asched import names
from asched.core.cluster.pools import SEVERAL
from asched.core.config.pools import TO_SHARE
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.history import Histories
from asched.kube.running import PoolHolders
from asched.serve.view.slices import in_slices
from asched.serve.view.waiting import why_of


async def pool_rows(
    context: SchedulerContext, histories: Histories, holders: PoolHolders | None
) -> list[dict[str, Any]]:
    """One for each pool, and one without a name for pods of several pools; empty without pools.
    `stopped`: pods with a rule that may concern pods of other pools. `gapSeconds`: how long no
    replica decided for the pool before this one took it; None for the pools of other replicas.
    """
    pools = context.pools
    if pools is None:
        return []
    waiting, stopped = Counter[int](), Counter[int]()
    async for part in in_slices(context.queue.places.all()):
        for queued in part:
            pool = pools.of_waiting(queued.pod)
            waiting[pool] += 1
            stopped[pool] += any(
                plugin == names.NODE_POOLS and TO_SHARE in reason
                for plugin, reason in why_of(queued, histories)
            )
    named = dict(enumerate(pools.names))
    rows = [
        {
            "name": name,
            "holder": holders.holder(name) if holders is not None else "",
            "waiting": waiting.pop(pool, 0),
            "stopped": stopped[pool],
            "gapSeconds": holders.gap_s(name) if holders is not None else None,
        }
        for pool, name in named.items()
    ]
    if waiting:
        rows.append(
            {
                "name": "",
                "holder": "",
                "waiting": waiting.total(),
                "stopped": stopped[SEVERAL],
                "gapSeconds": None,
            }
        )
    return rows
