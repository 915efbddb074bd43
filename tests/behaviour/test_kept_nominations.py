"""A pod keeps the nomination that was written for it, though the watch is late with its status; and
it is tried once its victims have left, so that a nomination of no use ends. Its room is free as
soon as the pod gets another node.
"""

from asched.core.cluster.facts import Done, Seen
from asched.core.framework.effects import Bind, DeletePod, EmitEvent, MarkVictim, PatchPodStatus
from asched.core.model.kinds import NODE
from tests.builders import a_node, a_pod, room
from tests.playbook import Play


def carry_out(play: Play) -> list[str | None]:
    """Answer all writes; returns the nominations that were written."""
    written: list[str | None] = []
    while True:
        written += [p.nominated_node_name for p in play.of(PatchPodStatus) if p.pod.name == "high"]
        waiting = [e for kind in (MarkVictim, DeletePod, EmitEvent) for e in play.of(kind)]
        if not waiting:
            return written
        play.turn(*[Done(effect.id) for effect in waiting])


def test_a_nomination_that_the_watch_has_not_shown_ends_after_the_victims() -> None:
    """Two victims have to leave; meanwhile a more important pod takes their place."""
    play = Play(room("n1", 2))
    victims = [a_pod(f"low{n}").requests(cpu="1").on("n1").priority(0) for n in range(2)]
    for victim in victims:
        play.see(victim)
    play.see(a_pod("high").requests(cpu="2").priority(100))
    assert carry_out(play)[-1] == "n1"
    for victim in victims:
        play.see(victim.metadata(deletionTimestamp="2026-03-01T08:00:00Z"))

    play.lose(victims[0])  # tried again: the other victim still terminates
    carry_out(play)
    play.see(a_pod("urgent").requests(cpu="1").on("n1").priority(200))
    carry_out(play)
    play.lose(victims[1])

    assert "" in carry_out(play)


def test_a_nominated_room_is_free_once_its_pod_takes_another_node() -> None:
    """Before the watch shows the binding, which may take long. The other node is too small for the
    pod that waits for the room.
    """
    play = Play(a_node("n1").allocatable(cpu="2", memory="8Gi", pods="10"))
    leaving = a_pod("leaving").requests(cpu="1").on("n1").priority(0)
    play.see(leaving.metadata(deletionTimestamp="2026-03-01T08:00:00Z"))
    high = a_pod("high").requests(cpu="2", memory="4Gi").priority(100)
    play.see(high.status(nominatedNodeName="n1"))
    play.see(a_pod("low").requests(memory="6Gi").priority(0))
    assert not play.of(Bind)

    another = a_node("n2").allocatable(cpu="2", memory="4Gi", pods="10").build()
    play.turn(Seen(NODE, another), after_s=30)

    assert {bind.pod.name: bind.node for bind in play.of(Bind)} == {"high": "n2", "low": "n1"}
