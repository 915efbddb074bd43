"""Lanes: order, ties, and leaving from the middle."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asched.core.queue import lane as lane_
from asched.core.queue.lane import SORTED_AT_ONCE, STALE_MIN, PodHeap
from asched.core.queue.queued import QueuedPod
from tests.core.queue.waiting import a_pod


def a_queued(name: str) -> QueuedPod:
    return QueuedPod(a_pod(name), 0.0)


def test_equal_keys_keep_their_order() -> None:
    lane, names = PodHeap(), ["c", "a", "b"]
    for name in names:
        lane.push(a_queued(name), 1)

    assert [queued.pod.metadata.name for queued in lane.in_order()] == names


def test_a_pod_that_left_is_not_taken() -> None:
    lane, first, second = PodHeap(), a_queued("first"), a_queued("second")
    lane.push(first, 1)
    lane.push(second, 2)

    lane.discard(first)

    assert len(lane) == 1
    assert lane.pop() is second
    assert lane.pop() is None


def test_a_pod_that_comes_back_stands_at_its_new_key_only() -> None:
    lane, first, second = PodHeap(), a_queued("first"), a_queued("second")
    lane.push(first, 1)
    lane.push(second, 2)

    lane.discard(first)
    lane.push(first, 3)

    assert [lane.pop(), lane.pop(), lane.pop()] == [second, first, None]


def test_stale_entries_are_bounded() -> None:
    lane, restless = PodHeap(), a_queued("restless")
    for key in range(10 * STALE_MIN):
        lane.push(restless, -key)
        lane.discard(restless)

    assert len(lane) == 0
    assert len(lane._heap) <= STALE_MIN


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=40))
def test_it_takes_in_the_order_of_a_sorted_list(pushes: list[tuple[int, bool]]) -> None:
    lane, expected = PodHeap(), []
    for number, (key, stays) in enumerate(pushes):
        queued = a_queued(str(number))
        lane.push(queued, key)
        if stays:
            expected.append((key, number, queued))
        else:
            lane.discard(queued)

    taken = [lane.pop() for _ in expected]

    assert taken == [queued for _, _, queued in sorted(expected, key=lambda e: e[:2])]
    assert lane.pop() is None


def test_who_is_left_keeps_the_order_when_many_have_gone() -> None:
    """Stale entries are thrown out together, and what is left is a heap again."""
    lane = PodHeap()
    pods = [a_queued(str(number)) for number in range(8 * STALE_MIN)]
    for number, queued in enumerate(pods):
        lane.push(queued, number * 7919 % 1009)
    gone = random.Random(1).sample(pods, 6 * STALE_MIN)
    for queued in gone:
        lane.discard(queued)
        assert len(lane._heap) <= 2 * len(lane) + STALE_MIN
    assert len(lane._heap) < len(pods), "some were thrown out"
    left = [queued for queued in pods if queued not in gone]
    left.sort(key=lambda queued: int(queued.pod.metadata.name) * 7919 % 1009)
    assert [lane.pop() for _ in left] == left
    assert (len(lane), lane.head(), lane._heap) == (0, None, [])


def test_entries_are_thrown_out_only_where_many_are_stale() -> None:
    lane = PodHeap()
    pods = [a_queued(str(number)) for number in range(3 * STALE_MIN)]
    for queued in pods:
        lane.push(queued, 0)
    for queued in pods[: STALE_MIN + 1]:
        lane.discard(queued)
    assert len(lane._heap) == 3 * STALE_MIN


def test_as_many_leave_as_stay_before_all_of_them_are_gone_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So all of n leave in a time that grows with n."""
    gone_through = []
    monkeypatch.setattr(lane_, "heapify", gone_through.append)
    lane, pods = PodHeap(), [a_queued(str(number)) for number in range(16 * STALE_MIN)]
    for queued in pods:
        lane.push(queued, 0)
    for queued in pods[: 8 * STALE_MIN]:
        lane.discard(queued)
    assert not gone_through


@pytest.mark.parametrize("leave", [PodHeap.pop, PodHeap.empty])
def test_nothing_is_kept_of_whoever_was_taken(leave: Callable[[PodHeap], object]) -> None:
    lane = PodHeap()
    lane.push(a_queued("a"), 1)
    leave(lane)
    assert lane._heap == []


def test_everybody_leaves_in_order_and_may_come_back() -> None:
    lane, first, second = PodHeap(), a_queued("first"), a_queued("second")
    lane.push(second, 2)
    lane.push(first, 1)
    assert lane.empty() == [first, second]
    assert (len(lane), lane.pop()) == (0, None)
    lane.push(first, 1)
    assert (len(lane), lane.pop()) == (1, first)


def test_a_long_lane_is_told_in_order_by_small_steps_without_those_who_leave_meanwhile() -> None:
    lane = PodHeap()
    pods = [QueuedPod(a_pod(f"p{number}"), 0.0) for number in range(10 * SORTED_AT_ONCE)]
    for number, queued in enumerate(pods):
        lane.push(queued, number * 7 % len(pods))
    in_order = lane.in_order()
    assert [number * 7 % len(pods) for number in map(pods.index, in_order)] == sorted(
        range(len(pods))
    )

    steps = lane.in_order_by_steps()
    assert [next(steps) for _ in range(10)] == [None] * 10, "sorted a part at a time"
    lane.discard(in_order[1])
    assert list(steps) == [in_order[0], *in_order[2:]]
