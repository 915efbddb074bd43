"""The dispatcher of a running scheduler: measured as a work queue per lane, and fenced.

Nothing is sent once this process may not act: a queued write must not be sent after the lease may
have changed its holder.
"""

from collections.abc import Callable
from typing import Any, Final

from asched.core.cluster.facts import Answer, Refused
from asched.core.cycle.confirmation import is_outdated
from asched.core.framework.effects import (
    Bind,
    Create,
    DeletePod,
    Effect,
    Lane,
    MarkVictim,
    PatchPodStatus,
)
from asched.core.model.kinds import RESOURCE_CLAIM
from asched.kube.dispatch import Dispatcher
from asched.kube.lanes import QueuedWrite
from asched.kube.retries import Outcome
from asched.kube.session import Session
from asched.kube.transport import NO_CODE, Reply
from asched.kube.writes import answer_for
from asched.serve.telemetry.client_metrics import ClientMetrics

#: Upstream's names for the calls of its asynchronous dispatcher.
CALL_TYPES: Final[dict[type[Effect], str]] = {
    Bind: "pod_binding",
    PatchPodStatus: "pod_status_patch",
}

#: Labels of the lanes.
LANE_NAMES: Final = tuple(lane.name.lower() for lane in Lane)


class MeasuredDispatcher(Dispatcher):
    """`may_send` is checked before each request."""

    def __init__(
        self,
        session: Session,
        on_answer: Callable[[Answer], None],
        *,
        metrics: ClientMetrics,
        may_send: Callable[[], bool],
        **options: Any,
    ) -> None:
        super().__init__(session, on_answer, may_send=may_send, **options)
        self._metrics = metrics
        self._may_send = may_send
        self._host = session.credentials.host
        self._is_limited = session.options.qps > 0
        #: Attempts in flight: the start of each, by lane.
        self._begun: list[dict[int, float]] = [{} for _ in Lane]
        #: Evictions in flight; None until there was one.
        self.evicting: int | None = None

    def submit(self, effect: Effect) -> None:
        self._metrics.adds.of(LANE_NAMES[effect.lane]).value += 1
        super().submit(effect)

    def _pump(self) -> None:
        if self._may_send():
            super()._pump()

    async def _attempt(self, job: QueuedWrite) -> Any:
        started_s = self._loop.time()
        begun = self._begun[job.lane]
        begun[id(job)] = started_s
        is_eviction = isinstance(job.effect, DeletePod | MarkVictim)
        self.evicting = (self.evicting or 0) + 1 if is_eviction else self.evicting
        try:
            outcome = await super()._attempt(job)
        finally:
            del begun[id(job)]
            if is_eviction and self.evicting:
                self.evicting -= 1
        is_done = isinstance(outcome, Reply) and outcome.status < 300
        if isinstance(job.effect, Bind) and not is_done:
            answer = answer_for(job.effect, outcome) if isinstance(outcome, Reply) else None
            if isinstance(answer, Refused) and is_outdated(answer):
                self._metrics.binding_conflicts.add()
        if isinstance(job.effect, Create) and job.effect.kind is RESOURCE_CLAIM:
            self._metrics.created_claim(is_created=is_done)
        took_s = self._loop.time() - started_s
        is_retry = job.attempt_count > 1
        self._metrics.worked(
            LANE_NAMES[job.lane], started_s - job.queued_s, took_s, is_retry=is_retry
        )
        if not isinstance(outcome, Answer):  # a request was sent or attempted
            self._count_request(job, outcome, took_s, is_retry=is_retry)
        return outcome

    def _count_request(
        self, job: QueuedWrite, outcome: Outcome, took_s: float, *, is_retry: bool
    ) -> None:
        metrics = self._metrics
        if self._is_limited:
            metrics.rate_limiter.of(job.method, self._host).observe(job.throttled_s)
        if is_retry:
            code = str(outcome.status) if isinstance(outcome, Reply) else NO_CODE
            metrics.request_retries.add(code, job.method, self._host)
        call = CALL_TYPES.get(type(job.effect))
        if call is not None and metrics.calls is not None:
            is_done = isinstance(outcome, Reply) and outcome.status < 300
            metrics.calls.ended(call, took_s, is_done=is_done)

    def pending_calls(self) -> dict[tuple[str, ...], float]:
        return {
            (CALL_TYPES[Bind],): self.queued_count(Lane.BINDING),
            (CALL_TYPES[PatchPodStatus],): self.queued_count(Lane.STATUS),
        }

    @property
    def prioritizing(self) -> int | None:
        """Prioritize requests to extenders in flight; None until there was one."""
        return self._extenders.prioritizing if self._extenders is not None else None

    def unfinished_s(self, lane: Lane) -> float:
        """Time spent so far on all attempts in flight."""
        now_s = self._loop.time()
        return sum(now_s - begun_s for begun_s in self._begun[lane].copy().values())

    def longest_s(self, lane: Lane) -> float:
        """Time spent so far on the oldest attempt in flight."""
        now_s = self._loop.time()
        return max((now_s - begun_s for begun_s in self._begun[lane].copy().values()), default=0.0)
