"""Lanes: order, ties, and leaving from the middle."""

from hypothesis import given
from hypothesis import strategies as st

from asched.core.queue.lane import SORTED_AT_ONCE, PodHeap
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
