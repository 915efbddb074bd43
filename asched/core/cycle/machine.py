"""The machine: facts come in, effects go out, and between them nothing waits.

    handle(facts, now_s):   finish sliced work of the turn before (`budget.py`)
                            apply changes and answers, long lists over several turns
                            run the queue's timers, end waits
                            run scheduling cycles, one after the other, for a bounded time
                            return the effects of all this

It owns no clock and no connection. `host/loops.py` drives it in production, simulation and replay
have their own drivers. Equal facts at equal times give equal effects, if turns end after equal
numbers of cycles (`turn_limit.py`).

One cycle runs at a time. While an extender is working on a pod, pods without extenders are tried,
and the extender's result is checked again. An attempt that used up its slice of the budget pauses.
One paused attempt goes on in each turn without other work. In turns with other work it goes on once
the other pods have had many times as long as its last slice took (OTHERS_SHARE in `turn_limit.py`),
so that they are hardly slower.

What waits, and for what:

    _waits       a generator, for an answer, a condition or a deadline (`waits.py`)
    _paused      an attempt or a task that used up its slice, for its next slice
    _parked      a unit popped too early, such as a pod that needs an extender while another pod's
                 extender works; it begins once the cycle that it must not meet has ended
    _followers   a unit's bindings and evictions, for their start: hundreds do not start in one turn
    Pause(is_alone)   ends the turn: the state is inconsistent, the next turn begins with it

Bounds  TURN_S of cycles a turn, and none while a list is applied in part (`turn_limit.py`);
        BINDINGS_MAX requests of bindings without an answer, beyond which no pod is popped (pods
        that wait at Permit or for their volumes do not count); those of `turn_limit.py`.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr

from asched.core.cluster.budget import SLICE_STEPS
from asched.core.cluster.facts import Answer, Done, Fact, Returned
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.binding import Binding
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.extension import Extension, Extensions, Work
from asched.core.cycle.foreign_gangs import GangReports
from asched.core.cycle.intake import Intake
from asched.core.cycle.placing import PodUnit
from asched.core.cycle.post_filter import Background, GivingBack
from asched.core.cycle.scheduling import schedule
from asched.core.cycle.turn_limit import (
    OTHERS_SHARE,
    OTHERS_SHARE_OF_MANY,
    PARKED_MAX,
    ParkedUnits,
    PausedTasks,
    TurnLimit,
)
from asched.core.cycle.unit import Unit
from asched.core.cycle.waits import QUESTIONS, OpenWaits
from asched.core.framework.effects import (
    CallPlugin,
    CancelCall,
    Effect,
    Lane,
    Pause,
    Together,
    WaitFor,
)
from asched.core.framework.status import MISTAKES, Code
from asched.core.queue.queued import QueuedPod

#: Requests of bindings at most: eight times what the client sends at a time, so that its lanes are
#: never empty, and few enough that a pod of high priority does not wait behind thousands.
BINDINGS_MAX: Final = 512
#: A generator of effects, sent their answers.
Steps = Generator[Effect, Answer, Any]


class _Task(msgspec.Struct, eq=False):
    """A generator with an open effect, and the receiver of its result. `operation`: the id of its
    first effect, or that of the operation that it is a part of; 0 before. `binds`: it is (part of)
    a binding. `others_share`: the share of other pods after a slice of it (`turn_limit.py`).
    `slices`: how often it paused.
    """

    steps: Steps
    ended: Callable[[Any], None]
    operation: int = 0
    binds: bool = False
    others_share: int = OTHERS_SHARE
    slices: int = 0


class Machine:
    """`is_active` is False while another replica leads: facts are applied, nothing is decided."""

    def __init__(
        self,
        context: SchedulerContext,
        extensions: Iterable[type[Extension]] = (),
        *,
        bindings_max: int = BINDINGS_MAX,
    ) -> None:
        self.context = context
        self._extensions = Extensions(context, extensions)
        self.is_active = True
        self.limit = TurnLimit(context.monotonic_s)
        #: events for gangs whose members name several schedulers
        self._gang_reports = GangReports(context)
        self.bindings = 0
        self.bindings_max = bindings_max
        self._out: list[Effect] = []
        self._open: dict[int, _Task] = {}
        self._waits = OpenWaits(context.cluster.object_log)
        self._on_wire: set[int] = set()  # requests of bindings without an answer yet
        self._effect_ids = 0
        self._attempts = 0
        self._open_cycles = 0
        self._paused = PausedTasks()
        self._paused_alone: deque[int] = deque()
        self._is_quiet = True  # no fact and no attempt in this turn so far
        self._followers: deque[Any] = deque()  # results of units: what follows is not begun
        self._parked = ParkedUnits()
        self._has_more = False
        self._intake = Intake(context, self._waits, self._take_answer, self._ask)
        self.intake_s = 0.0  # duration of the last turn's intake, without cycles

    # --- turns -----------------------------------------------------------------------------------

    def handle(self, facts: Iterable[Fact], now_s: float) -> list[Effect]:
        """Apply facts, run a turn, and return its effects."""
        context = self.context
        context.now_s = now_s
        context.cluster.begin_turn(now_s, is_quiet=self.is_idle and not self._paused.ids)
        context.cluster.budget.open()  # hints run while facts are applied, and are counted, too
        self._out = []
        started_s = context.monotonic_s()
        self._is_quiet = not self._intake.turn(facts)
        self.intake_s = context.monotonic_s() - started_s
        self._has_more = False
        self.limit.begin()
        context.queue.sliced_work.budget.open()  # for what follows from cycles and timers
        if not context.sliced_work:
            self._decide(now_s)
        context.cluster.budget.close()
        context.queue.sliced_work.budget.close()
        context.tell_passed()  # metrics of points without work, counted since the last turn
        if context.requested:
            self._out += context.requested
            context.requested.clear()
        return self._out

    def _decide(self, now_s: float) -> None:
        """Run timers and cycles, once all pods are notified of the facts."""
        context = self.context
        context.queue.tick(now_s)
        self._end_waits()
        may_decide = self.is_active and self._intake.may_decide
        for refresh in self._extensions.refresh:
            refresh(may_decide=may_decide)
        if self._followers:
            self._follow_on()
        if may_decide:
            if self._extensions.turns:
                self._begin_turns()
            if not context.sliced_work:  # a turn of an extension may have begun to hold places
                self._run_cycles()
            self._has_more |= bool(self._paused.ids)
            if context.sliced_work:  # a task paused alone
                return
            self._end_waits()  # a cycle may have allowed waiting pods
            # A cycle that ended after the last pop may free parked attempts.
            if self._parked.units and len(self._on_wire) < self.bindings_max:
                self._has_more |= self._parked.is_due(is_deciding=self.is_deciding)
        self._has_more |= bool(self._waits.due or self._followers)

    def next_deadline_s(self) -> float | None:
        """When `handle` should be called again even if nothing happens; None if never.

        A time in the past means at once: the last turn ended with work left.
        """
        if self._has_more or self.is_taking_in:
            return 0.0
        may_decide = self.is_active and self._intake.may_decide
        deadlines = (
            self._waits.next_deadline_s,
            self._intake.pace.next_s,
            self.context.queue.next_deadline_s(),
            *([turn.next_s() for turn in self._extensions.turns] if may_decide else ()),
        )
        return min((until_s for until_s in deadlines if until_s is not None), default=None)

    @property
    def is_idle(self) -> bool:
        """Whether no binding and no other effect is open, paused attempts apart."""
        is_open = len(self._open) > len(self._paused.ids)
        return not (is_open or self._followers or self.bindings)

    @property
    def is_taking_in(self) -> bool:
        """Whether earlier facts are not applied, or pods not notified, yet, so that new facts have
        to wait.
        """
        return bool(self._intake)

    @property
    def postpones_nodes(self) -> bool:
        """Whether versions of nodes wait that change too often (`node_pace.py`)."""
        return self._intake.pace.next_s is not None

    @property
    def is_deciding(self) -> bool:
        """Whether a cycle waits for an extender. Paused cycles do not count; they begin again."""
        return self._open_cycles > len(self._paused.ids)

    # --- tasks -----------------------------------------------------------------------------------

    def _ask(self, effects: Iterable[Effect]) -> None:
        self._out.extend(effects)

    def _take_answer(self, answer: Answer) -> None:
        effect_id = answer.effect_id
        task = self._open.pop(effect_id, None)
        if task is not None:
            self._on_wire.discard(effect_id)
            if effect_id in self._waits.open:
                self._waits.drop(effect_id)
            self._advance(task, answer)

    def _end_waits(self) -> None:
        """End the waits whose conditions have become true since the last call."""
        context, waits = self.context, self._waits
        if not waits.open:  # decisions about pods concern no wait
            context.waiting.moved.clear()
            return
        waits.catch_up(context.waiting.moved)
        for effect, answer in waits.take_answers(context.now_s):
            if isinstance(effect, CallPlugin):
                self._out.append(CancelCall(call_id=effect.id))
            self._take_answer(answer)
        waits.catch_up(context.waiting.moved)

    def _advance(self, task: _Task, answer: Answer | None) -> None:
        """Run a generator to its next effect that wants an answer, or to its end."""
        steps = task.steps
        self.context.cluster.budget.open()
        try:
            effect = steps.send(answer)  # type: ignore[arg-type]
            while not (effect.answers and effect.wants_answer):  # without an answer, or not waiting
                self._out.append(effect)
                effect = next(steps)
        except StopIteration as end:
            task.ended(end.value)
            return
        except MISTAKES as raised:  # attempts handle their own: nothing is to be undone
            self.context.contain(raised, "task")
            task.ended(None)
            return
        self._effect_ids += 1
        task.operation = task.operation or self._effect_ids
        force_setattr(effect, "id", self._effect_ids)  # frozen for all other code
        force_setattr(effect, "operation", task.operation)
        self._open[effect.id] = task
        if effect.lane is Lane.LOCAL:
            if isinstance(effect, Together):
                self._run_together(effect, binds=task.binds)
                return
            if isinstance(effect, Pause):
                if effect.is_alone:
                    self._pause_alone(effect.id)
                else:
                    task.slices += 1
                    self._paused.add(effect.id, task.operation, task.slices)
                return
            if isinstance(effect, QUESTIONS):  # what may end by time: WaitFor, CallPlugin
                self._waits.add(effect, self.context.now_s)
            if isinstance(effect, WaitFor):
                return
        if task.binds and (not isinstance(effect, CallPlugin) or effect.binds):
            self._on_wire.add(effect.id)
        self._out.append(effect)

    def _pause_alone(self, effect_id: int) -> None:
        """End the turn with a task whose records are incomplete. It goes on before facts are taken
        in or decisions are made, one slice a turn.
        """
        sliced_work = self.context.queue.sliced_work
        sliced_work.budget.note(SLICE_STEPS)
        self._paused_alone.append(effect_id)
        if len(self._paused_alone) == 1:
            sliced_work.do(self._go_on_alone())

    def _go_on_alone(self) -> Iterator[None]:
        paused, budget = self._paused_alone, self.context.cluster.budget
        while paused:
            spent = budget.spent
            self._take_answer(Done(paused[0]))  # it may pause again
            paused.popleft()
            self.context.queue.sliced_work.budget.note(budget.spent - spent)
            yield

    def _run_together(self, effect: Together, *, binds: bool) -> None:
        """Start all parts; the last one to end answers the effect."""
        results: list[Any] = []

        def ended(result: Any) -> None:
            results.append(result)
            if len(results) == len(effect.parts):
                self._take_answer(Returned(effect.id, results))

        for part in effect.parts:
            self._advance(_Task(part, ended, effect.operation, binds), None)

    # --- cycles ----------------------------------------------------------------------------------

    def _run_cycles(self) -> None:
        context, had_paused = self.context, bool(self._paused.ids)
        while len(self._on_wire) < self.bindings_max:
            for refresh in self._extensions.refresh:
                refresh(may_decide=True)
            unit = self._next_unit()
            if unit is None:
                self._has_more |= context.queue.due_filter.is_unfinished
                break
            self._is_quiet = False
            self._open_cycles += 1
            task = _Task(schedule(context, unit), partial(self._unit_ended, unit))
            if unit.key:
                self._parked.open_units.add(unit.key)
                task.others_share = OTHERS_SHARE_OF_MANY
            self._advance(task, None)
            if unit.key:
                self._follow_on()
            if context.sliced_work or self.limit.is_over():
                self._has_more = True
                break
        had_paused &= not context.sliced_work
        if had_paused and (self._is_quiet or self.limit.may_resume()):
            effect_id = self._paused.pop()
            others_share = self._open[effect_id].others_share
            self.limit.begin_slice()
            self._take_answer(Done(effect_id))
            self.limit.end_slice(others_share)

    def _begin_turns(self) -> None:
        for turn in self._extensions.turns:
            for work in turn.begin():
                if not isinstance(work, Work):
                    self._out.append(work)
                    continue
                self._open_cycles += work.decides
                ended = self._cycle_ended if work.decides else self._follow
                task = _Task(work.steps, ended, others_share=OTHERS_SHARE_OF_MANY)
                self._advance(task, None)

    def _next_unit(self) -> Unit | None:
        """The next unit; one without extenders while a cycle waits for an extender."""
        context = self.context
        deciding = self.is_deciding
        parked_units = self._parked.units
        while parked_units and (parked := self._parked.pop(is_deciding=deciding)) is not None:
            parked.begin_again(context)
            if parked.attempts:
                return parked
        while not (len(parked_units) >= PARKED_MAX or context.sliced_work):
            queued = context.queue.pop(context.now_s)
            if queued is None:
                return None
            attempt = self._begin(queued)
            if attempt is None:
                continue
            if queued.gang and self._extensions.units is not None:
                unit = self._extensions.units.unit(attempt, self._begin)
            else:
                unit = PodUnit(attempt, [attempt])
            if not self._parked.has_to_wait(unit, is_deciding=deciding):
                return unit
            self._parked.add(unit)
        return None

    def _begin(self, queued: QueuedPod) -> Attempt | None:
        """Make the attempt at a popped pod; None if the last reload removed its profile."""
        context = self.context
        pod = queued.pod
        runner = context.runners.get(queued.profile)
        if runner is None:
            context.queue.done(pod.uid)
            return None
        self._attempts += 1
        try:
            info = context.cluster.classes.info_of(pod, queued.class_key)
            attempt = Attempt(self._attempts, queued, info, runner, context.monotonic_s())
            marks = pod.metadata.labels or pod.metadata.annotations or pod.spec.scheduling_group
            if marks and queued.attempts == 1:
                self._out += self._gang_reports.of(attempt)
        except MISTAKES as raised:
            context.contain(raised, "begin", queued.key)
            now = context.cluster.pods_seen.get(queued.key, pod)
            if context.owns(now):
                context.queue.return_failed(queued, now, (), (), context.now_s)
            else:
                context.queue.done(pod.uid)
            return None
        return attempt

    def _unit_ended(self, unit: Unit, follows: list[Any] | None) -> None:
        self._open_cycles -= 1
        if unit.key:
            self._parked.open_units.discard(unit.key)
            self._followers.extend(follows or ())
            return
        for result in follows or ():
            self._follow(result)

    def _cycle_ended(self, result: Any) -> None:
        self._open_cycles -= 1
        self._follow(result)

    def _follow_on(self) -> None:
        """Begin the bindings of units; those of a large group take several turns."""
        while self._followers:
            self._follow(self._followers.popleft())
            if self.limit.is_over():
                return

    def _follow(self, result: Any) -> None:
        if isinstance(result, Binding):
            self.bindings += 1
            self._advance(_Task(result.run(), self._binding_ended, binds=True), None)
        elif isinstance(result, Background | GivingBack):  # of PostFilter: evictions and the like
            self._advance(_Task(result.run(), self._background_ended), None)

    def _binding_ended(self, _: Any) -> None:
        self.bindings -= 1

    def _background_ended(self, result: Any) -> None:
        """Retry the pod at once if the work had nothing left to change (SKIP), or after its backoff
        if the work failed. Otherwise the changes it caused wake the pod.
        """
        if result is None:  # an exception ended it
            return
        status, pod = result
        if status.code is Code.SKIP:
            self.context.queue.activate((pod,), self.context.now_s)
        elif not status.is_success:
            self.context.queue.retry(pod, self.context.now_s)
