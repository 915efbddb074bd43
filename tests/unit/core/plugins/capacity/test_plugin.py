"""CapacityScheduling: what a namespace may use, and whom it may push out."""

import pytest

from asched.core.cluster.facts import Done
from asched.core.framework.effects import Bind, DeletePod, MarkVictim
from tests.playbook import Play
from tests.unit.core.plugins.capacity.quota_plays import a_play, big, pod, quota, room


def bound(play: Play) -> list[str]:
    return [bind.pod.name for bind in play.of(Bind)]


def test_nobody_uses_more_than_his_max() -> None:
    play = a_play(room("n1"))
    quota(play, "a", min=big(4), max=big(2))
    play.see(pod("one", "a", cpu=2))
    assert bound(play) == ["one"]
    play.see(pod("two", "a"))

    assert bound(play) == []
    assert "ElasticQuota a is more than Max" in play.notes()[0]


def test_what_others_do_not_use_is_lent_up_to_the_sum_of_all_min() -> None:
    play = a_play(room("n1", cpu=16))
    quota(play, "a", min=big(2))
    quota(play, "b", min=big(2))
    for number in range(4):
        play.see(pod(f"a{number}", "a"))
        assert bound(play) == [f"a{number}"]
    play.see(pod("a4", "a"))

    assert bound(play) == []
    assert "total ElasticQuota used is more than min" in play.notes()[0]


def test_namespaces_without_a_quota_are_free() -> None:
    play = a_play(room("n1"))
    quota(play, "a", min=big(0), max=big(0))
    play.see(pod("free", "b", cpu=8))

    assert bound(play) == ["free"]


def test_a_pod_that_goes_and_a_quota_that_grows_wake_those_who_wait() -> None:
    play = a_play(room("n1"))
    quota(play, "a", min=big(1))
    play.see(pod("one", "a"))
    play.see(pod("two", "a"))
    assert bound(play) == []
    quota(play, "a", min=big(2))
    play.turn(after_s=2)
    assert play.node_of("uid-two") == "n1"


def evicted(play: Play) -> set[str]:
    found = set()
    for _ in range(10):
        found |= {effect.pod.name for effect in play.of(DeletePod)}
        asked = play.of(MarkVictim) + play.of(DeletePod)
        if not asked:
            break
        play.turn(*(Done(effect.id) for effect in asked))
    return found


def borrowers(play: Play) -> None:
    """Namespace a uses all of what is guaranteed to both, with important pods."""
    quota(play, "a", min=big(1))
    quota(play, "b", min=big(1))
    for number in range(2):
        play.see(pod(f"a{number}", "a", priority=10 + number).on("n1"))


def test_who_is_within_his_min_takes_back_what_others_borrow_whatever_their_priority() -> None:
    play = a_play(room("n1", cpu=2))
    borrowers(play)
    play.see(pod("b0", "b", priority=-5))

    assert evicted(play) == {"a0"}


def test_who_borrows_himself_pushes_out_only_his_own() -> None:
    play = a_play(room("n1", cpu=2))
    borrowers(play)
    play.see(pod("a2", "a", priority=100))

    assert evicted(play) == {"a0"}


def test_pods_without_a_quota_leave_those_with_one_alone() -> None:
    play = a_play(room("n1", cpu=3))
    borrowers(play)
    play.see(pod("free", "c", priority=0).on("n1"))
    play.see(pod("more", "c", priority=1000))

    assert evicted(play) == {"free"}


@pytest.mark.parametrize("guarantees", [False, True])
def test_a_min_is_a_guarantee_only_if_it_is_asked_for(guarantees: bool) -> None:
    """What is used above all min, on whatever node, keeps the one out who uses nothing."""
    play = a_play(room("n1", cpu=4), room("n2", cpu=1), guaranteesMin=guarantees)
    borrowers(play)
    for number in range(2, 4):
        play.see(pod(f"a{number}", "a").on("n1"))
    play.see(pod("b0", "b"))

    assert bound(play) == (["b0"] if guarantees else [])
