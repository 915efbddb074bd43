"""First come, first served, also for those who came before the scheduler did."""

import pytest

from asched.core.cluster.facts import Fact, Listed, Seen
from asched.core.framework.effects import Bind
from asched.core.model.kinds import NODE, POD, POD_GROUP
from tests.builders import PodBuilder, a_node, a_pod
from tests.playbook import Play, a_group, a_member, gang_play, ours


def at(pod: PodBuilder, second: int) -> PodBuilder:
    return pod.metadata(creationTimestamp=f"2026-01-01T00:00:{second:02}Z")


def room_for(count: int) -> Fact:
    return Seen(NODE, a_node("n").allocatable(cpu=str(count), pods="100").build())


def listed(*pods: PodBuilder) -> Listed:
    return Listed(POD, tuple(ours(Seen(POD, pod.build())).obj for pod in pods))


def bound(play: Play) -> list[str]:
    return [bind.pod.name for bind in play.of(Bind)]


def test_pods_of_a_list_are_taken_by_creation_then_name() -> None:
    play = Play()
    play.turn(
        room_for(3),
        listed(
            at(a_pod("aa-fourth").requests(cpu="1"), 9),
            at(a_pod("b-second").requests(cpu="1"), 5),
            at(a_pod("c-third").requests(cpu="1"), 5),
            at(a_pod("zz-first").requests(cpu="1"), 3),
        ),
    )

    assert bound(play) == ["zz-first", "b-second", "c-third"]


def test_a_gated_pod_keeps_the_time_of_its_arrival() -> None:
    gated = at(a_pod("zz-first").requests(cpu="1").gated("wait"), 1)
    free = at(a_pod("zz-first").requests(cpu="1"), 1).metadata(resourceVersion="2")
    play = Play()
    play.machine.is_active = False
    play.turn(listed(at(a_pod("aa-second").requests(cpu="1"), 2), gated))
    play.see(free)
    play.machine.is_active = True

    play.turn(room_for(1))

    assert bound(play) == ["zz-first"]


@pytest.mark.parametrize("groups_come_last", [True, False])
def test_of_two_gangs_the_one_that_was_complete_first_wins(*, groups_come_last: bool) -> None:
    play = gang_play()
    play.machine.is_active = False
    groups = Listed(POD_GROUP, (a_group("early-but-late"), a_group("in-between")))
    pods = listed(
        *(at(a_member(f"a{i}", "early-but-late"), second) for i, second in enumerate((1, 2, 9))),
        *(at(a_member(f"b{i}", "in-between"), second) for i, second in enumerate((3, 4, 5))),
    )
    facts = (pods, groups) if groups_come_last else (groups, pods)
    play.turn(*facts)
    play.machine.is_active = True

    play.turn(room_for(3))

    assert sorted(bound(play)) == ["b0", "b1", "b2"]


def test_of_two_gangs_that_come_one_by_one_the_one_that_was_complete_first_wins() -> None:
    play = gang_play()
    play.machine.is_active = False
    play.turn(Seen(POD_GROUP, a_group("early-but-late")), Seen(POD_GROUP, a_group("in-between")))
    for name, group in (("a0", 0), ("a1", 0), ("b0", 1), ("b1", 1), ("b2", 1), ("a2", 0)):
        member = a_member(name, ("early-but-late", "in-between")[group])
        play.turn(ours(Seen(POD, member.build())), after_s=1)
    play.machine.is_active = True

    play.turn(room_for(3))

    assert sorted(bound(play)) == ["b0", "b1", "b2"]
