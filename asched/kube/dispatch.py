"""Send effects to the API server in prioritized lanes.

Each lane has its own queue and its own limit of requests in flight; connections are shared, since
opening one costs as much as a write. Lanes are served in order of priority; a lane gets what the
lanes above it leave of the client's rate (if one is set); events and statuses are sent
one or a few at a time while bindings wait (`limit_of`). A 429 pauses its lane and the lanes below
it for the time in Retry-After.

The outcome of an effect (`id` other than 0) goes to `on_answer`, once; `submit` never waits.

Bounds  concurrency per lane below; queues in `lanes.py`; attempts and deadlines in `retries.py`.
"""

import asyncio
import logging
import random
import socket
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf
from typing import Final

import msgspec
from msgspec.structs import replace

from asched.core.cluster.facts import Answer, ReadPending, Refused, Unknown
from asched.core.framework.effects import (
    COURTESY_LANES,
    LANDS_WITHIN_S,
    AskExtender,
    Bind,
    Effect,
    EmitEvent,
    Lane,
)
from asched.core.model.meta import runs_backwards
from asched.kube.errors import TransportError, read_status, says_not_done
from asched.kube.events import FINISH_S, REFRESH_S, EventRecorder, EventWrite
from asched.kube.extenders import Extenders
from asched.kube.lane_limits import FIRST_LANES, limit_of, share_from_s
from asched.kube.lanes import QUEUE_MAX, LaneState, QueuedWrite, StatusQueue, given_up, not_done
from asched.kube.pace import Rates
from asched.kube.retries import Again, Outcome, next_step, overload_wait_s
from asched.kube.session import Session
from asched.kube.transport import Reply, Transport, no_fence
from asched.kube.writes import TIMEOUT_S, request_for, version_of, written_version

log = logging.getLogger(__name__)

#: Requests in flight per lane. BINDING: where a real server's bindings per second stop growing
#: (1,620 at 64). WRITE: 16 gave 700 writes of evictions per second, 64 gave 900. EVENT: enough to
#: keep up once the lane gets its share. LOCAL: requests to extenders; more than bindings in flight,
#: so that none waits for another. STATUS: a guess.
CONCURRENCY: Final[Mapping[Lane, int]] = {
    Lane.BINDING: 64,
    Lane.WRITE: 64,
    Lane.STATUS: 16,
    Lane.EVENT: 64,
    Lane.LOCAL: 1024,
}


#: How long the version in the answer to a patch of a pod is stored: the watch shows it within
#: seconds. Status patches are fewer than a thousand a second.
WRITTEN_S: Final = 20.0
#: The shortest time-out of a binding; the fence is checked once more when it is sent.
FENCE_S_MIN: Final = 0.001
#: The answer to an effect about objects of a pool that this process does not hold.
NOT_OURS: Final = "not sent: another replica holds the pool of the pod or of the node"


class DispatchOptions(msgspec.Struct, frozen=True):
    """Limits that a test or a configuration may change."""

    concurrency: Mapping[Lane, int] = msgspec.field(default_factory=lambda: CONCURRENCY)
    queue_max: Mapping[Lane, int] = msgspec.field(default_factory=lambda: QUEUE_MAX)
    attempt_timeout_s: float = TIMEOUT_S
    seed: int = 0


def is_doubtful(outcome: Outcome) -> bool:
    """Whether a request without a clear answer may still be carried out."""
    if isinstance(outcome, Reply):
        return outcome.status >= 400 and not says_not_done(outcome.status, outcome.body)
    return outcome.sent


