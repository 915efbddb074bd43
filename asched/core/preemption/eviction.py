"""Evictions: what is written once it is clear who has to go, and for whom.

For every victim: a condition that says why, the deletion, an event. A victim that is on its way to
its node and nothing was written about yet is turned back in memory instead. All but the last go at
the same time; the last one follows, so that the change that it causes finds the preemptor free to
try again (`UnderWay`). Nominations of less important pods to the node are taken back first.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/preemption/executor.go
"""

from collections.abc import Collection, Iterator
from typing import Final

from asched import names
from asched.core.framework.effects import (
    DeletePod,
    Effect,
    EmitEvent,
    MarkVictim,
    PatchPodStatus,
    Together,
    ref_of,
)
from asched.core.framework.points import Expecting, Late
from asched.core.framework.status import SKIP, SUCCESS, Status, failure
from asched.core.framework.trial import Candidate, Trial
from asched.core.model.condition import difference
from asched.core.model.meta import ObjectReference
from asched.core.model.pod import Pod, PodCondition
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Answer, Done, Refused, Returned, Unknown

NOT_FOUND: Final = 404
ACTION: Final = "Preempting"
#: Preemptions under way before those are looked for whose last victim went unnoticed.
SWEEP_MIN: Final = 256


class UnderWay:
    """Preemptors whose victims are being evicted, and then leave. The last victim is known once its
    turn came; what is known of a preemptor goes with that pod.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._busy: dict[str, str] = {}  # preemptor's key -> uid
        self._last: dict[str, tuple[str, Pod]] = {}  # preemptor's key -> uid, its last victim
        self._expecting = Expecting()  # preemptors whose last victim is not gone yet, and where
        self._for: dict[str, set[str]] = {}  # last victim's uid -> preemptors' keys
        self._sweep_at = SWEEP_MIN

    def start(self, preemptor: Pod, node: str) -> None:
        self._forget(preemptor.key)
        self._busy[preemptor.key] = preemptor.uid
        self._expecting.put(preemptor.key, node)

    def last(self, preemptor: Pod, victim: Pod) -> None:
        """Only this victim is left."""
        key = preemptor.key
        if self._busy.get(key) == preemptor.uid:
            del self._busy[key]
            self._last[key] = (preemptor.uid, victim)
            self._for.setdefault(victim.uid, set()).add(key)
            if len(self._last) >= self._sweep_at:
                self._sweep()

    def end(self, preemptor: Pod, *, is_deleted: bool) -> None:
        """Nothing more is written. If the last victim was deleted, that counts once it is seen: an
        attempt before would evict it again.
        """
        if self._busy.get(preemptor.key) == preemptor.uid:
            del self._busy[preemptor.key]
            self._expecting.drop(preemptor.key)
        uid, _ = self._last.get(preemptor.key, ("", None))
        if uid == preemptor.uid and not is_deleted:
            self._forget(preemptor.key)

    def holds_back(self, pod: Pod) -> bool:
        """Whether an attempt would come too early."""
        if self._busy.get(pod.key) == pod.uid:
            return True
        uid, victim = self._last.get(pod.key, ("", None))
        if uid != pod.uid or victim is None:
            return False
        now = self._now(victim)
        return now is not None and not now.is_terminating

    def holding(self) -> Collection[str]:
        """Keys of preemptors that are surely held back (or were, before they were made anew)."""
        return self._busy

    def expecting(self, departed: Pod) -> Expecting:
        """Preemptors whose last victim is not gone yet, and the nodes that their victims leave."""
        for key in tuple(self._for.get(departed.uid, ())):
            self._forget(key)
        return self._expecting

    def _forget(self, key: str) -> None:
        _, victim = self._last.pop(key, ("", None))
        self._expecting.drop(key)
        if victim is not None:
            others = self._for[victim.uid]
            others.discard(key)
            if not others:
                del self._for[victim.uid]

    def _sweep(self) -> None:
        """Victims may have gone while nobody was waiting."""
        for key in [key for key, (_, victim) in self._last.items() if self._now(victim) is None]:
            self._forget(key)
        self._sweep_at = max(SWEEP_MIN, 2 * len(self._last))

    def _now(self, victim: Pod) -> Pod | None:
        """The victim as it was last seen; None if it is gone, or waits for a node again."""
        return standing(victim, self._cluster)


class Eviction:
    """One candidate's victims, on behalf of one preemptor."""

    def __init__(
        self, plugin: str, preemptor: Pod, candidate: Candidate, trial: Trial, under_way: UnderWay
    ) -> None:
        self._plugin = plugin
        self._preemptor = preemptor
        self._node = candidate.node
        self._trial = trial
        self._under_way = under_way
        self._cluster = trial.cluster
        self._victims = [i.pod for i in candidate.victims if not i.pod.is_terminating]
        self._less: list[Pod] = []

    def begin(self) -> Late | None:
        """Hold the preemptor back from now on, and hand out what is to be done.

        None if all victims are on their way out already.
        """
        if not self._victims:
            return None
        self._under_way.start(self._preemptor, self._node)
        nominator = self._trial.nominator
        self._less = [
            pod
            for pod in nominator.on(self._node).values()
            if pod.priority < self._preemptor.priority
        ]
        for pod in self._less:
            nominator.delete(pod.uid)
        return self._steps(self._less)

    def withdraw(self) -> None:
        """Take back what `begin` noted; nothing was written yet."""
        self._under_way.end(self._preemptor, is_deleted=False)
        for pod in self._less:
            self._trial.nominator.add(pod, self._node)

    def _steps(self, nominated: list[Pod]) -> Late:
        failed: Status = SUCCESS
        is_deleted = False
        try:
            for pod in nominated:
                yield from self._clear_nomination(pod)
            *others, last = self._victims
            if others:
                answer = yield Together(parts=tuple(self._evict(victim) for victim in others))
                assert isinstance(answer, Returned)
                failed = next((s for s in answer.value if not s.is_success), SUCCESS)
            self._under_way.last(self._preemptor, last)
            status = yield from self._evict(last)
            has_left = last.uid not in self._cluster.placed
            is_held_up = self._trial.waiting.get(last.uid) is not None
            is_deleted = status.is_success and not has_left and not is_held_up
        finally:
            self._under_way.end(self._preemptor, is_deleted=is_deleted)
        if failed.is_success and status.is_success and has_left:
            return SKIP  # it left before we were done, and whoever heard of that was held back
        return failed if status.is_success else status

    def _clear_nomination(self, pod: Pod) -> Iterator[Effect]:
        """That this fails is no reason to stop: the pod's own next attempt sets it right."""
        now = self._trial.cluster.pods_seen.get(pod.key)
        if now is None or now.uid != pod.uid or not now.status.nominated_node_name:
            return
        types = tuple(c.type for c in now.status.conditions or ())
        yield PatchPodStatus(pod=ref_of(now), condition_types=types, nominated_node_name="")

    def _evict(self, victim: Pod) -> Late:
        waiting = self._trial.waiting.get(victim.uid)
        if waiting is not None and waiting.preempt(self._plugin):
            yield self._event(victim, " (in kube-scheduler memory).")
            return SUCCESS
        now = standing(victim, self._cluster)
        if now is None or now.is_terminating:
            return SUCCESS
        patch = self._patch(now)
        if patch is not None:
            answer = yield patch
            if _is_gone(answer):
                return SUCCESS
            if not isinstance(answer, Done):
                return _failed(now, answer)
        answer = yield DeletePod(pod=ref_of(now))
        if not isinstance(answer, Done):
            return SUCCESS if _is_gone(answer) else _failed(now, answer)
        yield self._event(now)
        return SUCCESS

    def _patch(self, victim: Pod) -> MarkVictim | None:
        """The condition that tells controllers why the pod goes; None if it is there already."""
        name = self._trial.scheduler_name
        wanted = PodCondition(
            type=names.DISRUPTION_TARGET,
            status="True",
            reason=names.REASON_PREEMPTION_BY_SCHEDULER,
            message=f"{name}: preempting to accommodate a higher priority pod",
            observed_generation=victim.metadata.generation or None,
        )
        old = victim.condition(names.DISRUPTION_TARGET)
        condition = difference(old, wanted, self._trial.cluster.wall_clock_s)
        if condition is None:
            return None
        types = [c.type for c in victim.status.conditions or ()]
        if old is None:
            types.append(names.DISRUPTION_TARGET)
        return MarkVictim(pod=ref_of(victim), condition=condition, condition_types=tuple(types))

    def _event(self, victim: Pod, ending: str = "") -> EmitEvent:
        metadata = victim.metadata
        return EmitEvent(
            regarding=ObjectReference(
                api_version="v1",
                kind="Pod",
                namespace=metadata.namespace,
                name=metadata.name,
                uid=metadata.uid,
                resource_version=metadata.resource_version,
            ),
            type="Normal",
            reason=names.EVENT_PREEMPTED,
            action=ACTION,
            note=f"Preempted by pod {self._preemptor.uid} on node {self._node}{ending}",
            reporting_controller=self._trial.scheduler_name,
        )


def standing(victim: Pod, cluster: Cluster) -> Pod | None:
    """A victim as it was last seen, if it is still there and has a node: one whose binding failed
    meanwhile takes no room any more, and nobody has to end it for that.
    """
    now = cluster.pods_seen.get(victim.key)
    if now is None or now.uid != victim.uid:
        return None
    return now if now.spec.node_name or cluster.is_assumed(now.uid) else None


def is_preempted(pod: Pod) -> bool:
    """Whether a scheduler evicted this pod, and it is still there."""
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
    said = answer.message if isinstance(answer, Refused | Unknown) else type(answer).__name__
    return failure(f"preempting {victim.key}: {said}")
