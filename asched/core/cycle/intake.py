"""Apply the facts of a turn, one after the other, and carry out what follows from each.

    a fact ──> the cluster ──> changes ──> steps of the queue, of which waiting pods may be notified
                                             all are notified: the next step, the next fact
                                             too many for one turn: sliced work, done in the next
                                               turns; no other fact or attempt comes before that

A turn that finishes the work of the turn before applies no facts, so that cycles have their turn.

Bounds  the budget's slice for pods to notify; LISTED_PER_TURN objects of lists a turn.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import Final

from asched.core.cluster.changes import ASSIGNED_POD_ADD
from asched.core.cluster.cluster import ObservedChange
from asched.core.cluster.facts import Answer, Fact, Listed
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.node_pace import NodePace
from asched.core.cycle.orders import Order
from asched.core.cycle.queue_steps import take_step
from asched.core.cycle.waits import OpenWaits
from asched.core.framework.effects import Effect
from asched.core.framework.status import MISTAKES
from asched.core.model.kinds import NODE, POD
from asched.core.queue import event_handlers
from asched.core.queue.waking import DRY_RUN_STEPS

#: A pod costs 33 µs, so a turn spends 8 ms at most. A list of 100,000 pods in one step would keep
#: the driver from its sockets for 3.3 s.
LISTED_PER_TURN: Final = 256


_DONE: Final = object()
#: For a pod with a long key of its class, this many bytes of it cost one step of the budget.
KEY_BYTES_PER_STEP: Final = 3_000


class Intake:
    """`waits` notes each change, `answer` receives each answer, `emit` the effects of orders."""

    def __init__(
        self,
        context: SchedulerContext,
        waits: OpenWaits,
        answer: Callable[[Answer], None],
        emit: Callable[[Iterable[Effect]], None],
    ) -> None:
        self._context = context
        self._waits = waits
        self._answer = answer
        self._emit = emit
        #: facts in the order of their arrival
        self._facts: deque[Fact] = deque()
        #: the rest of a list that is applied in part
        self._listing: Iterator[ObservedChange | None] | None = None
        #: the steps of a fact that is not done yet
        self._begun: Iterator[None] | None = None
        #: Whether some waiting pod may be helped by a new pod without a node, such as the rest of
        #: its group.
        self._announces_arrivals = False
        #: Postpones versions of nodes that change too often.
        self.pace = NodePace()
        self._budget = context.queue.sliced_work.budget
        self._due_filter = context.queue.due_filter

    def __bool__(self) -> bool:
        """Whether facts are not applied, or pods not notified, yet."""
        context = self._context
        return bool(
            self._facts or self._begun or context.sliced_work or context.cluster.answered_changes
        )

    @property
    def may_decide(self) -> bool:
        """Whether no list is applied in part, and all pods are notified."""
        is_amid_fact = self._begun is not None or self._context.sliced_work
        return not (is_amid_fact or self._listing is not None)

    def turn(self, facts: Iterable[Fact]) -> bool:
        """Apply a turn's share of the facts; whether there was any work."""
        if self.pace.rests:
            facts = self.pace.admit(facts, self._context.now_s)
        self._facts.extend(facts)
        has_work = bool(self)
        sliced_work, budget = self._context.sliced_work, self._budget
        budget.open()
        self._announces_arrivals = self._context.queue.awaits_pods
        if sliced_work or self._begun is not None:
            self._slice()
            if self._begun is not None and not sliced_work:
                self._go_on(self._begun)
            return has_work
        answered = self._context.cluster.answered_changes
        if answered:
            self._apply_answered()
            if sliced_work:
                return has_work
        classes = self._context.cluster.classes
        for fact, listed in self._share():
            if isinstance(fact, Answer):
                self._answer(fact)
                if answered:
                    self._apply_answered()
            else:
                self._go_on(self._take_in(fact, listed))
            if classes.long_bytes:  # bytes of keys that are long, of classes made just now
                budget.note(classes.long_bytes / KEY_BYTES_PER_STEP)
                classes.long_bytes = 0
            if budget.remaining <= 0:
                break
        unreadable = self._context.cluster.unreadable
        for about, error in unreadable:
            self._context.contain(error, "intake", about)
        unreadable.clear()
        return has_work

    def _share(self) -> Iterator[tuple[Fact, list[ObservedChange] | None]]:
        """Yield a turn's share: (fact, None) of a fact that is not a list; (list, changes) of a
        part of a list, which is applied here. A caller may stop after any of them: the next call
        goes on there.
        """
        waiting, share = self._facts, LISTED_PER_TURN
        while waiting:
            fact = waiting[0]
            if not isinstance(fact, Listed):
                waiting.popleft()
                yield fact, None
                continue
            listing = self._listing = self._listing or self._context.cluster.relist(fact)
            steps = list(islice(listing, share))
            share -= len(steps)
            if share:
                self._listing = None
                waiting.popleft()
            yield fact, [change for change in steps if change is not None]
            if not share:
                return

    def _slice(self) -> None:
        """Go on with sliced work. An exception ends one piece and no other."""
        try:
            self._context.queue.sliced_work.go_on()
        except MISTAKES as raised:
            self._context.contain(raised, "queue")

    def _apply_answered(self) -> None:
        """Handle objects of API responses as if the watch had reported them."""
        answered = self._context.cluster.answered_changes
        changes = [ObservedChange(*change) for change in answered]
        answered.clear()
        self._go_on(self._follow(changes))

    def _go_on(self, begun: Iterator[None]) -> None:
        self._begun = None if next(begun, _DONE) is _DONE else begun

    def _take_in(self, fact: Fact, listed: Iterable[ObservedChange] | None) -> Iterator[None]:
        """Handle a fact, or the changes of a part of a list. Yields while work is sliced."""
        context = self._context
        if listed is not None:
            if context.shadow is not None:
                context.shadow.listed(listed)
            yield from self._follow(listed)
        elif isinstance(fact, Order):
            self._emit(fact.carry_out(context))
        else:
            started_s, kind = context.monotonic_s(), getattr(fact, "kind", None)
            spent, due = self._budget.spent, self._due_filter.made_due
            if context.shadow is not None:
                context.shadow.about_to_see(fact)
            label = yield from self._follow(context.cluster.apply(fact))
            if kind is NODE:
                made_due = self._due_filter.made_due - due  # classes that became due
                steps = self._budget.spent - spent + DRY_RUN_STEPS * made_due
                self.pace.handled(fact, steps, context.now_s)
            if label:
                context.observer.fact_handled(label, context.monotonic_s() - started_s, kind)

    def _follow(self, changes: Iterable[ObservedChange]) -> Generator[None, None, str]:
        """Carry out the steps of changes; returns the label of the last step, if it has one."""
        context, label = self._context, ""
        for change in changes:
            if self._waits.by_topic:
                self._waits.saw(change)
            for saw in context.extensions.saw:
                saw(change)
            if change.kind is NODE:
                for saw in context.extensions.saw_node:
                    saw(change)
            appears_placed = change.kind is POD and change.old is None and change.new.spec.node_name
            if appears_placed and context.queue.ignores_changes:  # common in a long list
                label = ASSIGNED_POD_ADD.label
                continue
            steps = event_handlers.steps(
                change.kind,
                change.old,
                change.new,
                owns=context.owns,
                is_assumed=context.cluster.is_assumed,
                announces_arrivals=self._announces_arrivals,
            )
            for step in steps:
                try:
                    label = take_step(context, step)
                except MISTAKES as raised:  # the object is stored, and its next change is handled
                    seen = change.old if change.new is None else change.new
                    about = f"{change.kind.resource} {seen.metadata.key}"
                    context.contain(raised, "queue", about)
                if context.sliced_work:
                    yield
        return label
