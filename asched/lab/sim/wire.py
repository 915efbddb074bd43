"""Between the machine and the simulated API server: requests that arrive, get lost, or come late.

Requests are production's own (`client/writes.py`), and so is the rule for what follows an attempt
(`client/retries.py`); sockets and lanes are not there. What stays of the lanes: writes of one pod's
status keep their order, and a binding waits for the one under way and overtakes those that wait.
"""

import random
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from asched.core.framework.effects import (
    AskExtender,
    Bind,
    CallPlugin,
    CancelCall,
    Effect,
    MarkVictim,
    PatchPodStatus,
)
from asched.core.state.facts import Answer, Refused
from asched.edge.client.errors import ConnectFailed, ConnectionLost
from asched.edge.client.lanes import Job
from asched.edge.client.retries import Again, Outcome, next_step
from asched.edge.client.transport import Reply, no_fence
from asched.edge.client.writes import Request, request_for
from asched.lab.apiserver.auth import ADMIN
from asched.lab.apiserver.call import Call, refusal
from asched.lab.apiserver.call import Reply as ServerReply
from asched.lab.apiserver.context import Context
from asched.lab.apiserver.faults import CONFLICT, OVERLOADED
from asched.lab.apiserver.routing import route
from asched.lab.apiserver.statuses import ApiError
from asched.lab.sim.clock import VirtualClock
from asched.lab.sim.coroutines import Running
from asched.lab.sim.faults import (
    Conflicts,
    LateWrites,
    LostAnswers,
    Overload,
    ServerErrors,
    SlowAnswers,
    Troubles,
    Unreachable,
)

if TYPE_CHECKING:
    from asched.lab.sim.extenders import Extenders

#: One way through the network of a healthy cluster, at most.
WAY_S_MAX: Final = 0.01

#: (binding, whether it came late): a binding that the server has just accepted.
OnBound = Callable[[Bind, bool], None]


def send(ctx: Context, request: Request, query: Mapping[str, str] | None = None) -> Reply:
    """Have the server answer a request, at once. It never takes so long that a time-out counts."""
    path = request.path.partition("?")[0]
    headers = {"content-type": request.content_type}
    call = Call(request.method, path, query or {}, headers, request.body or b"", ADMIN)
    try:
        reply = route(ctx, call)
    except ApiError as error:
        reply = refusal(error)
    assert isinstance(reply, ServerReply)
    head = b"".join(b"\r\n%s: %s" % (k.encode(), v.encode()) for k, v in reply.headers.items())
    return Reply(reply.status, reply.body, head)


