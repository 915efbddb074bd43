"""Attempts that pause keep what they found, however many of them pause at once."""

from asched.core.cluster.facts import Seen
from asched.core.framework.effects import EmitEvent
from asched.core.model.kinds import NODE, POD
from tests.builders import a_node, a_pod
from tests.playbook import Play

NODES, PODS_PER_NODE = 20, 100


def test_a_hundred_pods_that_make_room_at_once_each_come_to_an_end() -> None:
    """Each attempt takes about 20 turns; with ten times as many it would have begun again."""
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "CapacityScheduling"}]}},
    }
    play = Play(profiles=[profile])
    play.turn(
        *(
            Seen(NODE, a_node(f"n{n}").allocatable(cpu="10", memory="1Ti", pods="1k").build())
            for n in range(NODES)
        )
    )
    for n in range(NODES):
        running = (
            a_pod(f"running-{n}-{i}").requests(cpu="100m").on(f"n{n}") for i in range(PODS_PER_NODE)
        )
        play.turn(*(Seen(POD, pod.build()) for pod in running))
    waiting = (a_pod(f"vast-{i}").requests(cpu="10") for i in range(100))
    play.turn(*(Seen(POD, pod.build()) for pod in waiting))
    ended: set[str] = set()
    for _ in range(5000):
        ended |= {effect.regarding.name for effect in play.of(EmitEvent)}
        if len(ended) == 100:
            break
        play.turn()
    assert len(ended) == 100
