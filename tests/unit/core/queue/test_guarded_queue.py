"""Whatever a plugin's own queue does, nobody loses a turn."""

from collections.abc import Iterator
from typing import Any

import pytest

from asched.core.queue.guarded import GuardedQueue, GuardedQueueFactory
from asched.core.queue.observer import SilentQueue
from asched.core.queue.queued import QueuedPod
from asched.testing import given, node, pod
from tests.builders import a_pod
from tests.unit.core.queue.queues import Turns


class Told(SilentQueue):
    def __init__(self) -> None:
        self.raised: list[tuple[str, str, str]] = []

    def plugin_raised(self, plugin: str, point: str, error: Exception) -> None:
        self.raised.append((plugin, point, type(error).__name__))


def a_queue(kind: type[Any]) -> tuple[GuardedQueue, Told]:
    told = Told()
    return GuardedQueueFactory("Own", kind, told)(), told


def filled(kind: type[Any], names: str) -> tuple[GuardedQueue, Told, dict[str, QueuedPod]]:
    queue, told = a_queue(kind)
    pods = {name: QueuedPod(a_pod(name).build(), 0.0) for name in names}
    for place, queued in enumerate(pods.values()):
        queue.push(queued, place)
    return queue, told, pods


def taken(queue: GuardedQueue) -> Iterator[str]:
    while (queued := queue.pop()) is not None:
        assert queued.lane is None
        yield queued.pod.metadata.name


class LastFirst(Turns):
    """The last of a namespace goes first."""

    def head(self) -> QueuedPod | None:
        return next((line[-1] for line in self._waiting.values() if line), None)

    def discard(self, queued: QueuedPod) -> None:
        assert queued.lane is self
        super().discard(queued)

    def in_order(self) -> list[QueuedPod]:
        return super().in_order()[::-1]


def test_the_plugins_order_counts_as_long_as_it_works() -> None:
    queue, told, pods = filled(LastFirst, "abcd")
    assert all(queued.lane is queue for queued in pods.values())
    queue.discard(pods["c"])
    assert [one.pod.metadata.name for one in queue.in_order()] == ["d", "b", "a"]
    assert (len(queue), queue.head()) == (3, pods["d"])
    assert list(taken(queue)) == ["d", "b", "a"]
    assert len(queue) == 0
    assert told.raised == []


def failing(method: str, answer: Any = None) -> type[Any]:
    """It raises, or answers nonsense, once it holds three."""

    def fails(self: Turns, *_: Any) -> Any:
        if len(self) < 3:
            return getattr(Turns, method)(self, *_)
        if answer is None:
            raise KeyError(method)
        return answer

    return type("Failing", (Turns,), {method: fails})


@pytest.mark.parametrize("method", ["push", "discard", "head", "pop", "empty", "in_order"])
def test_what_raises_is_told_once_and_the_usual_order_counts(method: str) -> None:
    queue, told, pods = filled(failing(method), "abcd")
    assert [one.pod.metadata.name for one in queue.in_order()] == ["a", "b", "c", "d"]
    queue.discard(pods["b"])
    assert queue.head() is pods["a"]
    assert list(taken(queue)) == ["a", "c", "d"]
    assert queue.empty() == []
    if method != "empty":  # with nobody in it, it does not fail
        assert told.raised == [("Own", "activeQueue", "KeyError")]


@pytest.mark.parametrize("method", ["head", "pop"])
@pytest.mark.parametrize("nonsense", ["a word", [], QueuedPod(a_pod("stranger").build(), 0.0)])
def test_nobody_is_given_out_who_does_not_wait(method: str, nonsense: Any) -> None:
    queue, told, _ = filled(failing(method, nonsense), "abc")
    assert list(taken(queue)) == ["a", "b", "c"]
    assert len(told.raised) == 1


def test_everybody_leaves_whom_the_plugin_forgot() -> None:
    queue, _, pods = filled(failing("empty", [7, "x"]), "abc")
    assert queue.empty() == list(pods.values())
    assert len(queue) == 0


def test_a_listing_without_end_is_cut() -> None:
    def forever(self: Turns) -> Iterator[QueuedPod]:
        while True:
            yield from Turns.in_order(self)

    queue, _, pods = filled(type("Endless", (Turns,), {"in_order": forever}), "abc")
    assert queue.in_order() == list(pods.values())


def test_pods_are_bound_though_the_plugins_queue_raises() -> None:
    class Broken:
        active_queue = failing("pop")

        def queue_sort(self, pod: Any, timestamp_s: float) -> float:
            return timestamp_s

    profile = {"queueSort": {"enabled": [{"name": "Broken"}], "disabled": [{"name": "*"}]}}
    world = given([node("n1", cpu=8)], plugins=[Broken], profile=profile)
    world.add(*(pod(f"p{number}", cpu=1) for number in range(5)))
    assert {world.outcome(f"p{number}").node for number in range(5)} == {"n1"}
