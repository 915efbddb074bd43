"""Groups of scheduling.x-k8s.io played through the machine: gangs, and what is held for them."""

from asched.core.cluster.facts import Seen
from asched.core.framework.effects import Bind
from asched.core.model.kinds import NODE
from tests.builders import a_pod, room
from tests.playbook import a_label_member, bound, label_gang_play, label_group_seen, settled

# --- gangs ---------------------------------------------------------------------------------------


def test_a_gang_starts_when_all_are_there_and_all_fit() -> None:
    play = label_gang_play(room("n1", 3))
    label_group_seen(play)
    for name in ("a", "b"):
        play.see(a_label_member(name))
        assert not play.effects

    play.see(a_label_member("c"))

    assert bound(play) == {"a", "b", "c"}


def test_a_gang_that_does_not_fit_holds_nothing() -> None:
    play = label_gang_play(room("n1", 2))
    label_group_seen(play)
    for name in "abc":
        play.see(a_label_member(name))
    assert not play.of(Bind)

    play.see(a_pod("stranger").requests(cpu="2"))

    assert bound(play) == {"stranger"}


def test_pods_whose_group_nobody_made_wait_for_it() -> None:
    play = label_gang_play(room("n1", 3))
    for name in "abc":
        play.see(a_label_member(name))
    assert not play.of(Bind)

    label_group_seen(play)

    assert bound(play) == {"a", "b", "c"}


def test_a_smaller_minimum_lets_a_gang_go() -> None:
    play = label_gang_play(room("n1", 3))
    label_group_seen(play, "crew", 3)
    for name in "ab":
        play.see(a_label_member(name))

    label_group_seen(play, "crew", 2)

    assert bound(play) == {"a", "b"}


def test_gated_pods_do_not_count_until_their_gate_is_lifted() -> None:
    play = label_gang_play(room("n1", 3))
    label_group_seen(play)
    for name in "ab":
        play.see(a_label_member(name))
    play.see(a_label_member("c").gated("kueue.x-k8s.io/topology"))
    assert not play.effects

    play.see(a_label_member("c").metadata(resourceVersion="2"))

    assert bound(play) == {"a", "b", "c"}


def test_pods_that_terminate_do_not_count_as_placed() -> None:
    """A job that begins anew: of the pods before, three are still on their way out."""
    play = label_gang_play(room("n1", 4))
    label_group_seen(play, "crew", 3)
    for name in "abc":
        leaving = a_label_member(f"old-{name}").on("n1")
        play.see(leaving.metadata(deletionTimestamp="2026-01-01T00:00:00Z"))

    play.see(a_label_member("a"))
    assert not play.of(Bind)
    play.see(a_label_member("b"))
    play.see(a_label_member("c"))
    assert not play.of(Bind), "there is room for one only"
    for name in "ab":
        play.lose(a_label_member(f"old-{name}").on("n1"))

    assert bound(play) == {"a", "b", "c"}


def test_a_pod_that_changes_its_label_changes_its_group() -> None:
    play = label_gang_play(room("n1", 9))
    label_group_seen(play, "crew", 2)
    label_group_seen(play, "other", 2)
    play.see(a_label_member("a", "other"))
    play.see(a_label_member("b", "crew"))

    play.see(a_label_member("a", "crew").metadata(resourceVersion="2"))

    assert bound(play) == {"a", "b"}
    assert len(play.parts.cluster.pod_groups) == 1


def test_groups_go_in_the_order_in_which_they_were_complete_and_more_important_ones_first() -> None:
    play = label_gang_play(room("n1", 4))
    play.machine.is_active = False
    for group in ("early", "late", "urgent"):
        label_group_seen(play, group, 2)
    play.see(a_label_member("e1", "early"))
    play.turn(after_s=1)
    play.see(a_label_member("l1", "late"))
    play.see(a_label_member("l2", "late"))
    play.turn(after_s=1)
    play.see(a_label_member("e2", "early"))
    for name in ("u1", "u2"):
        play.see(a_label_member(name, "urgent").priority(5))

    play.machine.is_active = True
    play.turn()

    assert [bind.pod.name for bind in play.of(Bind)] == ["u1", "u2", "l1", "l2"]


# --- minResources --------------------------------------------------------------------------------


def test_the_second_application_follows_as_soon_as_the_first_has_gone() -> None:
    play = label_gang_play(room("n1", 4))
    for app in ("first", "second"):
        label_group_seen(play, app, 1, minResources={"cpu": "4"})
        play.see(a_label_member(f"{app}-driver", app))
        settled(play)
    assert not play.node_of("uid-second-driver")

    play.lose(a_label_member("first-driver", "first").on("n1"))

    assert bound(play) == {"second-driver"}


def test_a_larger_node_is_what_a_group_short_of_its_minimum_waits_for() -> None:
    play = label_gang_play(room("n1", 2))
    label_group_seen(play, "app", 1, minResources={"cpu": "6"})
    play.see(a_label_member("driver", "app"))
    assert not play.of(Bind)

    play.turn(Seen(NODE, room("n2", 3).build()), after_s=3)
    assert not play.notes(), "the sum does not suffice: no attempt is made"
    play.turn(Seen(NODE, room("n3", 1).build()))

    assert settled(play) == {"driver"}


def test_a_group_whose_resources_no_node_offers_says_which() -> None:
    play = label_gang_play(room("n1", 4))
    label_group_seen(play, "app", 1, minResources={"cpu": "2", "nvidia.com/gpu": "8"})

    play.see(a_label_member("driver", "app"))

    assert "nvidia.com/gpu 8 found no room" in play.notes()[0]
