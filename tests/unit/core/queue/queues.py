"""Scheduling queues with one profile, and what they wake."""

from collections.abc import Callable

from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.nominated import Nominator
from asched.core.framework.registrations import Registration
from asched.core.queue.due_filter import DryRunVerdict
from asched.core.queue.profile import QueueProfile
from asched.core.queue.queue import SchedulingQueue
from asched.core.queue.queued import QueuedPod

NODE_ADD = (Registration(Trigger("Node", Action.ADD)),)
NOW_S = 1_000.0


def by_name(pod, timestamp_s):
    return pod.metadata.name


def a_profile(sort_key=by_name):
    return QueueProfile(sort_key=sort_key, registrations={"Fit": NODE_ADD})


def a_queue(*names):
    return SchedulingQueue(dict.fromkeys(names, a_profile()), Nominator({}.get))


def names(queued):
    return [one.pod.metadata.name for one in queued]


class Looked:
    """A dry runner that notes which pods were tried. `has_room`: of a node that a pod left."""

    def __init__(self, **rejectors: str) -> None:
        self.has_room = True
        self.rejectors_of = rejectors  # name of a pod -> who rejects it; others fit
        self.asked: list[str] = []

    def __call__(self, queued: QueuedPod) -> DryRunVerdict | None:
        rejectors = self.rejectors(queued)
        return None if rejectors is None else DryRunVerdict(rejectors, is_of_class=False)

    def rejectors(self, queued: QueuedPod) -> frozenset[str] | None:
        name = queued.pod.metadata.name
        self.asked.append(name)
        return frozenset(self.rejectors_of[name].split()) if name in self.rejectors_of else None

    def may_start(self, queued: QueuedPod) -> bool:
        return True

    def may_help(self, queued: QueuedPod, freed_node: str) -> bool:
        return True

    def room_test(self, freed_node: str) -> Callable[[QueuedPod], bool]:
        return lambda _queued: self.has_room
