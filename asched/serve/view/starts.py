"""The start that is promised to a gang or a pod, as it is told to whoever asks."""

from typing import Any, Final

from asched.batch.backfill.causes import named
from asched.core.cycle.context import SchedulerContext
from asched.core.model.pod import Pod
from asched.core.model.timestamp import rfc3339
from asched.core.state.reservations import POD_OWNER, Reservations

#: Promises to others that are told to a pod which waits, those that start first.
OTHERS_MAX: Final = 10
NODES_MAX: Final = 20


def start_of(context: SchedulerContext, owner: str) -> dict[str, Any] | None:
    """None if nothing is promised. `first` is the earliest start that ever was."""
    one = context.cluster.singleton(Reservations).of(owner)
    if one is None:
        return None
    return {
        "at": rfc3339(one.start_s + 1),
        "certainty": "hard" if one.is_hard else "soft",
        "first": rfc3339(one.first_s + 1),
        "cause": one.cause,
        "count": len(one.needs),
        "nodes": list(one.needs)[:NODES_MAX],
    }


def start_of_pod(context: SchedulerContext, pod: Pod) -> dict[str, Any] | None:
    """That of its gang, or its own."""
    return start_of(context, context.gangs.key_of(pod)) or start_of(context, POD_OWNER + pod.uid)


def starts_of_others(context: SchedulerContext, pod: Pod) -> list[dict[str, Any]]:
    """Whose start keeps a pod off nodes, and when that is."""
    binding = context.cluster.singleton(Reservations).binding(context.cluster.classes.info_of(pod))
    return [
        {"owner": named(one.owner, one), "at": rfc3339(one.start_s + 1), "nodes": len(one.needs)}
        for one in sorted(binding, key=lambda one: one.start_s)[:OTHERS_MAX]
    ]
