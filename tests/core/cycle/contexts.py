"""Scheduling contexts of one profile."""

from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.model.kinds import POD
from asched.core.queue.queued import QueuedPod
from asched.core.state.facts import Seen
from tests.builders import a_node, a_pod
from tests.core.cycle.playbook import Play


def a_context() -> tuple[SchedulerContext, Attempt]:
    """A scheduler context, and an attempt at the pod `web`."""
    play = Play(a_node("n1"))
    context = play.machine.context
    pod = a_pod("web").metadata(resourceVersion="5").build()
    context.cluster.apply(Seen(POD, pod))
    runner = context.runners["default-scheduler"]
    return context, Attempt(
        3, QueuedPod(pod, 0.0), context.cluster.classes.info_of(pod), runner, 0.0
    )
