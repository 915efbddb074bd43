"""Scheduling queues with one profile, and what they wake."""

from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.nominated import Nominator
from asched.core.framework.points import Registration
from asched.core.model.pod import Pod
from asched.core.queue.profile import QueueProfile
from asched.core.queue.queue import SchedulingQueue

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
    """Answers looks; notes which pods were looked at."""

    def __init__(self, **blamed: str) -> None:
        self.blamed = blamed  # name of a pod -> who stands against it; others fit
        self.asked: list[str] = []
        self.left: list[str] = []  # the node that each look was told of

    def __call__(self, pod: Pod, left: str) -> frozenset[str] | None:
        name = pod.metadata.name
        self.asked.append(name)
        self.left.append(left)
        return frozenset(self.blamed[name].split()) if name in self.blamed else None
