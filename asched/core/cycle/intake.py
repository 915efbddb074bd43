"""What a turn takes in: facts, one after the other, and all that follows from each.

    a fact ──> the cluster ──> sights ──> steps of the queue, of which those who rest may hear
                                            all have heard: the next step, the next fact
                                            too many for one turn: `sliced` goes on in the next
                                              one; nothing else is taken in or decided before

A turn that made up for the one before takes in no more, so that cycles have their turn, too.

A vast pod that comes is known at once, and enters the queue as an attempt that paused goes on: one
by one, when others had their share. To make the key of its class takes a millisecond, or several,
and to find out which pods are vast as long as the key of any other: nobody looks before the first
of them was met, nor for longer than LOOK_OUT_S after the last.

Bounds  the budget's slice for those who have to hear; those of `backlog.py`.
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

#: A guess: tenants who make such pods make several.
LOOK_OUT_S: Final = 60.0
#: A generator of effects, sent their answers.
Steps = Generator[Effect, Answer, Any]
_DONE: Final = object()


class Intake:
    """`saw` hears of all that changed, `answer` of what was answered; `asked` are effects of
    orders. `put_off` runs what pauses first, if anything is decided here now.
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
        #: how many long keys were met, and until when vast pods are looked out for
        self._long_keys, self._looks_out_until_s = 0, -inf
        self._backlog = Backlog(context.cluster)
        #: what follows from the fact of which not everything is done
        self._begun: Iterator[None] | None = None
        self._announces_arrivals = False

    def __bool__(self) -> bool:
        """Whether something is not wholly known yet, or not all have heard of it."""
        context = self._context
        return bool(self._backlog or self._begun or context.queue.sliced or context.cluster.news)

    @property
    def may_decide(self) -> bool:
        """Whether what is known is neither half a list, nor half heard of."""
        is_amid_fact = self._begun is not None or bool(self._context.queue.sliced)
        return not (is_amid_fact or self._backlog.is_amid_list)

    def turn(self, facts: Iterable[Fact]) -> bool:
        """Take in a turn's share of what arrived; whether there was anything."""
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
            self._tell_news()
            if sliced:
                return has_work
        for fact, listed in self._backlog.turn():
            if isinstance(fact, Answer):
                self._answer(fact)
                if news:
                    self._tell_news()
            else:
                self._go_on(self._take_in(fact, listed))
            if sliced.budget.left <= 0:
                break
        self._tell_unreadable()
        return has_work

    def _tell_unreadable(self) -> None:
        unreadable = self._context.cluster.unreadable
        for about, error in unreadable:
            self._context.contain(error, "intake", about)
        unreadable.clear()

    def _slice(self) -> None:
        """Go on with what is sliced. A piece that raises ends there, and costs no other."""
        try:
            self._context.queue.sliced.go_on()
        except MISTAKES as raised:
            self._context.contain(raised, "queue")

    def _tell_news(self) -> None:
        """What the API has answered with is known as if the watch had told."""
        news = self._context.cluster.news
        sights = [ObservedChange(*one) for one in news]
        news.clear()
        self._go_on(self._follow(sights))

    def _go_on(self, begun: Iterator[None]) -> None:
        self._begun = None if next(begun, _DONE) is _DONE else begun

    def _take_in(self, fact: Fact, listed: Iterable[ObservedChange] | None) -> Iterator[None]:
        """One fact, or of a list what a part of it changed. Stops where `sliced` has work left."""
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

    def _follow(self, sights: Iterable[ObservedChange]) -> Generator[None, None, str]:
        """Hand on what changed; the label of the last step, if it has one."""
        context, label = self._context, ""
        sliced = context.queue.sliced
        for sight in sights:
            self._saw(sight)
            if event_handlers.only_announces(*sight) and context.queue.is_deaf:
                label = ASSIGNED_POD_ADD.label  # mostly of a long list
                continue
            steps = event_handlers.steps(
                sight.kind,
                sight.old,
                sight.new,
                owns=context.owns,
                is_assumed=context.cluster.is_assumed,
                announces_arrivals=self._announces_arrivals,
            )
            looks_out = context.late or context.now_s < self._looks_out_until_s
            may_be_late = looks_out and isinstance(sight.new, Pod) and not sight.new.spec.node_name
            for step in steps:
                if may_be_late and self._is_late(step):
                    continue
                try:
                    label = take_step(context, step)
                except MISTAKES as raised:  # the object is known, and its next change is heard
                    seen = sight.old if sight.new is None else sight.new
                    about = f"{sight.kind.resource} {seen.metadata.key}"
                    context.contain(raised, "queue", about)
                if sliced.pieces:
                    yield
            if context.cluster.classes.long_keys != self._long_keys:
                self._long_keys = context.cluster.classes.long_keys
                self._looks_out_until_s = context.now_s + LOOK_OUT_S
        return label

    def _is_late(self, step: event_handlers.Step) -> bool:
        """Whether it is of a pod that is to enter the queue later, as it will be known then."""
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
            return  # it came with another profile
        take_step(context, Enqueue(known, context.awaits_pods))
