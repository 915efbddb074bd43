"""A pod keeps the nomination that was written for it, though the watch is late with its status; and
it is tried once its victims have left, so that a nomination of no use ends.
"""

from asched.core.cluster.facts import Done
from asched.core.framework.effects import DeletePod, EmitEvent, MarkVictim, PatchPodStatus
from tests.builders import a_pod, room
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
