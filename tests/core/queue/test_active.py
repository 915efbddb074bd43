"""A queue policy of one's own, from a QueueSort plugin: namespaces take turns."""

from collections import deque
from itertools import chain
from typing import Any

from asched.core.queue.backoff import Backoff
from asched.core.queue.profile import QueueProfile
from asched.core.queue.queued import QueuedPod
from asched.core.queue.reprofile import reprofile
from asched.testing import given, node, pod
from tests.builders import a_pod
from tests.core.queue.test_reprofile import NOW_S, a_profile, a_queue, by_name, names


class Turns:
    """Every namespace in its turn; within one, whoever came first."""

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


class FairSort:
    active_queue = Turns

    def queue_sort(self, pod: Any, timestamp_s: float) -> float:
        return timestamp_s


def test_a_plugin_brings_the_queue_in_which_pods_are_taken() -> None:
    profile = {"queueSort": {"enabled": [{"name": "FairSort"}], "disabled": [{"name": "*"}]}}
    world = given([node("n1", cpu=3)], plugins=[FairSort], profile=profile)
    crowd = [pod(f"greedy-{i}", cpu=1) for i in range(5)]
    modest = pod("modest", cpu=1, namespace="other")
    world.add(*crowd, modest)
    assert world.outcome("modest", namespace="other").node == "n1"
    assert sum(world.outcome(f"greedy-{i}").node == "n1" for i in range(5)) == 2


def test_a_reload_moves_whoever_waits_into_the_other_queue() -> None:
    queue = a_queue("one")
    for number, space in enumerate(("x", "x", "y")):
        queue.add(a_pod(f"p{number}", space).spec(schedulerName="one").build(), NOW_S)
    fair = QueueProfile(by_name, a_profile().registrations, active_queue=Turns)
    reprofile(queue, {"one": fair}, Backoff(), NOW_S)
    assert isinstance(queue.places.active, Turns)
    assert names(queue.pop(NOW_S) for _ in range(3)) == ["p0", "p2", "p1"]
    assert queue.pop(NOW_S) is None
