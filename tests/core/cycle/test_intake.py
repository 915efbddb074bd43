"""What thousands have to hear takes several turns, and nothing else happens before all have."""

import pytest

from asched.core.cycle.turn_limit import CountedLimit
from asched.core.framework.effects import Bind
from asched.core.model.kinds import NODE, POD
from asched.core.queue.queue import SchedulingQueue
from asched.core.state.budget import SLICE_STEPS
from asched.core.state.facts import Gone, Seen
from tests.builders import a_node, a_pod
from tests.core.cycle.playbook import Play

#: Each of them a class of its own: more than hear of a change in one turn.
MANY = 2 * SLICE_STEPS


@pytest.fixture(scope="module")
def crowd() -> Play:
    """As many as that wait for more room than there is."""
    play = Play(a_node("n1").allocatable(cpu="4", memory="8Gi", pods="110"))
    pods = [a_pod(f"w{i}").labels(app=f"w{i}").requests(cpu=f"{100 + i}") for i in range(MANY)]
    play.turn(*(Seen(POD, pod.build()) for pod in pods))
    rest(play)
    return play


def rest(play: Play) -> int:
    """Turns until nothing is left to do at once."""
    play.machine.limit = CountedLimit(10_000)
    turns = 0
    while play.machine.next_deadline_s() == 0.0:
        play.turn()
        turns += 1
        assert turns < 1_000, "it never ends"
    return turns


def queue_of(play: Play) -> SchedulingQueue:
    return play.machine.context.queue


def test_nothing_else_happens_before_all_have_heard(crowd: Play) -> None:
    big = a_node("big").allocatable(cpu="5000", memory="8Gi", pods="1").build()
    plain = a_pod("plain").requests(cpu="1").build()

    crowd.turn(Seen(NODE, big), Seen(POD, plain))

    assert crowd.machine.is_taking_in
    assert crowd.machine.next_deadline_s() == 0.0
    assert plain.key not in crowd.parts.cluster.pods_seen, "taken in after what came before it"
    assert not crowd.of(Bind), "nothing is decided meanwhile"
    turns = 1
    while crowd.machine.is_taking_in and plain.key not in crowd.parts.cluster.pods_seen:
        crowd.turn()
        turns += 1
    assert turns > 2
    rest(crowd)
    assert crowd.node_of("uid-plain") or crowd.node_of("uid-w0")
    crowd.turn(Gone(NODE, big))
    rest(crowd)


def test_those_whose_time_is_up_all_move_in_the_end(crowd: Play) -> None:
    resting = queue_of(crowd).places.unschedulable
    waiting = len(resting)
    crowd.machine.limit = CountedLimit(1)
    crowd.turn(after_s=400.0)
    assert queue_of(crowd).sliced
    assert 0 < len(resting) < waiting
    while queue_of(crowd).sliced:
        assert not crowd.of(Bind)
        crowd.turn()
    assert len(resting) <= 2, "all but those that were tried in the last of these turns"
    assert len(queue_of(crowd).places) == waiting
