"""Listeners to facts beside the machine, and writers of statuses."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from asched.core.cluster.facts import Fact
from asched.core.config.args import CapacitySchedulingArgs
from asched.core.cycle.machine import Machine
from asched.core.model.kinds import COSCHEDULING_GROUP, ELASTIC_QUOTA, POD, Kind
from asched.kube.inbox import Listener
from asched.kube.pace import ReflectorOptions
from asched.kube.session import Session
from asched.ops.clashes import Clashes
from asched.ops.group_status import GroupStatus
from asched.ops.quota_status import QuotaStatus
from asched.serve.telemetry.metrics import Metrics


class _OfPods:
    """Facts about pods go to two listeners."""

    def __init__(self, clashes: Clashes, quotas: QuotaStatus) -> None:
        self._clashes = clashes
        self._quotas = quotas

    def hearing(self, put: Callable[[Fact], None]) -> Callable[[Fact], None]:
        return self._clashes.hearing(self._quotas.hearing_pods(put))

    async def run(self) -> None:
        """Run one listener; the other runs with its own kind."""
        await self._clashes.run()


def listeners_of(
    session: Session,
    machine: Machine,
    metrics: Metrics,
    *,
    may_act: Callable[[], bool],
    spawn: Callable[[str, Coroutine[Any, Any, None]], object],
    writes_statuses: bool,
    options: ReflectorOptions | None = None,
) -> Mapping[Kind, Listener]:
    """Listeners by kind; `options` are for streams of their own. `writes_statuses`: include the
    status controllers of PodGroups and ElasticQuotas.
    """
    context = machine.context

    def quota_args() -> Mapping[str, CapacitySchedulingArgs]:
        return context.args_by_profile(CapacitySchedulingArgs)

    clashes = Clashes(
        session, owns=context.owns, may_act=may_act, refused=metrics.own.kubelet_refusals.add
    )
    if not writes_statuses:
        return {POD: clashes}
    quotas = QuotaStatus(
        session,
        context.cluster,
        args=quota_args,
        may_act=may_act,
        wrote=metrics.own.quota_statuses.add,
    )
    groups = GroupStatus(
        session,
        coscheduled=lambda: context.gangs.coscheduled,
        may_act=may_act,
        spawn=spawn,
        written=metrics.own.group_statuses.add,
        options=options,
    )
    return {POD: _OfPods(clashes, quotas), COSCHEDULING_GROUP: groups, ELASTIC_QUOTA: quotas}
