"""Apply the facts of a turn, one after the other, and carry out what follows from each.

    a fact ──> the cluster ──> changes ──> steps of the queue, of which waiting pods may be notified
                                             all are notified: the next step, the next fact
                                             too many for one turn: `sliced` goes on in the next
                                               turn; no other fact or attempt comes before that

A turn that finishes the work of the turn before applies no facts, so that cycles have their turn.

Bounds  the budget's slice for pods to notify; LISTED_PER_TURN objects of lists a turn.

Carry out the steps that `event_handlers` derives from changes of objects.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import Final

from asched.core.cluster.changes import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    UNSCHEDULABLE_POD_ADD,
    Action,
    Change,
)
from asched.core.cluster.cluster import ObservedChange
from asched.core.cluster.facts import Answer, Fact, Listed
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.node_pace import NodePace
from asched.core.cycle.orders import Order
from asched.core.cycle.waits import OpenWaits
from asched.core.framework.effects import Effect, Pause
from asched.core.framework.status import MISTAKES
from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from asched.core.queue import event_handlers
from asched.core.queue.waking import LOOK_STEPS

#: Budget steps to notify waiting pods of a change, or to report the result of a group's pod.
TELL_STEPS: Final = 5


class FreedPlaces:
    """Places that pods gave back, collected to one change for each class of equal pods."""

    def __init__(self) -> None:
        #: number of a class -> one of its pods, and the nodes where places became free
        self.nodes: dict[int, tuple[Pod, set[str]]] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    def add(self, class_number: int, pod: Pod, node: str) -> None:
        self.nodes.setdefault(class_number, (pod, set()))[1].add(node)

    def take_over(self, other: "FreedPlaces") -> None:
        """Move the places of another collection to this one."""
        for number, (pod, nodes) in other.nodes.items():
            self.nodes.setdefault(number, (pod, set()))[1].update(nodes)
        other.nodes.clear()

    def take(self) -> Iterator[Change]:
        """Yield and remove the changes."""
        while self.nodes:
            pod, nodes = self.nodes.popitem()[1]
            freed = pod.on(min(nodes))
            yield Change(ASSIGNED_POD_DELETE, freed, is_of_many=len(nodes) > 1)


def take_step(context: SchedulerContext, step: event_handlers.Step) -> str:
    """Carry out one step; returns its label for metrics, or an empty string."""
    queue = context.queue
    match step:
        case event_handlers.Announce():
            queue.move(step.change, context.now_s)
            return step.change.trigger.label
        case event_handlers.Enqueue():
            queue.add(step.pod, context.now_s)
            if step.is_announced and not queue.is_deaf:
                queue.move(Change(UNSCHEDULABLE_POD_ADD, None, step.pod), context.now_s)
            return "UnschedulablePodAdd"
        case event_handlers.Refresh():
            _refresh(context, step.old, step.new)
            return "UnschedulablePodUpdate"
        case event_handlers.Withdraw():
            _withdraw(context, step.pod)
        case event_handlers.Release():
            _release(context, step.pod.uid)
        case event_handlers.ForeignNomination():
            _note_foreign_nomination(context, step.old, step.new)
    return ""


def _refresh(context: SchedulerContext, old: Pod, new: Pod) -> None:
    """Store the new version of a waiting pod. A nominated pod may need less room now."""
    context.queue.update(old, new, context.now_s)
    node = context.nominator.node_of(new.uid)
    if node and old.status.nominated_node_name in ("", new.status.nominated_node_name):
        _room_may_be_free(context, old, new, node)


def _note_foreign_nomination(context: SchedulerContext, old: Pod | None, new: Pod) -> None:
    """Record that another scheduler set, kept or removed the nomination of its pod."""
    context.nominator.add_of_others(new)
    if old is None or not old.status.nominated_node_name:
        return
    node = old.status.nominated_node_name
    if node != new.status.nominated_node_name:
        room_is_free(context, old, node)
    else:
        _room_may_be_free(context, old, new, node)


def _room_may_be_free(context: SchedulerContext, old: Pod, new: Pod, node: str) -> None:
    """Announce the nominated node again if the pod needs less, or changed its labels."""
    actions = {trigger.action for trigger in event_handlers.pod_triggers(old, new)}
    if actions & {Action.UPDATE_POD_LABEL, Action.UPDATE_POD_SCALE_DOWN}:
        room_is_free(context, old, node)


def _withdraw(context: SchedulerContext, pod: Pod) -> None:
    """Remove a pod from the queue. The room of its nomination, which may not be written to the API,
    is free unless the pod is placed there.
    """
    node = context.nominator.node_of(pod.metadata.uid) or pod.status.nominated_node_name
    context.queue.delete(pod)
    if node:
        info = context.cluster.placed.get(pod.metadata.uid)
        if info is None or info.node_name != node:
            room_is_free(context, pod, node)


def room_is_free(context: SchedulerContext, pod: Pod, node: str, *, except_uid: str = "") -> None:
    """Notify the pods that had to respect a nomination; upstream may not notify them."""
    freed = Change(
        ASSIGNED_POD_DELETE, pod.on(node), priority_at_most=pod.priority, only_if_fits=True
    )
    context.queue.move(freed, context.now_s, except_uid=except_uid)


def _release(context: SchedulerContext, uid: str) -> None:
    """Give back the place of an assumed pod that was deleted before it was bound."""
    waiting = context.waiting.get(uid)
    if waiting is not None:
        waiting.withdraw()
        if waiting.deadlines:  # the end of its binding cycle gives everything back
            return
    info = context.cluster.placed.get(uid)
    if info is not None and info.assumed:
        on_node = info.pod.on(info.node_name)
        context.cluster.forget(info)
        context.queue.move(Change(ASSIGNED_POD_DELETE, on_node), context.now_s)


def notify_of_freed(
    context: SchedulerContext, freed: FreedPlaces
) -> Generator[Effect, Answer, None]:
    """Notify waiting pods of places that were given back; other pods may be tried between two
    changes.
    """
    for change in freed.take():
        if context.cluster.budget.is_used_up:
            yield Pause()
        while context.queue.sliced.pieces:
            yield Pause()
        context.cluster.budget.note(TELL_STEPS)
        context.queue.move(change, context.now_s)


#: A pod costs 33 µs, so a turn spends 8 ms at most. A list of 100,000 pods in one step would keep
#: the driver from its sockets for 3.3 s.
LISTED_PER_TURN: Final = 256


_DONE: Final = object()
#: Bytes of long keys of pods' classes that are made in a step of the budget.
KEY_BYTES_PER_STEP: Final = 3_000


class Intake:
    """`waits` notes each change, `answer` receives each answer, `asked` the effects of orders."""

    def __init__(
        self,
        context: SchedulerContext,
        waits: OpenWaits,
        answer: Callable[[Answer], None],
        asked: Callable[[Iterable[Effect]], None],
    ) -> None:
        self._context = context
        self._waits = waits
        self._answer = answer
        self._asked = asked
        #: facts in the order of their arrival
        self._facts: deque[Fact] = deque()
        #: the rest of a list that is applied in part
        self._listing: Iterator[ObservedChange | None] | None = None
        #: the steps of a fact that is not done yet
        self._begun: Iterator[None] | None = None
        self._announces_arrivals = False
        self.pace = NodePace()
        self._budget, self._looking = context.queue.sliced.budget, context.queue.looking

    def __bool__(self) -> bool:
        """Whether facts are not applied, or pods not notified, yet."""
        context = self._context
        pieces = context.queue.sliced.pieces
        return bool(self._facts or self._begun or pieces or context.cluster.news)

    @property
    def may_decide(self) -> bool:
        """Whether no list is applied in part, and all pods are notified."""
        is_amid_fact = self._begun is not None or self._context.queue.sliced.pieces
        return not (is_amid_fact or self._listing is not None)

    def turn(self, facts: Iterable[Fact]) -> bool:
        """Apply a turn's share of the facts; whether there was any work."""
        if self.pace.rests:
            facts = self.pace.admit(facts, self._context.now_s)
        self._facts.extend(facts)
        has_work = bool(self)
        sliced = self._context.queue.sliced
        sliced.budget.open()
        self._announces_arrivals = self._context.queue.awaits_pods
        if sliced.pieces or self._begun is not None:
            self._slice()
            if self._begun is not None and not sliced.pieces:
                self._go_on(self._begun)
            return has_work
        news = self._context.cluster.news
        if news:
            self._apply_news()
            if sliced.pieces:
                return has_work
        classes = self._context.cluster.classes
        for fact, listed in self._share():
            if isinstance(fact, Answer):
                self._answer(fact)
                if news:
                    self._apply_news()
            else:
                self._go_on(self._take_in(fact, listed))
            if classes.long_bytes:
                sliced.budget.note(classes.long_bytes / KEY_BYTES_PER_STEP)
                classes.long_bytes = 0
            if sliced.budget.left <= 0:
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
            started_s, kind = context.counter_s(), getattr(fact, "kind", None)
            spent, due = self._budget.spent, self._looking.made_due
            if context.beside is not None:
                context.beside.about_to_see(fact)
            label = yield from self._follow(context.cluster.apply(fact))
            if kind is NODE:
                steps = self._budget.spent - spent + LOOK_STEPS * (self._looking.made_due - due)
                self.pace.handled(fact, steps, context.now_s)
            if label:
                context.observer.fact_handled(label, context.counter_s() - started_s, kind)

    def _follow(self, changes: Iterable[ObservedChange]) -> Generator[None, None, str]:
        """Carry out the steps of changes; returns the label of the last step, if it has one."""
        context, label = self._context, ""
        sliced = context.queue.sliced
        for change in changes:
            if self._waits.by_topic:
                self._waits.saw(change)
            for saw in context.extensions.saw:
                saw(change)
            appears_placed = change.kind is POD and change.old is None and change.new.spec.node_name
            if appears_placed and context.queue.is_deaf:  # common in a long list
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
                if sliced.pieces:
                    yield
        return label
