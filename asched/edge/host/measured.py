"""The dispatcher of a running scheduler: measured as a work queue per lane, and fenced.

Nothing is sent any more once this process may not act: a write that still waits in its lane when
the lease may have passed on must not leave.
"""

from collections.abc import Callable
from typing import Any

from asched.core.framework.effects import Create, Effect, Lane
from asched.core.model.kinds import RESOURCE_CLAIM
from asched.core.state.facts import Answer
from asched.edge.client.dispatch import Dispatcher
from asched.edge.client.lanes import Job
from asched.edge.client.session import Session
from asched.edge.client.transport import Reply
from asched.edge.telemetry.component_metrics import ClientMetrics


class MeasuredDispatcher(Dispatcher):
    """`may_send` is asked before anything leaves."""

    def __init__(
        self,
        session: Session,
        on_answer: Callable[[Answer], None],
        *,
        metrics: ClientMetrics,
        may_send: Callable[[], bool],
        **options: Any,
    ) -> None:
        super().__init__(session, on_answer, **options)
        self._metrics = metrics
        self._may_send = may_send
        #: Attempts under way: when each began, by lane.
        self._begun: dict[Lane, dict[int, float]] = {lane: {} for lane in Lane}

    def submit(self, effect: Effect) -> None:
        self._metrics.added(effect.lane.name.lower())
        super().submit(effect)

    def _pump(self) -> None:
        if self._may_send():
            super()._pump()

    async def _attempt(self, job: Job) -> Any:
        started_s = self._loop.time()
        begun = self._begun[job.lane]
        begun[id(job)] = started_s
        try:
            outcome = await super()._attempt(job)
        finally:
            del begun[id(job)]
        if isinstance(job.effect, Create) and job.effect.kind is RESOURCE_CLAIM:
            self._metrics.created_claim(
                is_created=isinstance(outcome, Reply) and outcome.status < 300
            )
        self._metrics.worked(
            job.lane.name.lower(),
            started_s - job.queued_s,
            self._loop.time() - started_s,
            is_retry=job.attempt_count > 1,
        )
        return outcome

    def unfinished_s(self, lane: Lane) -> float:
        """Time spent so far on the attempts under way, all together."""
        now_s = self._loop.time()
        return sum(now_s - begun_s for begun_s in self._begun[lane].copy().values())

    def longest_s(self, lane: Lane) -> float:
        """Time spent so far on the oldest attempt under way."""
        now_s = self._loop.time()
        return max((now_s - begun_s for begun_s in self._begun[lane].copy().values()), default=0.0)
