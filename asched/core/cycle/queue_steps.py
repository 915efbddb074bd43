"""Carry out the steps that `event_handlers` derives from changes of objects."""

from collections.abc import Hashable

from asched.core.cluster.changes import ASSIGNED_POD_DELETE, UNSCHEDULABLE_POD_ADD, Action, Change
from asched.core.cluster.refusals import owner_of
from asched.core.cycle.context import SchedulerContext
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.queue import event_handlers
from asched.core.queue.pool_moves import SELECTED, follow_pools
from asched.core.queue.queued import QueuedPod


def take_step(context: SchedulerContext, step: event_handlers.Step) -> str:
    """Carry out one step; returns its label for metrics, or an empty string."""
    queue = context.queue
    match step:
        case event_handlers.Announce():
            if step.change.trigger.resource in SELECTED and (pools := context.pools) is not None:
                pools.saw(step.change)
                follow_pools(queue, step.change, context.now_s)
            queue.move(step.change, context.now_s)
            if context.cluster.refusals.avoided:
                _end_pauses(context, step.change)
            return step.change.trigger.label
        case event_handlers.Enqueue():
            queue.add(step.pod, context.now_s)
            if step.is_announced and not queue.ignores_changes:
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


def _end_pauses(context: SchedulerContext, change: Change) -> None:
    """Pods may avoid a node whose kubelet refused a pod of the same owner (`refusals.py`). Try them
    again if the node changed or a pod that ran there has left; else those that a change of another
    node, or a pod that left it, gives a place.
    """
    old, refusals = change.old, context.cluster.refusals
    if isinstance(old, Node):
        name = old.name
    elif change.trigger == ASSIGNED_POD_DELETE and isinstance(old, Pod):
        name = old.spec.node_name if old.status.start_time else ""
    elif isinstance(change.new, Node):
        name = ""
    else:
        return
    owners = refusals.node_changed(name, context.cluster.steady_s)
    if owners:
        context.queue.end_pauses(lambda queued: owner_of(queued.pod) in owners, context.now_s)
    elif refusals.until_s > context.cluster.steady_s:
        fits = _PlaceElsewhere(context, is_for_one=isinstance(old, Pod))
        context.queue.end_pauses(fits, context.now_s)


class _PlaceElsewhere:
    """Whether a pod that avoids a node fits now, by one dry run for equal pods of an owner.
    `is_for_one`: the change frees room for one of them.
    """

    def __init__(self, context: SchedulerContext, *, is_for_one: bool) -> None:
        self._context = context
        self._is_for_one = is_for_one
        self._verdicts: dict[Hashable, bool] = {}

    def __call__(self, queued: QueuedPod) -> bool:
        context, pod = self._context, queued.pod
        if not context.cluster.refusals.rows(pod, context.cluster.steady_s):
            return False
        key = owner_of(pod), queued.profile, queued.class_key
        if key not in self._verdicts:
            self._verdicts[key] = context.queue.due_filter.rejectors(queued) is None
        has_place = self._verdicts[key]
        self._verdicts[key] = has_place and not self._is_for_one
        return has_place


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