class Wire:
    """The connections of one process. `hear` gets each answer; after `cut` nothing is heard."""

    def __init__(
        self,
        ctx: Context,
        clock: VirtualClock,
        troubles: Troubles,
        *,
        hear: Callable[[Answer], None],
        on_bound: OnBound,
        extenders: "Extenders | None" = None,
        may_send: Callable[[], bool] = no_fence,
    ) -> None:
        self._ctx = ctx
        self._clock = clock
        self._troubles = troubles
        self._hear = hear
        self._on_bound = on_bound
        self._extenders = extenders
        self._may_send = may_send
        self._rng = random.Random(troubles.rng.random())
        self._lines: dict[str, deque[Job]] = {}
        self._travelling: dict[int, Job] = {}
        self._running: list[Running] = []
        self._is_cut = False
        self._cut_off_until_s = 0.0
        self.open_count = 0

    def perform(self, effect: Effect) -> None:
        """Send what an effect asks for; events are nobody's business here."""
        if isinstance(effect, CancelCall):
            self._cancel(effect.call_id)
            return
        self.open_count += 1
        if isinstance(effect, CallPlugin):
            self._running = [one for one in self._running if not one.is_over]
            self._running.append(Running(effect, self._clock, self._hear_of_ours))
        elif isinstance(effect, AskExtender):
            assert self._extenders is not None, "no extenders are configured"
            self._extenders.ask(effect, self._hear_of_ours)
        else:
            job = Job(effect.lane, effect, self._clock.now_s(), (effect.id,))
            if _is_in_line(effect):
                self._stand_in_line(job)
            else:
                self._attempt(job)

    def _cancel(self, call_id: int) -> None:
        for one in self._running:
            if one.effect.id == call_id and not one.is_over:
                one.stop()
                self.open_count -= 1

    def cut(self, late_s_max: float = 0.0) -> None:
        """The process dies: what was sent arrives or does not, and no answer is heard.

        It arrives at once, or, if `late_s_max` is given, at any time within that.
        """
        self._is_cut = True
        for one in self._running:
            one.stop()
        for job in self._travelling.values():
            if self._rng.random() < 0.5:
                continue
            if late_s_max:
                self._carry_out_at_last(job, late_s_max)
            else:
                self._carry_out(job, late=False)
        self._travelling.clear()

    def cut_off(self, seconds: float) -> None:
        """Nothing comes through for so long, in either direction."""
        self._cut_off_until_s = self._clock.now_s() + seconds

    @property
    def is_cut_off(self) -> bool:
        return self._clock.now_s() < self._cut_off_until_s

    def _carry_out_at_last(self, job: Job, late_s_max: float) -> None:
        late_s = self._rng.uniform(0.0, late_s_max)
        self._clock.after(late_s, lambda: self._carry_out_late(job))

    def _hear_of_ours(self, answer: Answer) -> None:
        """The answer of a plugin or an extender."""
        if not self._is_cut:
            self.open_count -= 1
            self._hear(answer)

    # --- order per pod ---------------------------------------------------------------------------

    def _stand_in_line(self, job: Job) -> None:
        line = self._lines.setdefault(_uid(job), deque())
        if isinstance(job.effect, Bind):
            while len(line) > 1:
                overtaken = line.pop()
                refused = Refused(overtaken.effect.id, 0, "overtaken by the binding of the pod")
                self._answer(overtaken, refused)
        line.append(job)
        if len(line) == 1:
            self._attempt(job)

    def _leave_line(self, job: Job) -> None:
        if not _is_in_line(job.effect):
            return
        line = self._lines[_uid(job)]
        line.popleft()
        if line:
            self._attempt(line[0])
        else:
            del self._lines[_uid(job)]

    # --- one attempt -----------------------------------------------------------------------------

    def _attempt(self, job: Job) -> None:
        job.attempt_count += 1
        if self._troubles.strikes(Unreachable) or self.is_cut_off:
            self._later(lambda: self._learn(job, ConnectFailed("connection refused")))
            return
        if not self._may_send():
            self._later(lambda: self._learn(job, ConnectFailed("held back")))
            return
        self._travelling[id(job)] = job
        self._later(lambda: self._arrive(job))

    def _later(self, call: Callable[[], None]) -> None:
        """After one way through the network, unless the process has died by then."""
        way_s = self._rng.uniform(0.0, WAY_S_MAX)
        way_s += self._troubles.seconds(SlowAnswers, "seconds_max")
        self._clock.after(way_s, lambda: None if self._is_cut else call())

    def _arrive(self, job: Job) -> None:
        self._travelling.pop(id(job), None)
        outcome: Outcome = ConnectionLost("the connection broke")
        if not self.is_cut_off:
            outcome = self._fate(job)
        self._later(lambda: self._learn(job, outcome))

    def _fate(self, job: Job) -> Outcome:
        troubles = self._troubles
        if (overload := troubles.strikes(Overload)) is not None:
            return Reply(429, OVERLOADED.encode(), b"\r\nRetry-After: %d" % overload.retry_after_s)
        if troubles.strikes(Conflicts):
            return Reply(409, CONFLICT.encode())
        if (errors := troubles.strikes(ServerErrors)) is not None:
            if self._rng.random() < errors.applied_share:
                self._carry_out(job, late=False)
            return Reply(500, b"etcdserver: request timed out")
        if (lost := troubles.strikes(LostAnswers)) is not None:
            if self._rng.random() < lost.applied_share:
                self._carry_out(job, late=False)
            return ConnectionLost("the connection broke")
        if troubles.strikes(LateWrites) is not None:
            late_s = troubles.seconds(LateWrites, "late_s_max")
            self._clock.after(late_s, lambda: self._carry_out_late(job))
            return ConnectionLost("the connection broke")
        return self._carry_out(job, late=False)

    def _carry_out_late(self, job: Job) -> None:
        self._carry_out(job, late=True)

    def _carry_out(self, job: Job, *, late: bool) -> Reply:
        reply = send(self._ctx, request_for(job.effect))
        if isinstance(job.effect, Bind) and 200 <= reply.status < 300:
            self._on_bound(job.effect, late)
        return reply

    def _learn(self, job: Job, outcome: Outcome) -> None:
        if self.is_cut_off and isinstance(outcome, Reply):
            outcome = ConnectionLost("the connection broke")
        step = next_step(job, outcome, self._clock.now_s(), self._rng)
        if isinstance(step, Again):
            self._clock.after(step.wait_s, lambda: None if self._is_cut else self._attempt(job))
            return
        self._answer(job, step)
        self._leave_line(job)

    def _answer(self, job: Job, answer: Answer) -> None:
        self.open_count -= 1
        if job.effect.id:
            self._hear(answer)


def _is_in_line(effect: Effect) -> bool:
    if isinstance(effect, PatchPodStatus):
        return not isinstance(effect, MarkVictim)
    return isinstance(effect, Bind)


def _uid(job: Job) -> str:
    assert isinstance(job.effect, PatchPodStatus | Bind)
    return job.effect.pod.uid
