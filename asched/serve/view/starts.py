"""The promised start of a gang or a pod."""

from typing import Any, Final

from asched.batch.backfill.reservations import POD_OWNER, Reservations
from asched.batch.backfill.starts import named
from asched.core.cycle.context import SchedulerContext
from asched.core.model.pod import Pod
from asched.core.model.timestamp import rfc3339

#: Promised starts of other owners shown for a waiting pod, earliest first.
OTHERS_MAX: Final = 10
NODES_MAX: Final = 20


def start_of(context: SchedulerContext, owner: str) -> dict[str, Any] | None:
    """None without a promise. `first` is the earliest start that was promised."""
    promise = context.cluster.singleton(Reservations).of(owner)
    if promise is None:
        return None
    return {
        "at": rfc3339(promise.start_s + 1),
        "certainty": "hard" if promise.is_hard else "soft",
        "first": rfc3339(promise.first_s + 1),
        "cause": promise.cause,
        "count": len(promise.needs),
        "nodes": list(promise.needs)[:NODES_MAX],
    }


def start_of_pod(context: SchedulerContext, pod: Pod) -> dict[str, Any] | None:
    """The start of the pod's gang, or its own."""
    return start_of(context, context.gangs.key_of(pod)) or start_of(context, POD_OWNER + pod.uid)


def starts_of_others(context: SchedulerContext, pod: Pod) -> list[dict[str, Any]]:
    """Promised starts that keep a pod off nodes."""
    binding = context.cluster.singleton(Reservations).binding(context.cluster.classes.info_of(pod))
    return [
        {
            "owner": named(promise.owner, promise),
            "at": rfc3339(promise.start_s + 1),
            "nodes": len(promise.needs),
        }
        for promise in sorted(binding, key=lambda promise: promise.start_s)[:OTHERS_MAX]
    ]
