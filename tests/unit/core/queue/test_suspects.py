"""Who is tried first after a leader died."""

import pytest
from msgspec.structs import replace

from asched.core.model.pod import Pod, PodCondition
from asched.core.queue.suspects import (
    PAUSE_S,
    put_behind,
)
from tests.unit.core.queue.waiting import Scene, a_pod

NOW_S = 1000.0


def tried(pod: Pod) -> Pod:
    """A pod of which an attempt once told."""
    rejected = PodCondition(type="PodScheduled", status="False", reason="Unschedulable")
    return replace(pod, status=replace(pod.status, conditions=(rejected,)))


def live(pods: list[Pod], deadly: str, life: int, *, died_young: bool) -> list[str]:
    """Who is tried until the process dies of a pod."""
    one = Scene()
    one.add(*pods, now_s=NOW_S)
    put_behind(one.queue, NOW_S, life, died_young=died_young)
    names = []
    while (queued := one.queue.pop(NOW_S)) is not None and queued.pod.metadata.name != deadly:
        names.append(queued.pod.metadata.name)
    return names


def test_the_first_pod_that_nobody_told_of_goes_last() -> None:
    """Those before it have ended an attempt, and keep their places."""
    pods = [tried(a_pod("old")), a_pod("deadly"), *(a_pod(f"p{n}") for n in range(20))]

    lives = [live(pods, "deadly", life, died_young=False) for life in range(1, 101)]

    assert all(names[0] == "old" for names in lives)
    assert sum(len(names) == 21 for names in lives) >= 60, "mostly all others come before it"


@pytest.mark.parametrize("deadly", ["p0", "p5", "p19"])
@pytest.mark.parametrize("has_trace", [True, False])
def test_no_pod_keeps_the_others_from_being_tried_for_long(deadly: str, *, has_trace: bool) -> None:
    """Whichever it is, and whether or not something was written about it."""
    pods = [a_pod(f"p{n}") for n in range(20)]
    left = [tried(pod) if has_trace else pod for pod in pods]
    for life in range(1, 40):
        done = set(live(left, deadly, life, died_young=True))
        left = [pod for pod in left if pod.metadata.name not in done]

    assert [pod.metadata.name for pod in left] == [deadly]


def test_those_who_go_behind_come_back_in_time_though_others_never_end() -> None:
    one = Scene()
    one.add(a_pod("a"), now_s=NOW_S)
    put_behind(one.queue, NOW_S, 1, died_young=False)
    assert one.names() == {"backoff": ["a"]}

    one.queue.tick(NOW_S + 60.0)

    assert one.names() == {"active": ["a"]}


def test_where_the_leader_died_young_those_without_a_trace_are_suspected_first() -> None:
    one = Scene()
    one.add(tried(a_pod("old")), a_pod("new"), now_s=NOW_S)
    put_behind(one.queue, NOW_S, 1, died_young=True)
    (queued,) = [q for q in one.queue.places.listing().backoff if q.key == "default/new"]
    assert queued.backoff_until_s == NOW_S + PAUSE_S + 1
    other = Scene()
    other.add(tried(a_pod("old")), now_s=NOW_S)
    put_behind(other.queue, NOW_S, 1, died_young=True)
    assert other.names() == {"backoff": ["old"]}, "there is nobody else"
