"""Gangs played through the machine: all of them or none, and what those are told who stay."""

from asched.core.cluster.facts import Gone, Seen
from asched.core.framework.effects import PatchPodStatus
from asched.core.model.kinds import NODE, POD, POD_GROUP
from tests.builders import a_node, a_pod
from tests.playbook import a_group, a_member, bound, gang_play, places, room_for, seen_group, uid_of


def test_pods_wait_outside_until_the_gang_is_there_and_then_all_bind_in_one_turn() -> None:
    play = gang_play(room_for(3))
    seen_group(play)
    for name in ("a", "b"):
        play.see(a_member(name))
        assert not play.effects
        assert not places(play)

    play.see(a_member("c"))

    assert places(play) == {"a", "b", "c"}
    assert bound(play) == {"a", "b", "c"}


def test_a_gang_that_does_not_fit_holds_nothing_and_is_tried_again_when_it_fits() -> None:
    play = gang_play(room_for(2))
    seen_group(play)
    for name in ("a", "b", "c"):
        play.see(a_member(name))
    assert not places(play)
    assert not bound(play)

    play.turn(Seen(NODE, a_node("more").allocatable(cpu="1", pods="10").build()))

    assert bound(play) == {"a", "b", "c"}


def test_each_pod_of_a_gang_that_does_not_fit_is_told_why_in_the_words_of_kube_scheduler() -> None:
    """The last one has no node. The others would have one, and Permit lets them wait: its words
    are the plugin's and the framework's, behind what is wrong with the group.
    """
    play = gang_play(room_for(2))
    seen_group(play)
    for name in ("a", "b", "c"):
        play.see(a_member(name))

    waits = (
        "FailedScheduling: pod group is unschedulable, waiting for minCount pods from a gang to be"
        " scheduled, one or more plugins asked to wait and no plugin rejected pod"
    )
    no_node = (
        "FailedScheduling: 0/1 nodes are available: 1 Insufficient cpu. no new claims to"
        " deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for"
        " incoming pod."
    )
    assert play.notes() == [waits, waits, no_node]
    conditions = {e.pod.name: e.condition for e in play.of(PatchPodStatus)}
    assert {name: c["reason"] for name, c in conditions.items() if c} == dict.fromkeys(
        "abc", "Unschedulable"
    )


def test_a_gang_is_popped_from_backoff_early_only_for_room_that_suffices() -> None:
    """kube-scheduler would try such a gang without a pause while nothing else is active."""
    play = gang_play(room_for(2))
    seen_group(play)
    for name in ("a", "b", "c"):
        play.see(a_member(name))
    assert play.notes()

    play.turn(Seen(NODE, a_node("small").allocatable(cpu="100m", pods="10").build()))
    assert not play.notes()
    play.turn(Gone(POD, a_pod("gone").on("room-for-2").build()))
    play.turn(after_s=0.9)
    assert not play.notes()

    play.turn(Seen(NODE, a_node("more").allocatable(cpu="1", pods="10").build()))
    assert bound(play) == {"a", "b", "c"}


def test_a_gang_that_lost_is_not_tried_again_without_a_change() -> None:
    play = gang_play(room_for(2))
    seen_group(play)
    for name in ("a", "b", "c"):
        play.see(a_member(name))

    for _ in range(60):
        play.turn(after_s=2)
        assert not play.notes()


def test_room_that_a_gang_could_not_use_is_free_for_others() -> None:
    play = gang_play(room_for(2))
    seen_group(play)
    for name in ("a", "b", "c"):
        play.see(a_member(name))

    play.see(a_pod("stranger").requests(cpu="2"))

    assert bound(play) == {"stranger"}


def test_a_pod_whose_group_is_unknown_waits_outside_for_it() -> None:
    play = gang_play(room_for(3))
    for name in ("a", "b", "c"):
        play.see(a_member(name))
    assert not places(play)
    play.turn(Seen(POD_GROUP, a_group("other")))
    assert not places(play)

    seen_group(play)

    assert bound(play) == {"a", "b", "c"}


def test_a_group_without_a_gang_policy_holds_nobody_up() -> None:
    play = gang_play(room_for(3))
    seen_group(play, min_count=None)

    play.see(a_member("a"))

    assert bound(play) == {"a"}


def test_pods_beyond_min_count_follow_at_once() -> None:
    play = gang_play(room_for(4))
    seen_group(play, min_count=2)
    for name in ("a", "b"):
        play.see(a_member(name))
    assert bound(play) == {"a", "b"}

    play.see(a_member("c"))

    assert bound(play) == {"c"}


def test_a_pod_that_has_run_for_long_counts() -> None:
    play = gang_play(room_for(3))
    seen_group(play, min_count=2)
    play.see(a_member("a").on("room-for-3"))

    play.see(a_member("b"))

    assert bound(play) == {"b"}


def test_pods_of_a_group_that_went_wait_for_another_one() -> None:
    play = gang_play(room_for(2))
    seen_group(play)
    for name in ("a", "b", "c"):
        play.see(a_member(name))
    play.turn(Gone(POD_GROUP, a_group()))

    play.turn(Seen(NODE, a_node("more").allocatable(cpu="1", pods="10").build()), after_s=3)
    assert not play.notes()
    assert not places(play)

    seen_group(play)
    assert bound(play) == {"a", "b", "c"}


def test_a_group_that_goes_between_the_gate_and_permit_makes_an_error_and_frees_all() -> None:
    play = gang_play(room_for(3))
    seen_group(play)
    for name in ("a", "b"):
        play.see(a_member(name))

    play.turn(Seen(POD, a_member("c").build()), Gone(POD_GROUP, a_group()))

    failed = 'running Permit plugin "GangScheduling": failed to get podGroup default/crew: '
    missing = 'podgroup.scheduling.k8s.io "crew" not found'
    assert [n for n in play.notes() if n == f"FailedScheduling: {failed}{missing}"]
    assert not places(play)


def test_a_pod_that_must_be_near_another_of_its_gang_may_be_tried_before_it() -> None:
    """The one that must be near the chief has the higher priority, so it comes first."""
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"role": "chief"}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        }
    }
    play = gang_play(
        *(
            a_node(name).labels({"kubernetes.io/hostname": name}).allocatable(cpu="4", pods="10")
            for name in ("n1", "n2")
        )
    )
    seen_group(play, min_count=2)
    play.see(a_member("a").priority(10).spec(affinity=near))
    assert not play.effects
    play.see(a_member("b").labels(role="chief"))

    assert {"a", "b"} == places(play)
    assert play.node_of(uid_of("a")) == play.node_of(uid_of("b"))


def test_a_gang_may_be_larger_than_what_may_be_under_way() -> None:
    play = gang_play(room_for(9))
    play.machine.bindings_max = 2
    seen_group(play, min_count=6)

    for number in range(6):
        play.see(a_member(f"p{number}"))

    assert len(bound(play)) == 6
    assert play.machine.context.waiting.held == 0
