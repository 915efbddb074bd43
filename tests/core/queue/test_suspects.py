"""Who is tried first after a leader died."""

from collections import Counter
from math import inf

import pytest
from msgspec.structs import replace

from asched.core.model.pod import Pod, PodCondition
from asched.core.queue.suspects import (
    PAUSE_S,
    TRUST_EVERY,
    put_behind,
)
from tests.core.queue.waiting import Scene, a_pod

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


def test_pods_with_a_trace_keep_their_order() -> None:
    pods = [tried(a_pod(name)) for name in "zyxabc"]

    assert live(pods, "", 7, died_young=False) == list("zyxabc")


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


def test_whoever_goes_behind_is_away_for_a_pause_and_the_likeliest_cause_a_little_longer() -> None:
    one = Scene()
    one.add(*(a_pod(f"p{n:02}") for n in range(20)), now_s=NOW_S + 0.5)
    put_behind(one.queue, NOW_S + 0.9, 1, died_young=False)

    behind = one.queue.places.listing().backoff
    until = {queued.pod.metadata.name: queued.backoff_until_s for queued in behind}
    assert until.pop("p00") == NOW_S + PAUSE_S + 1
    assert set(until.values()) == {NOW_S + PAUSE_S}
    assert 3 < len(until) < 16, "a coin says who"
    assert one.names()["backoff"][-1] == "p00"


def test_coins_fall_anew_in_each_life() -> None:
    """Lives are counted from one."""

    def left(life: int) -> tuple[str, ...]:
        one = Scene()
        one.add(*(a_pod(f"p{n:02}") for n in range(16)), now_s=NOW_S)
        put_behind(one.queue, NOW_S, life, died_young=False)
        return tuple(one.names().get("active", ()))

    lives = [left(life) for life in range(1, 41)]
    assert len(set(lives)) == 40
    stays = Counter(name for life in lives for name in life)
    assert stays.pop("p00", 0) < 12
    assert all(8 <= count <= 32 for count in stays.values()), stays


def test_the_likeliest_cause_is_trusted_in_one_of_some_lives_and_gets_its_coin() -> None:
    """With two pods and no trust, the first never keeps its place."""

    def keeps(life: int) -> bool:
        one = Scene()
        one.add(a_pod("first"), a_pod("second"), now_s=NOW_S)
        put_behind(one.queue, NOW_S, life, died_young=False)
        return "first" in one.names().get("active", ())

    kept = {life for life in range(1, 200) if keeps(life)}
    trusted = set(range(TRUST_EVERY, 200, TRUST_EVERY))
    assert kept < trusted
    assert 0.2 * len(trusted) < len(kept) < 0.8 * len(trusted)


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


def test_of_many_pods_so_many_are_looked_at_at_once_and_the_same_go_behind() -> None:
    behind = []
    for steps in (3, inf):
        one = Scene()
        one.add(*(a_pod(f"p{n:02}") for n in range(50)), now_s=NOW_S)
        one.queue.sliced.budget.open(steps)
        put_behind(one.queue, NOW_S, 1, died_young=False)
        assert bool(one.queue.sliced) is (steps == 3)
        while one.queue.sliced:
            one.queue.sliced.budget.open(steps)
            one.queue.sliced.go_on()
        behind.append(one.names()["backoff"])
    assert behind[0] == behind[1]
    assert 10 < len(behind[0]) < 40
