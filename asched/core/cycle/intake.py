"""Apply the facts of a turn, one after the other, and carry out what follows from each.

    a fact ──> the cluster ──> changes ──> steps of the queue, of which waiting pods may be notified
                                             all are notified: the next step, the next fact
                                             too many for one turn: `sliced` goes on in the next
                                               turn; no other fact or attempt comes before that

A turn that finishes the work of the turn before applies no facts, so that cycles have their turn.

A vast pod is stored at once, but enters the queue like a paused attempt goes on: one by one, after
other pods have had their turn. The key of its class takes a millisecond or several. Finding out
whether a pod is vast takes as long as the key of an ordinary pod, so it is checked only after a
first vast pod, and until LOOK_OUT_S after the last.

Bounds  the budget's slice for pods to notify; those of `backlog.py`.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from math import inf
from typing import Any, Final

from asched.core.cycle.backlog import Backlog
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.orders import Order
from asched.core.cycle.queue_steps import take_step
from asched.core.framework.effects import Effect, Pause
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.model.vast import is_vast
from asched.core.queue import event_handlers
from asched.core.queue.event_handlers import Enqueue, Refresh
from asched.core.state.changes import ASSIGNED_POD_ADD
from asched.core.state.cluster import ObservedChange
from asched.core.state.facts import Answer, Fact

#: A guess: clients that create vast pods create several.
LOOK_OUT_S: Final = 60.0
#: A generator of effects, sent their answers.
Steps = Generator[Effect, Answer, Any]
_DONE: Final = object()


class Intake:
    """`saw` receives each change, `answer` each answer, `asked` the effects of orders. `put_off`
    runs steps that begin with a pause; False if this replica is not active.
    """

    def __init__(
        self,
        context: SchedulerContext,
        saw: Callable[[ObservedChange], None],
        answer: Callable[[Answer], None],
        asked: Callable[[Iterable[Effect]], None],
        put_off: Callable[[Steps], bool],
    ) -> None:
        self._context = context
        self._saw = saw
        self._answer = answer
        self._asked = asked
        self._put_off = put_off
        #: the number of long keys so far, and until when pods are checked for being vast
        self._long_keys, self._checks_until_s = 0, -inf
        self._backlog = Backlog(context.cluster)
        #: the steps of a fact that is not done yet
        self._begun: Iterator[None] | None = None
        self._announces_arrivals = False

    def __bool__(self) -> bool:
        """Whether facts are not applied, or pods not notified, yet."""
        context = self._context
        return bool(self._backlog or self._begun or context.queue.sliced or context.cluster.news)

    @property
    def may_decide(self) -> bool:
        """Whether no list is applied in part, and all pods are notified."""
        is_amid_fact = self._begun is not None or bool(self._context.queue.sliced)
        return not (is_amid_fact or self._backlog.is_amid_list)

    def turn(self, facts: Iterable[Fact]) -> bool:
        """Apply a turn's share of the facts; whether there was any work."""
        self._backlog.extend(facts)
        has_work = bool(self)
        sliced = self._context.queue.sliced
        sliced.budget.open()
        self._announces_arrivals = self._context.awaits_pods
        if sliced or self._begun is not None:
            self._slice()
            if self._begun is not None and not sliced:
                self._go_on(self._begun)
            return has_work
        news = self._context.cluster.news
        if news:
            self._apply_news()
            if sliced:
                return has_work
        for fact, listed in self._backlog.turn():
            if isinstance(fact, Answer):
                self._answer(fact)
                if news:
                    self._apply_news()
            else:
                self._go_on(self._take_in(fact, listed))
            if sliced.budget.left <= 0:
                break
        self._report_unreadable()
        return has_work

    def _report_unreadable(self) -> None:
        unreadable = self._context.cluster.unreadable
        for about, error in unreadable:
            self._context.contain(error, "intake", about)
        unreadable.clear()

    def _slice(self) -> None:
        """Go on with sliced work. An exception ends one piece and no other."""
        try:
            self._context.queue.sliced.go_on()
        except MISTAKES as raised:
            self._context.contain(raised, "queue")

    def _apply_news(self) -> None:
        """Handle objects of API responses as if the watch had reported them."""
        news = self._context.cluster.news
        changes = [ObservedChange(*change) for change in news]
        news.clear()
        self._go_on(self._follow(changes))

    def _go_on(self, begun: Iterator[None]) -> None:
        self._begun = None if next(begun, _DONE) is _DONE else begun

    def _take_in(self, fact: Fact, listed: Iterable[ObservedChange] | None) -> Iterator[None]:
        """Handle one fact, or the changes of a part of a list. Yields while `sliced` has work."""
        context = self._context
        if listed is not None:
            if context.beside is not None:
                context.beside.listed(listed)
            yield from self._follow(listed)
        elif isinstance(fact, Order):
            self._asked(fact.carry_out(context))
        else:
            started_s = context.counter_s()
            if context.beside is not None:
                context.beside.about_to_see(fact)
            label = yield from self._follow(context.cluster.apply(fact))
            if label:
                context.observer.fact_handled(label, context.counter_s() - started_s)

    def _follow(self, changes: Iterable[ObservedChange]) -> Generator[None, None, str]:
        """Carry out the steps of changes; returns the label of the last step, if it has one."""
        context, label = self._context, ""
        sliced = context.queue.sliced
        for change in changes:
            self._saw(change)
            if event_handlers.only_announces(*change) and context.queue.is_deaf:
                label = ASSIGNED_POD_ADD.label  # common in a long list
                continue
            steps = event_handlers.steps(
                change.kind,
                change.old,
                change.new,
                owns=context.owns,
                is_assumed=context.cluster.is_assumed,
                announces_arrivals=self._announces_arrivals,
            )
            may_be_vast = context.late or context.now_s < self._checks_until_s
            may_be_late = (
                may_be_vast and isinstance(change.new, Pod) and not change.new.spec.node_name
            )
            for step in steps:
                if may_be_late and self._is_late(step):
                    continue
                try:
                    label = take_step(context, step)
                except MISTAKES as raised:  # the object is stored, and its next change is handled
                    seen = change.old if change.new is None else change.new
                    about = f"{change.kind.resource} {seen.metadata.key}"
                    context.contain(raised, "queue", about)
                if sliced.pieces:
                    yield
            if context.cluster.classes.long_keys != self._long_keys:
                self._long_keys = context.cluster.classes.long_keys
                self._checks_until_s = context.now_s + LOOK_OUT_S
        return label

    def _is_late(self, step: event_handlers.Step) -> bool:
        """Whether the step's pod is to enter the queue later, in its newest version then."""
        late = self._context.late
        if isinstance(step, Enqueue):
            pod = step.pod
            if pod.metadata.uid not in late and is_vast(pod) and self._put_off(self._arrival(pod)):
                late.add(pod.metadata.uid)
        elif isinstance(step, Refresh):
            pod = step.new
        else:
            return False
        return pod.metadata.uid in late

    def _arrival(self, pod: Pod) -> Steps:
        yield Pause()
        context = self._context
        context.late.discard(pod.uid)
        known, queue = context.cluster.pods_seen.get(pod.key), context.queue
        if known is None or known.uid != pod.uid or known.spec.node_name or not context.owns(known):
            return
        if queue.places.get(pod.key) is not None or pod.uid in queue.in_flight:
            return  # it was queued by a new profile
        take_step(context, Enqueue(known, context.awaits_pods))
