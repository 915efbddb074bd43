"""The order of pods after a leader ended without handing over: that of the queue, until it happens
again and again. Then one pod at a time is tried later, behind those of its own priority if it can.
"""

import pytest

from asched.core.cluster.facts import Seen
from asched.core.cycle.orders import LeadersEnded
from asched.core.framework.effects import Bind, EmitEvent
from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from asched.core.queue.suspects import ENDS_MIN
from tests.builders import a_node, a_pod
from tests.playbook import Play, a_member, gang_play, room_for, seen_group


def a_world(*pods: Pod) -> Play:
    """A standby that knows these pods, in this order."""
    play = Play()
    play.machine.is_active = False
    play.turn(Seen(NODE, a_node("n1").allocatable(cpu="100", memory="100Gi", pods="100").build()))
    for pod in pods:
        play.turn(Seen(POD, pod))
    return play


def tried(play: Play, ends: int) -> list[str]:
    """The order of bindings of a leader that begins after so many unclean ends."""
    play.machine.is_active = True
    play.turn(LeadersEnded(ends))
    return [effect.pod.name for effect in play.of(Bind)]


def a_waiting(name: str, priority: int = 0, *, has_condition: bool = False) -> Pod:
    pod = a_pod(name).priority(priority)
    if has_condition:
        pod = pod.status(conditions=[{"type": "PodScheduled", "status": "False"}])
    return pod.build()


@pytest.mark.parametrize("ends", range(ENDS_MIN))
def test_one_or_two_ends_change_nothing(ends: int) -> None:
    pods = [a_waiting(f"low-{n}") for n in range(5)] + [a_waiting(f"high-{n}", 9) for n in range(3)]
    names = [f"high-{n}" for n in range(3)] + [f"low-{n}" for n in range(5)]
    assert tried(a_world(*pods), ends) == names


def test_then_the_first_pod_without_a_condition_goes_behind_those_of_its_priority() -> None:
    known, low = a_waiting("known", 9, has_condition=True), a_waiting("low")
    play = a_world(known, low, a_waiting("first", 9), a_waiting("second", 9))

    assert tried(play, ENDS_MIN) == ["known", "second", "first", "low"]

    (event,) = [effect for effect in play.of(EmitEvent) if effect.reason == "TriedLater"]
    assert event.regarding.name == "first"
    assert "3 schedulers ended" in event.note


def test_a_pod_alone_in_its_priority_goes_behind_lower_ones() -> None:
    play = a_world(a_waiting("alone", 9), a_waiting("low"))
    assert tried(play, ENDS_MIN) == ["low", "alone"]


def test_every_other_time_another_pod_is_suspected() -> None:
    """The conditions of the last attempts may have been lost."""
    names = [f"p{n}" for n in range(6)]
    last = {ends: tried(a_world(*map(a_waiting, names)), ends)[-1] for ends in range(3, 43)}
    assert {last[ends] for ends in range(3, 43, 2)} == {"p0"}
    assert {last[ends] for ends in range(4, 43, 2)} == set(names[1:])


def test_a_group_goes_behind_as_a_whole() -> None:
    play = gang_play(room_for(9))
    play.machine.is_active = False
    seen_group(play, 2)
    for pod in (a_member("m0"), a_member("m1"), a_pod("single").requests(cpu="1")):
        play.see(pod)
    assert tried(play, ENDS_MIN) == ["single", "m0", "m1"]
