"""Evictions: the writes for the victims of a preemptor.

For every victim: a condition that says why, the deletion, an event. A victim that is on its way to
its node, with nothing written yet, is stopped in memory instead. All but the last are evicted
concurrently; the last one follows, so that its change finds the preemptor free to try again
(`under_way.py`). Nominations of less important pods to the pod's node are removed first.

A victim whose namespace belongs to another pool than its node is evicted by its Eviction
subresource: another replica may evict pods of the same disruption budget at the same time, which
only the API server can count. The condition follows, since a budget may refuse the eviction.
Such victims come first: if a budget keeps one, no further pod is evicted, the nomination of the
preemptor ends, and it waits for a change of the cluster. That node is not tried again for it for
some time, so that a budget that is used up is not asked for again and again.

Bounds  AT_ONCE of them at the same time; the next follow once these are done.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/preemption/executor.go
"""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer, Done, Refused, Returned, Unknown
from asched.core.cluster.nominated import Nominator
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.pools import Pools
from asched.core.framework.effects import (
    DeletePod,
    Effect,
    EmitEvent,
    Evict,
    MarkVictim,
    PatchPodStatus,
    Together,
    ref_of,
)
from asched.core.framework.points import Late
from asched.core.framework.status import SKIP, SUCCESS, Status, failure, unschedulable
from asched.core.framework.waiting import WaitingPods
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod, PodCondition, difference
from asched.core.preemption.under_way import Preemptor, UnderWay, standing

NOT_FOUND, TOO_MANY = 404, 429
KEPT_BY_BUDGET: Final = unschedulable("a disruption budget does not allow the eviction")
ACTION: Final = "Preempting"
#: As many as bindings under way: a turn begins that many, so that writes never run out.
AT_ONCE: Final = 512


