"""CapacityScheduling: namespaces are guaranteed a minimum, and lend the unused part of it.

A namespace with an ElasticQuota may use up to `max`, and all of them together the sum of their
`min`. A namespace within its `min` takes back what other namespaces borrowed.

Rejects   a pod of a namespace with a quota whose use would exceed its max, or all uses the sum of
          all min; nominated pods of the namespace count that are as important, and those of other
          namespaces that are within their min. What namespaces use is what their placed pods ask
          for.
Makes room  on one node. Within its min, a pod takes the place of pods whose namespaces borrow,
          whatever their priority; beyond it, of less important pods of its own namespace. A pod
          without a quota takes the place of less important pods without one.
Retry     a pod leaves its node, or a quota changes.
Cost      one pass over the nominated pods in each attempt of such a namespace; making
          room: one trial for each node with pods that may be evicted.
Source    kubernetes-sigs/scheduler-plugins pkg/capacityscheduling
"""

from collections import Counter
from collections.abc import Collection, Generator, Hashable, Sequence
from typing import ClassVar, Final

import msgspec

from asched import names
from asched.core.cluster.changes import ASSIGNED_POD, Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import CapacitySchedulingArgs
from asched.core.framework.effects import Effect
from asched.core.framework.points import (
    IDLE,
    Nomination,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
    Scope,
)
from asched.core.framework.preemption_trial import Candidate, Trial
from asched.core.framework.registrations import Registration
from asched.core.framework.rejection import Rejection, fit_error
from asched.core.framework.results.draw import draw
from asched.core.framework.status import SUCCESS, Reason, Status, unschedulable
from asched.core.model.kinds import ELASTIC_QUOTA, Kind
from asched.core.model.lru import Lru
from asched.core.plugins.capacity.quotas import (
    Amounts,
    Quotas,
    add,
    exceeds,
    exceeds_max,
    is_borrowing,
    total,
)
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.cost import best_of
from asched.core.preemption.eviction import Eviction
from asched.core.preemption.no_eviction import NEVER, VICTIMS_LEAVING, prefixed
from asched.core.preemption.pods_by_priority import by_importance
from asched.core.preemption.under_way import Preemptor, UnderWay
from asched.core.preemption.victims import NO_VICTIMS, reprieve

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
        for info in reversed(by_importance(self._cluster.pods_on(row).values())):
            if self._may_go(info):
                gone.append(info)
                self._move(info, -1)
        if not gone:
            return NO_VICTIMS.status
        with self._cluster.supposing().gone(gone, row) as suppose:
            status = trial.status_of(self._pod, row)
            if status is not None:
                return status
            accounted = self._pod.cls.accounted
            if self._is_over(accounted, accounted):
                return OVER.status

            def stays(info: PodInfo) -> bool:
                self._move(info, 1)
                fits = trial.status_of(self._pod, row) is None
                if fits and not self._is_over(self._in_namespace, self._in_all):
                    return True
                self._move(info, -1)
                return False

            victims, violations = reprieve(suppose, by_importance(gone), row, self._budgets, stays)
        if not victims:
            return NO_VICTIMS.status
        node = self._cluster.nodes.node_at[row]
        assert node is not None
        return Candidate(node.name, row, victims, violations)

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


#: Steps of the budget for one potential victim.
POD_STEPS: Final = 5
#: Attempts that paused during the search for victims and are kept; the oldest is dropped and
#: starts again.
TRIED_MAX: Final = 64


