"""A queue policy of one's own, from a QueueSort plugin: namespaces take turns."""

from typing import Any

from asched.core.queue.profile import QueueProfile
from asched.core.queue.queued import BackoffTimes
from asched.core.queue.reprofile import reprofile
from asched.testing import given, node, pod
from tests.builders import a_pod
from tests.unit.core.queue.queues import NOW_S, Turns, a_profile, a_queue, by_name, names


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
    reprofile(queue, {"one": fair}, BackoffTimes(), NOW_S)
    assert isinstance(queue.places.active, Turns)
    assert names(queue.pop(NOW_S) for _ in range(3)) == ["p0", "p2", "p1"]
    assert queue.pop(NOW_S) is None
