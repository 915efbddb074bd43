"""What others have after each slice of an attempt that paused, by whose it was."""

from asched.batch.groups.trial import TRY_STEPS
from asched.core.cycle.turn_limit import OTHERS_SHARE, OTHERS_SHARE_OF_MANY, CountedLimit
from asched.core.model.kinds import POD, POD_GROUP
from asched.core.state.budget import SLICE_STEPS
from asched.core.state.facts import Seen
from tests.builders import a_node, a_pod
from tests.core.cycle.budget_plays import a_play
from tests.core.cycle.gang_plays import GANGS, a_group, a_member
from tests.core.cycle.playbook import Play


class Shares(CountedLimit):
    """What others were granted after each slice."""

    def __init__(self) -> None:
        super().__init__(1_000, resumed=True)
        self.granted_after: list[int] = []

    def end_slice(self, others_share: int) -> None:
        self.granted_after.append(others_share)


def lived(play: Play, *facts: Seen) -> list[int]:
    play.machine.limit = shares = Shares()
    play.turn(*facts)
    while play.machine.next_deadline_s() == 0.0:
        play.turn()
    return shares.granted_after


def test_a_pods_attempt_is_one_pods() -> None:
    pod = a_pod("slow").labels(slow="yes").build()
    assert set(lived(a_play(parts=3), Seen(POD, pod))) == {OTHERS_SHARE}
    assert OTHERS_SHARE > OTHERS_SHARE_OF_MANY


def test_a_gangs_attempt_is_that_of_many() -> None:
    count = 2 * SLICE_STEPS // TRY_STEPS
    play = Play(a_node("n").allocatable(cpu="1k", memory="1Ti", pods="1k"), **GANGS)
    pods = [Seen(POD, a_member(f"m{i:03}").build()) for i in range(count)]
    shares = lived(play, Seen(POD_GROUP, a_group(min_count=count)), *pods)
    assert shares
    assert set(shares) == {OTHERS_SHARE_OF_MANY}
