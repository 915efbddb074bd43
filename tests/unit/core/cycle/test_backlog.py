"""Long lists are taken in over several turns, and nothing is decided on half of one."""

from asched.core.cluster.facts import Gone, Listed, Seen, WallClock
from asched.core.cycle.intake import LISTED_PER_TURN
from asched.core.framework.effects import Bind, PatchPodStatus
from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from tests.builders import a_node, a_pod
from tests.playbook import Play


def crowd(count: int) -> tuple[Pod, ...]:
    return tuple(
        a_pod(f"p{number}").metadata(resourceVersion="1").build() for number in range(count)
    )


def test_a_turn_takes_its_share_of_a_list_and_is_due_again_at_once() -> None:
    play = Play(a_node("n1"))
    seen = play.parts.cluster.pods_seen

    play.turn(Listed(POD, crowd(2 * LISTED_PER_TURN + 10)))
    assert 0 < len(seen) < LISTED_PER_TURN, "some of its steps look through the list"
    assert play.machine.is_taking_in
    assert play.machine.next_deadline_s() == 0.0
    before = len(seen)
    play.turn()
    assert len(seen) == before + LISTED_PER_TURN
    play.turn()

    assert len(seen) == 2 * LISTED_PER_TURN + 10
    assert not play.machine.is_taking_in


def test_no_turn_looks_through_all_of_a_long_list() -> None:
    play = Play(a_node("n1"))
    long = crowd(20 * LISTED_PER_TURN)
    took = 0
    play.turn(Listed(POD, long))
    while play.machine.is_taking_in:
        play.turn()
        took += 1
    assert took > 20
    assert len(play.parts.cluster.pods_seen) == len(long)

    play.turn(Listed(POD, long))
    assert play.machine.is_taking_in, "that nothing changed is not found out at once either"


def test_nothing_is_decided_before_the_end_of_a_list() -> None:
    """There is room for one, and it belongs to the last of them."""
    play = Play(a_node("n1").allocatable(cpu="1"))

    def waiting(name: str, second: int, priority: int) -> Pod:
        made = a_pod(name).requests(cpu="1").priority(priority)
        made.metadata(creationTimestamp=f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z")
        return made.spec(schedulerName="default-scheduler").build()

    crowd = tuple(waiting(f"p{number}", number, 0) for number in range(LISTED_PER_TURN))
    play.turn(Listed(POD, (*crowd, waiting("high", LISTED_PER_TURN, 10))))
    assert play.effects == []
    play.turn()

    assert play.the(Bind).pod.name == "high"


def test_what_came_after_a_list_is_taken_in_after_it() -> None:
    play = Play()
    pods = crowd(LISTED_PER_TURN + 1)

    play.turn(Listed(POD, pods), Gone(POD, pods[-1]))
    play.turn(Seen(NODE, a_node("late").build()))

    assert pods[0].key in play.parts.cluster.pods_seen
    assert pods[-1].key not in play.parts.cluster.pods_seen
    assert play.parts.cluster.node_of("late") is not None
    assert not play.machine.is_taking_in


def test_several_lists_share_a_turn() -> None:
    play = Play()
    nodes = tuple(a_node(f"n{number}").build() for number in range(LISTED_PER_TURN - 10))

    play.turn(Listed(NODE, nodes), Listed(POD, crowd(20)))

    assert play.parts.cluster.nodes.count == LISTED_PER_TURN - 10
    assert 0 < len(play.parts.cluster.pods_seen) < 10


def test_of_a_list_only_what_is_new_changed_or_gone_counts() -> None:
    play = Play()
    pods = crowd(2 * LISTED_PER_TURN)
    for listed in (pods, pods[1:]):
        play.turn(Listed(POD, listed))
        while play.machine.is_taking_in:
            play.turn()

    assert play.parts.cluster.pods_seen.keys() == {pod.key for pod in pods[1:]}


def test_a_wall_clock_that_was_set_moves_what_is_written_and_no_deadline() -> None:
    play, other = Play(a_node("n1")), Play(a_node("n1"))
    play.turn(WallClock(3_600.0))
    for one in (play, other):
        one.see(a_pod("big").requests(cpu="640"))

    assert play.the(PatchPodStatus).condition["lastTransitionTime"] == "1970-01-01T01:16:40Z"
    assert other.the(PatchPodStatus).condition["lastTransitionTime"] == "1970-01-01T00:16:40Z"
    assert play.machine.next_deadline_s() == other.machine.next_deadline_s()