class Dispatcher:
    """Performs effects. Spawn `run`, call `submit`, end with `drain`."""

    def __init__(
        self,
        session: Session,
        on_answer: Callable[[Answer], None],
        *,
        options: DispatchOptions | None = None,
        recorder: EventRecorder | None = None,
        extenders: Extenders | None = None,
        may_send: Callable[[], bool] = no_fence,
        fence_s: Callable[[Effect], float] = lambda _: inf,
    ) -> None:
        """`fence_s` returns for how long this process may perform an effect: bindings end before
        that. -inf: another process decides about its objects.
        """
        self.options = options or DispatchOptions()
        self._fence_s = fence_s
        self._on_answer = on_answer
        #: called with the resource version in the answer to a binding, where there is one
        self.on_bound: Callable[[str], None] = lambda _version: None
        self._recorder = EventRecorder(socket.gethostname()) if recorder is None else recorder
        self._extenders = extenders
        self._loop = asyncio.get_running_loop()
        self._rng = random.Random(self.options.seed)  # for jitter only
        #: By lane: a list, since hashing enum members is slow.
        self._lanes = [
            LaneState(lane, self.options.concurrency[lane], self.options.queue_max[lane])
            for lane in Lane
        ]
        # Connections for all lanes at their limits, so that no lane waits for another.
        most = sum(own for lane, own in self.options.concurrency.items() if lane is not Lane.LOCAL)
        self._transport: Transport = session.pool(most, may_send=may_send)
        self._first = [self._lanes[lane] for lane in FIRST_LANES]
        statuses = self._lanes[Lane.STATUS].queue
        assert isinstance(statuses, StatusQueue)
        self._statuses = statuses
        #: Bindings of pods with a status patch in flight; they start when it has finished.
        self._delayed_bindings: dict[str, QueuedWrite] = {}
        #: uid -> (version, when) of pods in answers to our patches: the watch may show it later
        self._written: OrderedDict[str, tuple[str, float]] = OrderedDict()
        #: Requests that may still be carried out, and when they were sent.
        self._doubtful: deque[tuple[float, Effect]] = deque()
        self._in_flight: set[QueuedWrite] = set()
        #: Jobs waiting for their next attempt.
        self._delayed: dict[QueuedWrite, asyncio.TimerHandle] = {}
        own = session.options
        self.rates = Rates(own.qps, own.burst, self._loop.time, self._pump)
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self._stop = asyncio.Event()
        self._idle = asyncio.Event()
        self._pump_timer: asyncio.Handle | None = None
        self._pump_s = 0.0

    # --- public ---------------------------------------------------------------------------------

    def submit(self, effect: Effect) -> None:
        """Accept an effect. Never blocks; an effect that cannot be accepted is answered at once."""
        if self._closed:
            self._answer((effect.id,), not_done(effect, "shutting down"))
            return
        state = self._lanes[effect.lane]
        job = QueuedWrite(effect.lane, effect, self._loop.time(), (effect.id,))
        if isinstance(effect, EmitEvent):
            job.event = self._recorder.record(effect)
            if job.event is None:
                return
            job.effect = job.event.series.effect
        elif isinstance(effect, Bind):
            # The binding writes PodScheduled itself.
            overtaken = self._statuses.overtaken_by_binding(effect.pod.uid)
            if overtaken is not None:
                why = "overtaken by the binding of the pod"
                self._answer(overtaken.ids, given_up(overtaken, why))
        self._enqueue(state, job)
        self._pump()

    async def prepare(self) -> None:
        """Open a first connection; a failure shows with the first effect."""
        with suppress(TransportError):
            await self._transport.prepare()

    async def run(self) -> None:
        """Perform effects until `drain` has finished or the task is cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                upkeep = group.create_task(self._keep_series())
                self._pump()
                await self._stop.wait()
            finally:
                self._group = None  # jobs that end from here on start no other
            for task in (upkeep, *self._tasks):
                task.cancel()

    async def drain(self, timeout_s: float) -> None:
        """Accept no more effects, finish those in flight, and end `run`.

        For `timeout_s` the lanes are emptied, events included. Then the remaining effects are
        answered: Unknown where the server may have acted, else Refused; waiting events are dropped.
        """
        self._closed = True
        if self._group is not None:
            try:
                async with asyncio.timeout(timeout_s):
                    while not all(state.is_idle for state in self._lanes):
                        self._idle.clear()
                        await self._idle.wait()
            except TimeoutError:
                log.warning("not all writes were finished within %.1f s", timeout_s)
        for job in (*self._delayed_bindings.values(), *self._delayed):
            self._answer(job.ids, given_up(job, "shut down before it was sent"))
        for timer in self._delayed.values():
            timer.cancel()
        self._delayed_bindings.clear()
        self._delayed.clear()
        for state in self._lanes:
            while state.queue.waiting:
                job = state.queue.drop_oldest()
                state.dropped_count += 1
                self._answer(job.ids, given_up(job, "shut down before it was sent"))
        self._stop.set()

    def queued_count(self, lane: Lane) -> int:
        """Jobs waiting in a lane, including those waiting for a retry."""
        state = self._lanes[lane]
        return len(state.queue) + state.delayed_count

    def in_flight_count(self, lane: Lane) -> int:
        return self._lanes[lane].in_flight_count

    def dropped_count(self, lane: Lane) -> int:
        """Jobs dropped because a queue was full."""
        return self._lanes[lane].dropped_count

    # --- queues ---------------------------------------------------------------------------------

    def _enqueue(self, state: LaneState, job: QueuedWrite) -> None:
        while state.queue.is_full:
            state.dropped_count += 1
            if state.lane not in COURTESY_LANES:
                self._answer(job.ids, not_done(job.effect, f"lane {state.lane.name} is full"))
                return
            dropped = state.queue.drop_oldest()
            self._answer(dropped.ids, given_up(dropped, "given up under pressure"))
        state.queue.put(job)

    def _pump(self) -> None:
        """Start the jobs that may start, in order of priority."""
        if self._group is None:
            return
        now_s = self._loop.time()
        wake_s: float | None = None
        for state in self._lanes:
            since_s, state.throttled_since_s = state.throttled_since_s, None
            queue = state.queue
            if not queue.waiting:
                continue
            if state.paused_until_s > now_s:
                wake_s = min(wake_s or state.paused_until_s, state.paused_until_s)
                continue
            while queue.waiting:
                limit = limit_of(state, self._first, now_s)
                if state.in_flight_count >= limit:
                    if not limit:
                        from_s = share_from_s(state, now_s)
                        wake_s = min(wake_s or from_s, from_s)
                    break
                if wait_s := self._take_token(state.lane):
                    state.throttled_since_s = now_s if since_s is None else since_s
                    wake_s = min(wake_s or now_s + wait_s, now_s + wait_s)
                    break
                job = queue.take()
                if job is None:
                    break
                if isinstance(job.effect, Bind):
                    if self._delay_for_patch(state, job, job.effect.pod.uid):
                        continue
                    written = self._written.get(job.effect.pod.uid)
                    if written and runs_backwards(written[0], job.effect.pod.resource_version):
                        self._answer(job.ids, ReadPending(job.effect.id, written[0]))
                        continue
                job.throttled_s = now_s - max(since_s, job.queued_s) if since_s is not None else 0.0
                state.in_flight_count += 1
                task = self._group.create_task(self._perform(state, job))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        if wake_s is not None:
            self._pump_at(wake_s)

    def _take_token(self, lane: Lane) -> float:
        """0.0 if a request of this lane may start, else the seconds to wait."""
        if lane is Lane.LOCAL:
            return 0.0
        return self.rates.of(is_event=lane is Lane.EVENT).take()

    def _delay_for_patch(self, state: LaneState, job: QueuedWrite, uid: str) -> bool:
        """Delay a binding until the pod's status patch has landed: a later patch would undo the
        binding's condition.
        """
        if uid in self._delayed_bindings or not self._statuses.is_under_way(uid):
            return False
        self._delayed_bindings[uid] = job
        state.delayed_count += 1
        return True

    def _status_done(self, job: QueuedWrite) -> None:
        """A pod's patch has finished: start the binding that waited for it."""
        self._statuses.done(job)
        held = self._delayed_bindings.pop(job.key[0], None)
        if held is not None:
            self._resume(self._lanes[Lane.BINDING], held)

    def _note_written(self, uid: str, version: str) -> None:
        now_s, written = self._loop.time(), self._written
        written[uid] = version, now_s
        written.move_to_end(uid)
        while next(iter(written.values()))[1] < now_s - WRITTEN_S:
            written.popitem(last=False)

    @property
    def is_settled(self) -> bool:
        """Whether no request of ours can be carried out any more: all are answered, or too old."""
        is_quiet = all(not state.in_flight_count for state in self._lanes)
        self._forget_doubts()
        return is_quiet and not self._doubtful

    def is_settled_for(self, concerns: Callable[[Effect], bool]) -> bool:
        """As `is_settled`, of the effects that `concerns` selects, queued ones apart."""
        self._forget_doubts()
        effects = [job.effect for job in self._in_flight] + [known for _, known in self._doubtful]
        return not any(map(concerns, effects))

    def _doubt(self, effect: Effect, sent_s: float) -> None:
        """A request may still be carried out."""
        self._forget_doubts()
        self._doubtful.append((sent_s, effect))

    def _forget_doubts(self) -> None:
        """Drop what cannot be carried out any more; what was sent before a kept one may stay."""
        since_s = self._loop.time() - LANDS_WITHIN_S
        while self._doubtful and self._doubtful[0][0] < since_s:
            self._doubtful.popleft()

    def _pump_at(self, when_s: float) -> None:
        if self._pump_timer is not None:
            if self._pump_s <= when_s:
                return
            self._pump_timer.cancel()
        # Stored, since uvloop cannot report the time of a timer that is due at once.
        self._pump_s = when_s
        self._pump_timer = self._loop.call_at(when_s, self._pump_again)

    def _pump_again(self) -> None:
        self._pump_timer = None
        self._pump()

    # --- one attempt ------------------------------------------------------------------------------

    async def _perform(self, state: LaneState, job: QueuedWrite) -> None:
        """Make one attempt and act on its outcome."""
        is_over = True
        self._in_flight.add(job)
        try:
            job.attempt_count += 1
            if isinstance(job.effect, AskExtender):
                self._answer(job.ids, await self._ask(job.effect))
                return
            sent_s = self._loop.time()
            outcome = await self._attempt(job)
            if isinstance(outcome, Answer):
                self._answer(job.ids, outcome)
                return
            if is_doubtful(outcome):
                self._doubt(job.effect, sent_s)
            if isinstance(job.effect, Bind):
                if version := version_of(outcome):
                    self.on_bound(version)
            elif written := written_version(job.effect, outcome):
                self._note_written(*written)
            if (wait_s := overload_wait_s(outcome)) is not None:
                self._pause(state, wait_s)
            if job.event is not None and self._repair_event(job, outcome):
                state.queue.put_back(job)
            else:
                step = next_step(job, outcome, self._loop.time(), self._rng)
                if isinstance(step, Again):
                    is_over = False
                    self._postpone(state, job, step)
                else:
                    self._answer(job.ids, step)
        except asyncio.CancelledError:
            self._group = None  # shutting down: start nothing more
            self._doubt(job.effect, self._loop.time())
            self._answer(job.ids, Unknown(job.effect.id, "cancelled while it was under way"))
            raise
        finally:
            self._in_flight.discard(job)
            state.in_flight_count -= 1
            if is_over and state.lane is Lane.STATUS:
                self._status_done(job)
            if state.is_idle:
                self._idle.set()
            self._pump()

    async def _attempt(self, job: QueuedWrite) -> Outcome | Answer:
        """Send the request. An effect of a plugin that cannot be encoded is refused here."""
        try:
            event, timeout_s = job.event, self.options.attempt_timeout_s
            fence_s = self._fence_s(job.effect)
            if fence_s == -inf:
                return Refused(job.effect.id, 0, NOT_OURS)
            if isinstance(job.effect, Bind):
                timeout_s = min(timeout_s, max(fence_s, FENCE_S_MIN))
            if event is None:
                request = request_for(job.effect, timeout_s)
            else:
                request = self._recorder.request(event)
        except (AttributeError, TypeError, ValueError) as error:
            log.warning("%s cannot be written as JSON: %s", type(job.effect).__name__, error)
            return Refused(job.effect.id, 0, f"cannot be written as a request: {error}")
        job.method = request.method
        try:
            return await self._transport.request(
                request.method,
                request.path,
                request.body,
                content_type=request.content_type,
                timeout_s=timeout_s,
            )
        except TransportError as error:
            return error

    async def _ask(self, effect: AskExtender) -> Answer:
        if self._extenders is None:
            return Refused(effect.id, 0, "no extenders are configured")
        return await self._extenders.ask(effect)

    def _repair_event(self, job: QueuedWrite, outcome: Outcome) -> bool:
        """Create a missing event of a series again; patch one that exists unexpectedly."""
        write = job.event
        if write is None or not isinstance(outcome, Reply):
            return False
        if write.is_patch and outcome.status == 404 and not write.with_series:
            job.event = EventWrite(write.series, is_patch=False, with_series=True)
            return True
        if write.with_series and outcome.status == 409:
            status = read_status(outcome.body)
            if status is not None and status.reason == "AlreadyExists":
                job.event = EventWrite(write.series, is_patch=True, with_series=True)
                return True
        return False

    def _postpone(self, state: LaneState, job: QueuedWrite, again: Again) -> None:
        if again.pause:
            if state.lane is Lane.STATUS:
                self._status_done(job)
            self._pause(state, again.wait_s)
            state.queue.put_back(job)
            return
        state.delayed_count += 1
        self._delayed[job] = self._loop.call_later(again.wait_s, self._resume, state, job)

    def _pause(self, state: LaneState, wait_s: float) -> None:
        """Pause a lane and those below it."""
        until_s = self._loop.time() + wait_s
        for lower in self._lanes:
            if state.lane <= lower.lane < Lane.LOCAL:
                lower.paused_until_s = max(lower.paused_until_s, until_s)

    def _resume(self, state: LaneState, job: QueuedWrite) -> None:
        state.delayed_count -= 1
        self._delayed.pop(job, None)
        if state.lane is Lane.STATUS:
            self._status_done(job)
        state.queue.put_back(job)
        self._pump()

    def _answer(self, ids: tuple[int, ...], answer: Answer) -> None:
        for effect_id in ids:
            if effect_id:
                self._on_answer(
                    answer
                    if answer.effect_id == effect_id
                    else replace(answer, effect_id=effect_id)
                )

    # --- upkeep -----------------------------------------------------------------------------------

    async def _keep_series(self) -> None:
        """Write live series every REFRESH_S, and quiet series a last time."""
        refreshed_s = self._loop.time()
        while True:
            await asyncio.sleep(FINISH_S)
            writes = list(self._recorder.finish())
            if self._loop.time() - refreshed_s >= REFRESH_S:
                refreshed_s = self._loop.time()
                writes.extend(self._recorder.refresh())
            state = self._lanes[Lane.EVENT]
            for write in writes:
                job = QueuedWrite(Lane.EVENT, write.series.effect, self._loop.time(), event=write)
                self._enqueue(state, job)
            self._pump()
