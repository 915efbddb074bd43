"""Report ElasticQuotas that do not count because Kueue has a quota there, in one event each.

Two ledgers for one namespace would disagree, so CapacityScheduling does not apply where there is a
LocalQueue. Without the event, the quota's author would notice only when it is exceeded.

Bounds  a pass over all quotas after a quota or LocalQueue has changed; EVENTS_AT_ONCE events a
        turn; REPORTED_MAX quotas are remembered, a forgotten quota is reported again.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from asched.core.cluster.cluster import Cluster
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.effects import EmitEvent
from asched.core.framework.status import MISTAKES
from asched.core.model.kinds import ELASTIC_QUOTA, LOCAL_QUEUE
from asched.core.model.quota import ElasticQuota

EVENTS_AT_ONCE: Final = 100
REPORTED_MAX: Final = 4_096
REASON: Final = "QuotaLeftToKueue"
NOTE: Final = (
    "this quota does not count: the namespace has a LocalQueue of Kueue, whose quota does; delete"
    " one of the two"
)


class WarnedQuotas:
    """Reported quotas by uid, and the versions at the last pass. Made by `Cluster.singleton`."""

    def __init__(self, _cluster: Cluster) -> None:
        self.uids: OrderedDict[str, None] = OrderedDict()
        self.epochs = (-1, -1)


def look(context: SchedulerContext) -> Iterator[EmitEvent]:
    """The events of quotas that were not reported yet."""
    cluster = context.cluster
    warned = cluster.singleton(WarnedQuotas)
    epochs = cluster.epoch_of(ELASTIC_QUOTA), cluster.epoch_of(LOCAL_QUEUE)
    if epochs == warned.epochs:
        return
    profile = _profile(context)
    queues = {queue.metadata.namespace for queue in cluster.all(LOCAL_QUEUE).values()}
    reported = 0
    for quota in cluster.all(ELASTIC_QUOTA).values() if profile else ():
        uid = quota.metadata.uid
        if quota.metadata.namespace not in queues:
            warned.uids.pop(uid, None)
        elif uid not in warned.uids:
            if reported == EVENTS_AT_ONCE:
                return  # the rest in the next turn
            reported += 1
            warned.uids[uid] = None
            if len(warned.uids) > REPORTED_MAX:
                warned.uids.popitem(last=False)
            try:
                warning = _warning(cluster, quota, profile)
            except MISTAKES as raised:
                context.contain(raised, "quotas", quota.metadata.key)
                continue
            yield warning
    warned.epochs = epochs


def _profile(context: SchedulerContext) -> str:
    """The first profile that reads quotas; empty if none does."""
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
