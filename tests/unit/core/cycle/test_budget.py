"""What one pod may cost the others: attempts pause, in turns whose work is counted."""

from asched.batch.groups.trial import TRY_STEPS
from asched.core.cluster.audit import recount
from asched.core.cluster.budget import SLICE_STEPS
from asched.core.cluster.facts import Gone, Seen
from asched.core.cycle.turn_limit import OTHERS_SHARE, TurnLimit
from asched.core.framework.effects import Bind
from asched.core.model.kinds import POD, POD_GROUP
from tests.builders import a_node, a_pod
from tests.playbook import GANGS, Play, a_group, a_member, bound
from tests.unit.core.cycle.budget_plays import Slow, a_play
from tests.unit.core.cycle.group_stage import Stage, low, member


def test_a_pod_that_takes_long_costs_nobody_else_a_turn() -> None:
    play = a_play()
    quick = [a_pod(f"quick-{i}").build() for i in range(10)]
    play.turn(Seen(POD, a_pod("slow").labels(slow="yes").build()), Seen(POD, quick[0]))
    assert bound(play) == {"quick-0"}
    for pod in quick[1:9]:
        play.see(pod)
        assert bound(play) == {pod.metadata.name}
        assert play.machine.next_deadline_s() == 0.0
    play.see(quick[9])
    assert bound(play) == {"slow", "quick-9"}
    assert play.machine.next_deadline_s() != 0.0


class Watch:
    """A clock by which whatever asks for the time takes a millisecond, and a slice five."""

    def __init__(self) -> None:
        self.now_s = self.slices_s = 0.0

    def __call__(self) -> float:
        self.now_s += 0.001
        return self.now_s

    def slice(self) -> None:
        self.now_s += 0.005
        self.slices_s += 0.005

    @property
    def may_take_s(self) -> float:
        """What slices may have taken by now: their share, three first ones, and one before it."""
        return self.now_s / OTHERS_SHARE + 4 * 0.005


def a_timed_play() -> tuple[Play, Watch]:
    play, watch = a_play(parts=40, nodes=10), Watch()
    slow = play.machine.context.runners["default-scheduler"].profile.plugins["Slow"]
    assert isinstance(slow, Slow)
    slow.watch = watch
    play.machine.limit = TurnLimit(watch)
    play.turn(*(Seen(POD, a_pod(f"slow-{i}").labels(slow="yes").build()) for i in range(3)))
    return play, watch


def test_while_others_want_time_slices_have_a_small_share_of_it() -> None:
    """However many attempts pause; and all of it once nobody else wants any."""
    play, watch = a_timed_play()
    placed, turns = bound(play), 200
    for turn in range(turns):
        quick = (a_pod(f"quick-{turn}-{i}").requests(cpu="1m").build() for i in range(2))
        play.turn(*(Seen(POD, pod) for pod in quick))
        placed |= bound(play)
        assert watch.slices_s <= watch.may_take_s
    assert watch.slices_s > 4 * 0.005
    assert len(placed) >= 2 * turns - 2
    left = 40 - round(watch.slices_s / 0.005)
    for _ in range(left + 3):
        play.turn()
        placed |= bound(play)
    assert placed >= {"slow-0", "slow-1", "slow-2"}


def test_nothing_is_decided_or_taken_in_while_pods_are_only_supposed_to_be_gone() -> None:
    each = 1500
    stage = Stage(a_node("n").allocatable(cpu=str(each), memory="1Ti", pods="2k"))
    stage.show(*(low(f"p{i}", "n") for i in range(each)))
    stage.group(min_count=1, priority=100)
    play, cluster, supposed = stage.play, stage.play.parts.cluster, 0
    play.turn(Seen(POD, member("m", cpu=str(each)).build()))
    while play.machine.next_deadline_s() == 0.0:
        if cluster.is_supposed:
            supposed += 1
            assert play.machine.is_taking_in
            assert not play.turn(Seen(POD, a_pod(f"quick-{supposed}").requests(cpu="1").build()))
            assert f"default/quick-{supposed}" not in cluster.pods_seen
        else:
            play.turn()
    assert supposed > 3
    assert f"default/quick-{supposed}" in cluster.pods_seen
    assert not bound(play), "there was no room"
    assert recount(cluster) == []


def test_a_pod_that_goes_while_its_attempt_pauses_is_not_bound() -> None:
    play = a_play(parts=2)
    slow = a_pod("slow").labels(slow="yes").build()
    play.see(slow)
    play.lose(slow)
    for _ in range(3):
        play.turn()
        assert not play.of(Bind)


def test_while_another_replica_leads_a_paused_attempt_waits() -> None:
    play = a_play(parts=2)
    play.see(a_pod("slow").labels(slow="yes"))
    play.machine.is_active = False
    assert not play.turn()
    assert play.machine.is_idle
    play.machine.is_active = True
    play.turn()
    assert bound(play) == {"slow"}


def test_a_large_gang_is_tried_in_several_turns() -> None:
    count = 3 * SLICE_STEPS // TRY_STEPS
    play = Play(a_node("n").allocatable(cpu="1k", memory="1Ti", pods="1k"), **GANGS)
    play.turn(Seen(POD_GROUP, a_group(min_count=count)))
    play.turn(*(Seen(POD, a_member(f"m{i:03}").build()) for i in range(count)))
    assert not bound(play)
    play.see(a_pod("quick"))
    assert bound(play) == {"quick"}
    found = bound(play)
    for _ in range(3):
        play.turn()
        found |= bound(play)
    assert len(found) == count + 1


def test_a_gang_that_paused_and_does_not_fit_wakes_those_who_met_its_places() -> None:
    count = SLICE_STEPS // TRY_STEPS + 5
    play = Play(a_node("n").allocatable(cpu=str(count - 1), memory="1Ti", pods="1k"), **GANGS)
    play.turn(Seen(POD_GROUP, a_group(min_count=count)))
    play.turn(*(Seen(POD, a_member(f"m{i:03}").build()) for i in range(count)))
    play.see(a_pod("large").requests(cpu=str(count - 1)))
    found = bound(play)
    for _ in range(5):
        play.turn(after_s=2)
        found |= bound(play)
    assert found == {"large"}


def test_a_gang_that_waited_for_another_one_is_tried_though_nothing_happens_any_more() -> None:
    count = SLICE_STEPS // TRY_STEPS + 5
    play = Play(a_node("n").allocatable(cpu=str(count - 1), memory="1Ti", pods="1k"), **GANGS)
    play.turn(Seen(POD_GROUP, a_group("a", count)), Seen(POD_GROUP, a_group("b", 2)))
    pods = [a_member(f"a{i:03}", "a").build() for i in range(count)]
    play.turn(*(Seen(POD, pod) for pod in pods))
    play.turn(*(Seen(POD, a_member(name, "b").build()) for name in ("b0", "b1")))
    found = bound(play)
    while play.machine.next_deadline_s() == 0.0:
        play.turn()
        found |= bound(play)
    assert found == {"b0", "b1"}


def test_a_group_whose_pods_go_leaves_nothing_behind() -> None:
    count = 2 * SLICE_STEPS // TRY_STEPS
    play = Play(a_node("n").allocatable(cpu="1k", memory="1Ti", pods="1k"), **GANGS)
    members = [a_member(f"m{i:03}").build() for i in range(count)]
    play.turn(Seen(POD_GROUP, a_group(min_count=count)))
    play.turn(*(Seen(POD, member) for member in members))
    play.turn(*(Gone(POD, member) for member in members))
    for _ in range(4):
        play.turn()
    assert not any(info.assumed for info in play.parts.cluster.placed.values())
