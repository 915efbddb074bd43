"""What follows for the queue from what was seen: the steps of `event_handlers`, carried out."""

from collections.abc import Generator, Iterator
from typing import Final

from asched.core.cycle.context import SchedulerContext
from asched.core.framework.effects import Effect, Pause
from asched.core.model.pod import Pod
from asched.core.queue import event_handlers
from asched.core.state.changes import (
    ASSIGNED_POD_DELETE,
    UNSCHEDULABLE_POD_ADD,
    Action,
    Change,
)
from asched.core.state.facts import Answer

#: Steps of the budget before a change of which the pods that wait hear.
TELL_STEPS: Final = 5


class Freed:
    """Places that equal pods gave back, whatever their nodes: one change a class of pods."""

    def __init__(self) -> None:
        #: number of a class -> one of its pods, and nodes that had room for it
        self.nodes: dict[int, tuple[Pod, set[str]]] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    def add(self, class_number: int, pod: Pod, node: str) -> None:
        self.nodes.setdefault(class_number, (pod, set()))[1].add(node)

    def take_over(self, other: "Freed") -> None:
        """Those of another as well, which has none then."""
        for number, (pod, nodes) in other.nodes.items():
            self.nodes.setdefault(number, (pod, set()))[1].update(nodes)
        other.nodes.clear()

    def take(self) -> Iterator[Change]:
        """The changes, each once."""
        while self.nodes:
            pod, nodes = self.nodes.popitem()[1]
            left = pod.on(min(nodes))
            yield Change(ASSIGNED_POD_DELETE, left, is_of_many=len(nodes) > 1)


def take_step(context: SchedulerContext, step: event_handlers.Step) -> str:
    """Carry out one step; the label that metrics know it by, if there is one."""
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
            _promise(context, step.old, step.new)
    return ""


def _refresh(context: SchedulerContext, old: Pod, new: Pod) -> None:
    """A waiting pod has a new version. If room is promised to it, it may need less now."""
    context.queue.update(old, new, context.now_s)
    node = context.nominator.node_of(new.uid)
    if node and old.status.nominated_node_name in ("", new.status.nominated_node_name):
        _room_may_be_free(context, old, new, node)


def _promise(context: SchedulerContext, old: Pod | None, new: Pod) -> None:
    """Another scheduler promised room to a pod of its own, keeps that up, or takes it back."""
    context.nominator.add_of_others(new)
    if old is None or not old.status.nominated_node_name:
        return
    node = old.status.nominated_node_name
    if node != new.status.nominated_node_name:
        room_is_free(context, old, node)
    else:
        _room_may_be_free(context, old, new, node)


def _room_may_be_free(context: SchedulerContext, old: Pod, new: Pod, node: str) -> None:
    """A pod that room is promised to may need less of it, or be in nobody's way any more."""
    actions = {trigger.action for trigger in event_handlers.pod_triggers(old, new)}
    if actions & {Action.UPDATE_POD_LABEL, Action.UPDATE_POD_SCALE_DOWN}:
        room_is_free(context, old, node)


def _withdraw(context: SchedulerContext, pod: Pod) -> None:
    """A pod waits no longer. Room that was promised to it, and maybe nowhere written, is
    free unless the pod took it.
    """
    node = context.nominator.node_of(pod.metadata.uid) or pod.status.nominated_node_name
    context.queue.delete(pod)
    if node:
        info = context.cluster.placed.get(pod.metadata.uid)
        if info is None or info.node_name != node:
            room_is_free(context, pod, node)


def room_is_free(context: SchedulerContext, pod: Pod, node: str, *, except_uid: str = "") -> None:
    """Pods that had to respect a promise to another hear of it, upstream's silence or not."""
    freed = Change(
        ASSIGNED_POD_DELETE, pod.on(node), priority_at_most=pod.priority, only_if_fits=True
    )
    context.queue.move(freed, context.now_s, except_uid=except_uid)


def _release(context: SchedulerContext, uid: str) -> None:
    """An assumed pod went away before it was bound."""
    waiting = context.waiting.get(uid)
    if waiting is not None:
        waiting.withdraw()
        if waiting.deadlines:  # its end gives everything back
            return
    info = context.cluster.placed.get(uid)
    if info is not None and info.assumed:
        held = info.pod.on(info.node_name)
        context.cluster.forget(info)
        context.queue.move(Change(ASSIGNED_POD_DELETE, held), context.now_s)


def telling(context: SchedulerContext, freed: Freed) -> Generator[Effect, Answer, None]:
    """Let the pods that wait hear of places that were given back; others have their turn between
    two changes.
    """
    for change in freed.take():
        if context.cluster.budget.is_used_up:
            yield Pause()
        while context.queue.sliced:
            yield Pause()
        context.cluster.budget.note(TELL_STEPS)
        context.queue.move(change, context.now_s)
