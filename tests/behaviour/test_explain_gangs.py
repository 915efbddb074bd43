"""What `asched explain` says about a pod of a gang that waits although nodes fit the pod alone."""

import pytest

from asched.core.cluster.facts import Seen
from asched.core.model.kinds import POD
from tests.builders import a_node, room
from tests.playbook import Play, a_member, explained, gang_play, ours, seen_group


def a_gang(least: int, *cpus: str, pods: int = 0) -> Play:
    """A gang of pods that ask for 1 CPU each, and nodes with so much; none is tried yet."""
    nodes = (a_node(f"n{n}").allocatable(cpu=cpu, pods="99") for n, cpu in enumerate(cpus, 1))
    play = gang_play(*nodes)
    play.machine.is_active = False
    seen_group(play, least)
    members = (a_member(f"m{number}", cpu="1").build() for number in range(pods or least))
    play.turn(*(ours(Seen(POD, member)) for member in members))
    return play


def test_it_says_how_many_pods_have_room_and_what_the_next_one_lacks() -> None:
    lines = explained(a_gang(5, "1", "1500m", "1"), "m0").splitlines()

    at = lines.index("now: 3 of 3 nodes fit this pod alone")
    assert lines[at + 1 : at + 5] == [
        "its gang still needs room for 5 pods at once: 3 of them find a node",
        "the next one finds none, with those in place",
        "        3 nodes  NodeResourcesFit: Insufficient cpu",
        "requests 1 cpu; the largest free amount then is 500m on n2",
    ]


def test_pods_beyond_the_minimum_are_not_needed() -> None:
    said = explained(a_gang(3, "1", "1", pods=9), "m0")

    assert "its gang still needs room for 3 pods at once: 2 of them find a node" in said


def test_placed_pods_of_the_gang_are_not_needed_any_more() -> None:
    play = a_gang(4, "2", "1", pods=3)
    play.see(a_member("old", cpu="1").on("n1"))

    said = explained(play, "m0")
    assert "its gang still needs room for 3 pods at once: 2 of them find a node" in said


def test_where_no_pod_finds_a_node_the_nodes_have_said_why() -> None:
    said = explained(a_gang(2, "500m"), "m0")

    assert "now: 0 of 1 nodes fit this pod alone" in said
    assert "its gang still needs room for 2 pods at once: none of them find a node" in said
    assert "the next one" not in said


@pytest.mark.parametrize(("least", "pods"), [(65, 65), (3, 2)])
def test_a_gang_that_is_not_tried_is_only_counted(least: int, pods: int) -> None:
    """It is too large, or lacks pods."""
    lines = explained(a_gang(least, "1", pods=pods), "m0").splitlines()

    at = lines.index("now: 1 of 1 nodes fit this pod alone")
    assert lines[at + 1] == f"its gang still needs room for {least} pods at once"


def test_a_pod_without_a_gang_is_explained_as_before() -> None:
    play = Play(room("n1", 1))
    play.see(a_member("m0", group="", cpu="2"))

    assert "now: 0 of 1 nodes fit" in explained(play, "m0").splitlines()
