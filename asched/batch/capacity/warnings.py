"""ElasticQuotas that do not count, since Kueue keeps a quota there: each is told so in one event.

Two ledgers for one namespace would disagree, so CapacityScheduling gives way where there is a
LocalQueue. Whoever wrote the quota would else find out when it is exceeded.

Bounds  a look at all quotas after one or a LocalQueue has moved; EVENTS_AT_ONCE events a turn;
        TOLD_MAX quotas are remembered, a forgotten one is told again.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from asched.core.cycle.context import SchedulerContext
from asched.core.framework.effects import EmitEvent
from asched.core.framework.status import MISTAKES
from asched.core.model.kinds import ELASTIC_QUOTA, LOCAL_QUEUE
from asched.core.model.quota import ElasticQuota
from asched.core.state.cluster import Cluster

EVENTS_AT_ONCE: Final = 100
TOLD_MAX: Final = 4_096
REASON: Final = "QuotaLeftToKueue"
NOTE: Final = (
    "this quota does not count: the namespace has a LocalQueue of Kueue, whose quota does; delete"
    " one of the two"
)


class WarnedQuotas:
    """The quotas that were told, by uid, and what was looked at last: for `Cluster.singleton`."""

    def __init__(self, _cluster: Cluster) -> None:
        self.uids: OrderedDict[str, None] = OrderedDict()
        self.epochs = (-1, -1)


def look(context: SchedulerContext) -> Iterator[EmitEvent]:
    """What is to be said of quotas that were seen since the last look."""
    cluster = context.cluster
    told = cluster.singleton(WarnedQuotas)
    epochs = cluster.epoch_of(ELASTIC_QUOTA), cluster.epoch_of(LOCAL_QUEUE)
    if epochs == told.epochs:
        return
    profile = _profile(context)
    queues = {queue.metadata.namespace for queue in cluster.all(LOCAL_QUEUE).values()}
    said = 0
    for quota in cluster.all(ELASTIC_QUOTA).values() if profile else ():
        uid = quota.metadata.uid
        if quota.metadata.namespace not in queues:
            told.uids.pop(uid, None)
        elif uid not in told.uids:
            if said == EVENTS_AT_ONCE:
                return  # the rest in the next turn
            said += 1
            told.uids[uid] = None
            if len(told.uids) > TOLD_MAX:
                told.uids.popitem(last=False)
            try:
                warning = _warning(cluster, quota, profile)
            except MISTAKES as raised:
                context.contain(raised, "quotas", quota.metadata.key)
                continue
            yield warning
    told.epochs = epochs


def _profile(context: SchedulerContext) -> str:
    """The first one that reads quotas; empty if none does."""
    for name, runner in context.runners.items():
        if ELASTIC_QUOTA in runner.profile.kinds:
            return name
    return ""


def _warning(cluster: Cluster, quota: ElasticQuota, profile: str) -> EmitEvent:
    return EmitEvent(
        regarding=cluster.spoken(ELASTIC_QUOTA).reference(quota.metadata),
        type="Warning",
        reason=REASON,
        action="Scheduling",
        note=NOTE,
        reporting_controller=profile,
    )
