"""Where a pod is, and what it waits for: in the queue, in an attempt, or on its way to a node.

    queue            its sub-queue, its rejectors, and the victims of its nomination
    in flight        an attempt at it is under way
    being bound      its node is reserved: at Permit, in PreBind (with what a plugin awaits), or the
                     binding is sent
    bound            it has its node

A pod that has a reserved place counts on its node already, so the filters say nothing about it.

Bounds  VICTIMS_MAX victims are named.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.history import DecisionStep, HistoryEntry
from asched.core.framework.status import MISTAKES
from asched.core.framework.waiting import Stage, WaitingPod
from asched.core.model.pod import Pod
from asched.core.preemption.under_way import standing
from asched.core.queue.queued import QueuedPod
from asched.core.queue.unschedulable import equals_of

BOUND: Final = "bound"
VICTIMS_MAX: Final = 20
STAGES: Final[Mapping[Stage, str]] = {
    Stage.PERMIT: "waiting at Permit",
    Stage.PRE_BIND: "in PreBind",
    Stage.BINDING: "being bound",
}


def place_of(context: SchedulerContext, pod: Pod) -> dict[str, Any]:
    """`place` in words, `node` if it has one, `awaits` for what it waits; of a queued pod also its
    record in the queue.
    """
    if pod.spec.node_name:
        return {"place": BOUND, "node": pod.spec.node_name}
    queued = context.queue.places.get(pod.key)
    if queued is not None:
        return _in_queue(context, queued)
    placed, waiting = context.cluster.placed.get(pod.uid), context.waiting.get(pod.uid)
    if waiting is not None:
        return {"place": STAGES[waiting.stage], "node": waiting.node, **_awaited(context, waiting)}
    if placed is not None:
        return {"place": STAGES[Stage.BINDING], "node": placed.node_name}
    if pod.uid in context.queue.in_flight:
        return {"place": "in flight"}
    return {"place": "unknown" if context.owns(pod) else "another scheduler's"}


def _in_queue(context: SchedulerContext, queued: QueuedPod) -> dict[str, Any]:
    place = "gated" if queued.is_gated else context.queue.places.name_of(queued)
    alike = len(equals_of(queued)) if queued.rejector_group is not None else 1
    return {"place": place, "alike": alike, **queue_record(queued)}


def queue_record(queued: QueuedPod) -> dict[str, Any]:
    return {
        "pod": queued.key,
        "attempts": queued.attempts,
        "rejectedBy": sorted(queued.rejectors),
        "gatedBy": queued.gated_by,
        "wokenBy": queued.woken_by,
        "since": queued.timestamp_s,
        "backoffUntil": queued.backoff_until_s,
    }


def _awaited(context: SchedulerContext, waiting: WaitingPod) -> dict[str, Any]:
    if waiting.stage is Stage.BINDING:
        return {"awaits": ["the answer of the API server to the binding"]}
    if waiting.stage is Stage.PRE_BIND:
        reason = _reason(waiting) or "its writes before the binding"
        return {"awaits": [f"{waiting.plugin}: {reason}"]}
    return {
        "awaits": [
            f"{plugin} to allow it, for {max(round(until_s - context.now_s), 0)} s more"
            for plugin, (until_s, _) in sorted(waiting.deadlines.items())
        ]
    }


def _reason(waiting: WaitingPod) -> str:
    """What the plugin says; a plugin of a user may raise."""
    try:
        return waiting.why() if waiting.why is not None else ""
    except MISTAKES as error:
        return f"it could not say what for: {error}"


def nomination_of(
    context: SchedulerContext, pod: Pod, history: Sequence[HistoryEntry]
) -> dict[str, Any] | None:
    """The nominated node of a waiting pod, since when, and the victims that are still there; None
    without a nomination. The victims are known as long as the history has the line.
    """
    node = context.nominator.node_of(pod.uid) or pod.status.nominated_node_name
    if not node:
        return None
    lines = (line for line in reversed(history) if line.step is DecisionStep.NOMINATED)
    line = next((line for line in lines if line.details[0] == node), None)
    victims = []
    for key, priority in line.details[1] if line is not None else ():
        seen = context.cluster.pods_seen.get(key)
        now = standing(seen, context.cluster) if seen is not None else None
        info = context.cluster.placed.get(now.uid) if now is not None else None
        if info is not None and info.node_name == node:  # not one that was made anew elsewhere
            is_terminating = info.pod.is_terminating
            victims.append({"pod": key, "priority": priority, "isTerminating": is_terminating})
    return {
        "node": node,
        "since": line.at_s if line is not None else None,
        "victims": victims[:VICTIMS_MAX],
        "victimCount": len(victims),
    }
