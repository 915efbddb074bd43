"""Which pods must be evicted from a node so that a pod fits there, and within the quotas.

Source  kubernetes-sigs/scheduler-plugins pkg/capacityscheduling (SelectVictimsOnNode)
"""

from typing import Final

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.framework.status import Reason, Status
from asched.core.framework.trial import Candidate, Trial
from asched.core.plugins.capacity.quotas import (
    Amounts,
    Quotas,
    exceeds,
    exceeds_max,
    is_borrowing,
    total,
)
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.pods_by_priority import in_line
from asched.core.preemption.victims import NO_VICTIMS

OVER: Final = Reason("global quota max exceeded", resolvable=True)


class Victims:
    """For one preemptor. `in_namespace` and `in_all`: requests with nominated pods, of its
    namespace and of all.
    """

    def __init__(
        self,
        cluster: Cluster,
        quotas: Quotas,
        budgets: Budgets,
        pod: PodInfo,
        in_namespace: Amounts,
        in_all: Amounts,
    ) -> None:
        self._cluster = cluster
        self._quotas = quotas
        self._budgets = budgets
        self._pod = pod
        self._namespace = pod.pod.metadata.namespace
        self._quota = quotas.of(self._namespace)
        self._in_namespace, self._in_all = in_namespace, in_all
        self.guarantees_min = False
        self._usage = cluster.usage.kept()
        used = self._usage.of(self._namespace)
        self._borrows = self._quota is None or exceeds(used, in_namespace, self._quota.min)
        #: namespace -> use there, without the pods that were removed in the trial
        self._in_trial: dict[str, dict[str, int]] = {}
        self._all: Amounts = dict(quotas.used()) if self._quota is not None else {}

    def are_leaving(self, node: str) -> bool:
        """Whether terminating pods on the nominated node will make room for the pod."""
        row = self._cluster.nodes.row_of.get(node) if node else None
        if row is None:
            return False
        self._in_trial.clear()
        return any(
            info.pod.is_terminating and self._may_go(info)
            for info in self._cluster.pods_on(row).values()
        )

    def on(self, row: int, trial: Trial) -> Candidate | Status:
        """The victims on a row, or why it is no candidate."""
        self._in_trial.clear()
        gone: list[PodInfo] = []
        for info in reversed(in_line(self._cluster.pods_on(row).values())):
            if self._may_go(info):
                gone.append(info)
                self._move(info, -1)
        if not gone:
            return NO_VICTIMS.status
        with self._cluster.supposing().gone(gone, row) as suppose:
            status = trial.status_of(self._pod, row)
            if status is not None:
                return status
            asked = self._pod.cls.accounted
            if self._is_over(asked, asked):
                return OVER.status
            line = in_line(gone)
            over = self._budgets.violations(line)
            order = [i for i, v in zip(line, over, strict=True) if v]
            protected = len(order)
            order += [i for i, v in zip(line, over, strict=True) if not v]
            victims: list[PodInfo] = []
            violations = 0
            for position, info in enumerate(order):
                suppose.there((info,), row)
                self._move(info, 1)
                fits = trial.status_of(self._pod, row) is None
                if not fits or self._is_over(self._in_namespace, self._in_all):
                    suppose.back()
                    self._move(info, -1)
                    victims.append(info)
                    violations += position < protected
        if not victims:
            return NO_VICTIMS.status
        node = self._cluster.nodes.node_at[row]
        assert node is not None
        return Candidate(node.name, row, tuple(in_line(victims)), violations)

    def _may_go(self, info: PodInfo) -> bool:
        namespace, priority = info.pod.metadata.namespace, self._pod.pod.priority
        quota = self._quotas.of(namespace)
        if self._quota is None:
            return quota is None and info.pod.priority < priority
        if quota is None:
            return False
        if self._borrows:
            return namespace == self._namespace and info.pod.priority < priority
        return namespace != self._namespace and is_borrowing(quota, self._used(namespace))

    def _used(self, namespace: str) -> Amounts:
        in_trial = self._in_trial.get(namespace)
        return self._usage.of(namespace) if in_trial is None else in_trial

    def _move(self, info: PodInfo, sign: int) -> None:
        namespace = info.pod.metadata.namespace
        if self._quotas.of(namespace) is None:
            return
        in_trial = self._in_trial.get(namespace)
        if in_trial is None:
            in_trial = self._in_trial[namespace] = dict(self._usage.of(namespace))
        for name, amount in info.cls.accounted.items():
            in_trial[name] = in_trial.get(name, 0) + sign * amount

    def _is_over(self, in_namespace: Amounts, in_all: Amounts) -> bool:
        """Whether the quotas forbid the pod, once the removed pods are gone."""
        quota = self._quota
        if quota is None:
            return False
        used = self._used(self._namespace)
        if exceeds_max(used, in_namespace, quota.max):
            return True
        if self.guarantees_min and not exceeds(used, in_namespace, quota.min):
            return False
        together = dict(self._all)
        for namespace, in_trial in self._in_trial.items():
            before = self._usage.of(namespace)
            for name in before.keys() | in_trial.keys():
                together[name] = together.get(name, 0) + in_trial.get(name, 0) - before.get(name, 0)
        return exceeds({}, total((together, in_all)), self._quotas.guaranteed)