class Site(Protocol):
    """The trial of a pod, or of a group, that evicts."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def nominator(self) -> Nominator: ...
    @property
    def waiting(self) -> WaitingPods: ...


class Eviction:
    """The victims of one preemptor."""

    def __init__(
        self,
        plugin: str,
        preemptor: Preemptor,
        victims: Sequence[PodInfo],
        site: Site,
        under_way: UnderWay,
    ) -> None:
        self._plugin = plugin
        self._preemptor = preemptor
        self._site = site
        self._under_way = under_way
        self._cluster = site.cluster
        self._pools = Pools.of_cluster(site.cluster)
        self._victims = [info.pod for info in victims if not info.pod.is_terminating]
        if self._pools is not None:
            self._victims.sort(key=lambda pod: not self._is_visitor(pod))
        self._less: list[Pod] = []

    def begin(self) -> Late | None:
        """Hold the preemptor back from now on, and return the effects.

        None if all victims are terminating already.
        """
        if not self._victims:
            return None
        self._under_way.start(self._preemptor)
        node, priority = self._preemptor.node, self._preemptor.priority
        nominator = self._site.nominator
        if node is not None:
            self._less = [
                pod
                for pod in nominator.on(node).values()
                if pod.priority < priority and not nominator.of_others(pod.uid)
            ]
        for pod in self._less:
            nominator.delete(pod.uid)
        return self._steps(self._less)

    def withdraw(self) -> None:
        """Undo `begin`; nothing has been written yet."""
        self._under_way.end(self._preemptor, is_deleted=False)
        for pod in self._less:
            self._site.nominator.add(pod, self._preemptor.node)

    def _steps(self, nominated: list[Pod]) -> Late:
        failed: Status = SUCCESS
        is_deleted = False
        try:
            for pod in nominated:
                yield from self._clear_nomination(pod)
            *others, last = self._victims
            for some in self._rounds(others):
                answer = yield Together(parts=tuple(map(self._evict, some)))
                assert isinstance(answer, Returned)
                failed = next((s for s in (failed, *answer.value) if not s.is_success), SUCCESS)
                if KEPT_BY_BUDGET in answer.value:
                    return self._kept()
            self._under_way.last(self._preemptor, last)
            status = yield from self._evict(last)
            if status is KEPT_BY_BUDGET:
                return self._kept()
            is_gone = last.uid not in self._cluster.placed
            is_held_up = self._site.waiting.get(last.uid) is not None
            is_deleted = status.is_success and not is_gone and not is_held_up
        finally:
            self._under_way.end(self._preemptor, is_deleted=is_deleted)
        if failed.is_success and status.is_success and is_gone:
            return SKIP  # it left early, and pods woken by that were held back
        return failed if status.is_success else status

    def _rounds(self, victims: Sequence[Pod]) -> Iterator[Sequence[Pod]]:
        """Victims that are evicted at the same time."""
        visitors = sum(map(self._is_visitor, victims)) if self._pools is not None else 0
        for some in (victims[:visitors], victims[visitors:]):
            for start in range(0, len(some), AT_ONCE):
                yield some[start : start + AT_ONCE]

    def _kept(self) -> Status:
        if self._preemptor.node is not None:
            self._under_way.kept_by_budget(self._preemptor.uid, self._preemptor.node)
        return KEPT_BY_BUDGET

    def _clear_nomination(self, pod: Pod) -> Iterator[Effect]:
        """A failure does not stop the eviction: the pod's own next attempt corrects it."""
        now = self._site.cluster.pods_seen.get(pod.key)
        if now is None or now.uid != pod.uid or not now.status.nominated_node_name:
            return
        types = tuple(c.type for c in now.status.conditions or ())
        yield PatchPodStatus(pod=ref_of(now), condition_types=types, nominated_node_name="")

    def _evict(self, victim: Pod) -> Late:
        waiting = self._site.waiting.get(victim.uid)
        if waiting is not None and waiting.preempt(self._plugin):
            yield self._event(victim, " (in kube-scheduler memory).")
            return SUCCESS
        now = standing(victim, self._cluster)
        if now is None or now.is_terminating:
            return SUCCESS
        patch = self._patch(now)
        if self._is_visitor(now):
            return (yield from self._evict_within_budgets(now, patch))
        if patch is not None:
            answer = yield patch
            if _is_gone(answer):
                return SUCCESS
            if not isinstance(answer, Done):
                return _failed(now, answer)
            if self._is_visitor(victim):  # its node or namespace moved meanwhile
                return (yield from self._evict_within_budgets(now, None))
        answer = yield DeletePod(pod=ref_of(now))
        if not isinstance(answer, Done):
            return SUCCESS if _is_gone(answer) else _failed(now, answer)
        yield self._event(now)
        return SUCCESS

    def _evict_within_budgets(self, victim: Pod, patch: MarkVictim | None) -> Late:
        answer = yield Evict(pod=ref_of(victim))
        if isinstance(answer, Refused) and answer.code == TOO_MANY:
            return KEPT_BY_BUDGET
        if not isinstance(answer, Done):
            return SUCCESS if _is_gone(answer) else _failed(victim, answer)
        if patch is not None:
            yield patch  # it is evicted, whether or not it still exists
        yield self._event(victim)
        return SUCCESS

    def _is_visitor(self, victim: Pod) -> bool:
        """Whether the victim's namespace belongs to another pool than its node."""
        if self._pools is None:
            return False
        placed = self._cluster.placed.get(victim.uid)
        return placed is not None and self._pools.is_visitor(placed)

    def _patch(self, victim: Pod) -> MarkVictim | None:
        """The condition that says why the pod is evicted; None if it is set already."""
        name = self._preemptor.scheduler_name
        wanted = PodCondition(
            type=names.DISRUPTION_TARGET,
            status="True",
            reason=names.REASON_PREEMPTION_BY_SCHEDULER,
            message=f"{name}: preempting to accommodate a higher priority {self._preemptor.kind}",
            observed_generation=victim.metadata.generation or None,
        )
        old = victim.condition(names.DISRUPTION_TARGET)
        condition = difference(old, wanted, self._site.cluster.wall_clock_s)
        if condition is None:
            return None
        types = [c.type for c in victim.status.conditions or ()]
        if old is None:
            types.append(names.DISRUPTION_TARGET)
        return MarkVictim(pod=ref_of(victim), condition=condition, condition_types=tuple(types))

    def _event(self, victim: Pod, ending: str = "") -> EmitEvent:
        by = self._preemptor
        return EmitEvent(
            regarding=POD.reference(victim.metadata),
            type="Normal",
            reason=names.EVENT_PREEMPTED,
            action=ACTION,
            note=f"Preempted by {by.kind} {by.uid} on node {by.place}{ending}",
            reporting_controller=by.scheduler_name,
            related=by.related,
        )


def is_preempted(pod: Pod) -> bool:
    """Whether a scheduler evicted this pod, and it still exists."""
    condition = pod.condition(names.DISRUPTION_TARGET)
    return (
        pod.is_terminating
        and condition is not None
        and condition.status == "True"
        and condition.reason == names.REASON_PREEMPTION_BY_SCHEDULER
    )


def _is_gone(answer: Answer) -> bool:
    return isinstance(answer, Refused) and answer.code == NOT_FOUND


def _failed(victim: Pod, answer: Answer) -> Status:
    message = answer.message if isinstance(answer, Refused | Unknown) else type(answer).__name__
    return failure(f"preempting {victim.key}: {message}")
