"""Backfill: a waiting pod gets a reserved start time, which pods that arrive later do not delay.

A gang, or a pod, that fits nowhere gets the earliest start that known ends of pods allow
(`batch/backfill/starts.py`). Until then its nodes may be used by pods that end by that time, or
that leave enough room for it.

Rejects   nodes with a reservation of a waiting pod or gang, from a time on at which this
          pod would still run, if it does not leave that room; evicting pods cannot help.
Retry     a reservation ends or moves, a pod leaves a node, a node appears or changes, a Job gets
          another deadline.
Cost      one pass over the nodes of each reservation that binds the pod.
Source    our own; conservative and EASY backfilling as batch systems have it (Slurm sched/backfill,
          Flux qmanager)
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Final

from asched import names
from asched.batch.backfill.expected_ends import DURATION
from asched.batch.backfill.reservations import Reservations
from asched.core.cluster.changes import ASSIGNED_POD, RESERVATION_MOVED, Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.config.args import BackfillArgs
from asched.core.framework.order_free import OrderFree
from asched.core.framework.points import Codes, FilterPlugin, Scope
from asched.core.framework.registrations import Registration
from asched.core.framework.status import Reason
from asched.core.model.kinds import JOB, NODE, Kind

RESERVED: Final = Reason("node(s) had room that is reserved for waiting pods", resolvable=False)


class Backfill(OrderFree, FilterPlugin):
    name = names.BACKFILL
    scope = Scope.POOL
    reasons = (RESERVED,)
    depends_on = Aspect.PODS | Aspect.ALLOCATABLE | Aspect.TAINTS | Aspect.LIVE
    reads_counts = True
    kinds: ClassVar[tuple[Kind, ...]] = (JOB,)

    def __init__(self, args: BackfillArgs | None, cluster: Cluster) -> None:
        self.args = args or BackfillArgs()
        self._reservations = cluster.singleton(Reservations)
        cluster.classes.tell_apart_by_deadlines()
        if self.args.soft_ends:
            cluster.classes.tell_apart_by((DURATION,))

    def registrations(self) -> Sequence[Registration]:
        grown = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_TAINT
        return (
            Registration(RESERVATION_MOVED),
            Registration(Trigger(ASSIGNED_POD, Action.DELETE)),
            Registration(Trigger(NODE.resource, grown)),
            Registration(Trigger(JOB.resource, Action.UPDATE)),
        )

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:  # noqa: ARG002
        binding = self._reservations.binding(pod)
        return self._reservations.version if binding else 0, tuple(
            [reservation.owner for reservation in binding]
        )

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:  # noqa: ARG002
        return self._reservations.codes(pod, nodes)
