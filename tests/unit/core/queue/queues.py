"""Scheduling queues with one profile, and what they wake."""

from collections import deque
from itertools import chain
from typing import Any

from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.nominated import Nominator
from asched.core.framework.points import Registration
from asched.core.model.pod import Pod
from asched.core.queue.profile import QueueProfile
from asched.core.queue.queue import SchedulingQueue
from asched.core.queue.queued import QueuedPod


class Turns:
    """Every namespace in its turn; within one, the pod that came first."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[QueuedPod]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def push(self, queued: QueuedPod, key: Any) -> None:
        queued.lane = self
        self._waiting.setdefault(queued.pod.metadata.namespace, deque()).append(queued)

    def discard(self, queued: QueuedPod) -> None:
        queued.lane = None
        self._waiting[queued.pod.metadata.namespace].remove(queued)

    def head(self) -> QueuedPod | None:
        return next((line[0] for line in self._waiting.values() if line), None)

    def pop(self) -> QueuedPod | None:
        queued = self.head()
        if queued is not None:
            self.discard(queued)
            namespace = queued.pod.metadata.namespace
            self._waiting[namespace] = self._waiting.pop(namespace)  # to the end
        return queued

    def empty(self) -> list[QueuedPod]:
        left = self.in_order()
        for queued in left:
            self.discard(queued)
        return left

    def in_order(self) -> list[QueuedPod]:
        return list(chain.from_iterable(self._waiting.values()))


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
