"""Report ElasticQuotas that do not count because Kueue has a quota there, in one event each.

Two ledgers for one namespace would disagree, so CapacityScheduling does not apply where there is a
LocalQueue. Without the event, the quota's author would notice only when it is exceeded.

Bounds  a pass over all quotas after a quota or LocalQueue has changed; EVENTS_AT_ONCE events a
        turn; REPORTED_MAX quotas are remembered, a forgotten quota is reported again.
"""

from collections.abc import Iterator
from typing import Final

from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.extension import Extension
from asched.core.framework.effects import EmitEvent
from asched.core.framework.status import MISTAKES
from asched.core.model.kinds import ELASTIC_QUOTA, LOCAL_QUEUE
from asched.core.model.lru import Lru

EVENTS_AT_ONCE: Final = 100
REPORTED_MAX: Final = 4_096
REASON: Final = "QuotaLeftToKueue"
NOTE: Final = (
    "this quota does not count: the namespace has a LocalQueue of Kueue, whose quota does; delete"
    " one of the two"
)


class QuotaWarnings(Extension):
    """ElasticQuotas that do not count because Kueue has a quota there are reported."""

    name = "quotas"

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self._uids = Lru[str, None](REPORTED_MAX)  # of reported quotas
        self._epochs = (-1, -1)

    def is_used(self) -> bool:
        return bool(self._profile())

    def _profile(self) -> str:
        """The first profile that reads quotas; empty if none does."""
        runners = self.context.runners.items()
        return next((n for n, runner in runners if ELASTIC_QUOTA in runner.profile.kinds), "")

    def begin_turn(self) -> Iterator[EmitEvent]:
        """The events of quotas that were not reported yet."""
        cluster = self.context.cluster
        epochs = cluster.epoch_of(ELASTIC_QUOTA), cluster.epoch_of(LOCAL_QUEUE)
        if epochs == self._epochs:
            return
        profile = self._profile()
        queues = {queue.metadata.namespace for queue in cluster.all(LOCAL_QUEUE).values()}
        reported = 0
        for quota in cluster.all(ELASTIC_QUOTA).values() if profile else ():
            uid = quota.metadata.uid
            if quota.metadata.namespace not in queues:
                self._uids.pop(uid)
            elif uid not in self._uids:
                if reported == EVENTS_AT_ONCE:
                    return  # the rest in the next turn
                reported += 1
                self._uids.put(uid, None)
                try:
                    yield EmitEvent(
                        regarding=cluster.spoken(ELASTIC_QUOTA).reference(quota.metadata),
                        type="Warning",
                        reason=REASON,
                        action="Scheduling",
                        note=NOTE,
                        reporting_controller=profile,
                    )
                except MISTAKES as raised:
                    self.context.contain(raised, "quotas", quota.metadata.key)
        self._epochs = epochs