class CapacityScheduling(PreFilterPlugin, PostFilterPlugin):
    name = names.CAPACITY_SCHEDULING
    scope = Scope.CLUSTER
    listed_at = frozenset({"reserve"})  # upstream's counts there; here the columns count
    kinds: ClassVar[tuple[Kind, ...]] = (ELASTIC_QUOTA,)
    preempts = True

    def __init__(self, args: CapacitySchedulingArgs | None, cluster: Cluster) -> None:
        self.args = args or CapacitySchedulingArgs()
        self._cluster = cluster
        self._quotas = cluster.singleton(Quotas)
        self._nominator = cluster.nominator
        self._budgets = cluster.singleton(Budgets)
        self._under_way = cluster.singleton(UnderWay)
        self._tried: Lru[str, _Tried] = Lru(TRIED_MAX)

    def registrations(self) -> Sequence[Registration]:
        return (
            Registration(Trigger(ASSIGNED_POD, Action.DELETE)),
            Registration(Trigger(ELASTIC_QUOTA.resource, Action.ALL)),
        )

    def share_key(self, pod: PodInfo) -> Hashable:
        """Pods of namespaces without a quota pass, until their namespace gets one."""
        has_quota = self._quotas.of(pod.pod.metadata.namespace) is not None
        return pod.cls.number if has_quota else IDLE

    def reach(self, pod: PodInfo) -> Collection[str]:
        """All namespaces with a quota share the sum of all min."""
        if self._quotas.of(pod.pod.metadata.namespace) is None:
            return ()
        return self._quotas.namespaces()

    # --- whether there is quota ------------------------------------------------------------------

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        namespace = pod.pod.metadata.namespace
        quota = self._quotas.of(namespace)
        if quota is None:
            return PreFilterResult()
        used = self._cluster.usage.kept().of(namespace)
        in_namespace, in_all = self.wanted(pod)
        prefix = f"Pod {pod.pod.key} is rejected in PreFilter because"
        if exceeds_max(used, in_namespace, quota.max):
            return PreFilterResult(
                unschedulable(f"{prefix} ElasticQuota {namespace} is more than Max")
            )
        if self.args.guarantees_min and not exceeds(used, in_namespace, quota.min):
            return PreFilterResult()
        if exceeds({}, total((self._quotas.used(), in_all)), self._quotas.guaranteed):
            return PreFilterResult(
                unschedulable(f"{prefix} total ElasticQuota used is more than min")
            )
        return PreFilterResult()

    def wanted(self, pod: PodInfo) -> tuple[Amounts, Amounts]:
        """Requests of the pod and of nominated pods: in its namespace, and in all namespaces."""
        in_namespace, in_all = dict(pod.cls.accounted), dict(pod.cls.accounted)
        usage, namespace = self._cluster.usage.kept(), pod.pod.metadata.namespace
        for pods in self._nominator.nodes().values():
            for uid, other in pods.items():
                other_namespace = other.metadata.namespace
                quota = self._quotas.of(other_namespace)
                if uid == pod.pod.uid or quota is None or uid in self._cluster.placed:
                    continue
                accounted = self._cluster.classes.class_of(other).accounted
                if other_namespace == namespace:
                    if other.priority >= pod.pod.priority:
                        add(in_namespace, accounted)
                        add(in_all, accounted)
                elif not is_borrowing(quota, usage.of(other_namespace)):
                    add(in_all, accounted)
        return in_namespace, in_all

    # --- making room -----------------------------------------------------------------------------

    def post_filter(
        self, pod: PodInfo, rejection: Rejection, trial: Trial
    ) -> PostFilterResult | Generator[Effect, Answer, PostFilterResult]:
        now = self._cluster.pods_seen.get(pod.pod.key)
        if now is None or now.spec.preemption_policy == "Never":
            return prefixed(unschedulable(NEVER))
        in_namespace, in_all = self.wanted(pod)
        victims = Victims(self._cluster, self._quotas, self._budgets, pod, in_namespace, in_all)
        victims.guarantees_min = self.args.guarantees_min
        nominated = trial.nominator.node_of(pod.pod.uid) or now.status.nominated_node_name
        if victims.are_leaving(nominated):
            return prefixed(unschedulable(VICTIMS_LEAVING), Nomination())
        found = self._room_made(pod, rejection, trial, victims)
        chosen = _still(found, victims, trial)
        if chosen is None:
            count = rejection.node_count
            reasons = dict(found.reasons) or {NO_VICTIMS.status.message: count}
            return prefixed(unschedulable(fit_error(count, "", reasons, "")), Nomination(""))
        preemptor = Preemptor.of_pod(now, chosen.node)
        eviction = Eviction(self.name, preemptor, chosen.victims, trial, self._under_way)
        return PostFilterResult(
            SUCCESS,
            Nomination(chosen.node),
            eviction.begin(),
            tuple(info.pod.key for info in chosen.victims),
            eviction.withdraw,
        )

    def _room_made(
        self, pod: PodInfo, rejection: Rejection, trial: Trial, victims: Victims
    ) -> "_Tried":
        """Results of the trials of all rows. Raises OutOfTurn; the trials made until then
        are kept.
        """
        self._budgets.catch_up()
        tried = self._tried.get(pod.pod.uid) or _Tried()
        self._tried.put(pod.pod.uid, tried)
        for row in rejection.candidates.tolist():
            if row in tried.rows:
                continue
            pods = len(self._cluster.pods_on(row))
            self._cluster.budget.charge(1 + POD_STEPS * pods)
            tried.rows.add(row)
            found = victims.on(row, trial)
            if isinstance(found, Candidate):
                tried.candidates[row] = found
            else:
                tried.reasons.update(found.reasons)
        self._tried.pop(pod.pod.uid)
        return tried


class _Tried(msgspec.Struct):
    """State of an attempt that may pause: the rows that were tried, and the results."""

    rows: set[int] = msgspec.field(default_factory=set)
    candidates: dict[int, Candidate] = msgspec.field(default_factory=dict)
    reasons: Counter[str] = msgspec.field(default_factory=Counter)


def _still(tried: _Tried, victims: Victims, trial: Trial) -> Candidate | None:
    """The best candidate that is still valid: other pods may have been scheduled since its
    trial.
    """
    while tried.candidates:
        tied = best_of(list(tried.candidates.values()))
        chosen = tied[draw(trial.seed, len(tied))]
        now = victims.on(chosen.row, trial)
        if isinstance(now, Candidate) and now.victims == chosen.victims:
            return now
        del tried.candidates[chosen.row]
        if isinstance(now, Candidate):
            tried.candidates[chosen.row] = now
    return None
