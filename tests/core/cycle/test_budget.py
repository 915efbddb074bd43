"""What one pod may cost the others: attempts pause, in turns whose work is counted."""

from itertools import islice
from typing import Any

import msgspec
import numpy as np
import pytest

from asched.core.cycle import group_room, scheduling
from asched.core.cycle.backlog import Backlog
from asched.core.cycle.group import MATES_AT_ONCE
from asched.core.cycle.group_trial import TRY_STEPS
from asched.core.cycle.turn_limit import OTHERS_SHARE, TimeLimit
from asched.core.framework import second_look
from asched.core.framework.effects import Bind, DeletePod, MarkVictim
from asched.core.framework.points import Codes, FilterPlugin
from asched.core.model.kinds import DEVICE_CLASS, POD, POD_GROUP, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.preemption import units
from asched.core.preemption.eviction import AT_ONCE
from asched.core.state.audit import recount
from asched.core.state.budget import SLICE_STEPS, TOO_MUCH, Budget, OutOfTurn
from asched.core.state.facts import Done, Gone, Seen
from asched.core.state.pods import PodInfo
from asched.core.state.view import NodeView
from tests.builders import a_node, a_pod
from tests.core.cycle.group_stage import Stage, low, member
from tests.core.cycle.playbook import Play
from tests.core.cycle.test_gang_plays import GANGS, a_group, a_member, bound
from tests.core.dra.worlds import a_claim, a_class, a_device, a_slice, asks


class Slow(FilterPlugin):
    """Takes `parts` slices for pods that are labelled so, and keeps what it has done."""

    name = "Slow"
    budget: Budget
    parts = 10
    watch = None

    def __init__(self) -> None:
        self.done = 0

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        while "slow" in pod.pod.labels and self.done < self.parts:
            self.budget.charge(SLICE_STEPS, "it is slow")
            if self.watch is not None:
                self.watch.slice()
            self.done += 1
        return np.zeros(nodes.size, dtype=np.int32)


def a_play(parts: int = 10, nodes: int = 1) -> Play:
    cls = type("Slow", (Slow,), {"parts": parts})
    play = Play(*(a_node(f"n{i}") for i in range(nodes)), plugins=(cls,))
    cls.budget = play.parts.cluster.budget
    return play


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
    play.machine.limit = TimeLimit(watch)
    play.turn(*(Seen(POD, a_pod(f"slow-{i}").labels(slow="yes").build()) for i in range(3)))
    return play, watch


def test_others_that_are_not_taken_in_yet_leave_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a turn takes in a part of what arrived, the queue runs dry in each of them."""
    play, watch = a_timed_play()
    whole, count = Backlog.turn, 100
    monkeypatch.setattr(Backlog, "turn", lambda self: islice(whole(self), 1))
    quick = [a_pod(f"quick-{number}").requests(cpu="1m").build() for number in range(count)]
    facts = [Seen(POD, pod) for pod in quick]
    for turn in range(count - 1):
        play.turn(*(facts if turn == 0 else ()))
        assert watch.slices_s <= watch.may_take_s
    assert watch.slices_s > 4 * 0.005, "but they do go on"


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


def test_a_very_large_pod_lets_others_go_first_before_anything_is_made_of_it() -> None:
    play = a_play()
    pods = [a_pod(f"large-{i}").labels(**{f"l{n}": "v" * 90 for n in range(900)}) for i in (1, 2)]
    facts = [Seen(POD, pod.build()) for pod in pods]
    play.turn(*facts, Seen(POD, a_pod("quick").build()))
    assert bound(play) == {"quick"}
    play.turn()
    assert bound(play) == {"large-1"}
    play.turn(*(Gone(POD, pods[1].build()),), Seen(POD, a_pod("other").build()))
    assert bound(play) == {"other"}
    play.turn()
    assert not bound(play), "it went before it was tried"


def test_the_first_of_vast_pods_lets_others_go_first_and_its_equals_do_not() -> None:
    """What takes long is made once of all of them."""
    play = a_play()
    pods = [a_pod(f"vast-{i}").labels(**{f"l{n}": "v" * 90 for n in range(300)}) for i in (1, 2)]
    first, second = [Seen(POD, pod.build()) for pod in pods]
    play.turn(first, Seen(POD, a_pod("quick").build()))
    assert bound(play) == {"quick"}
    play.turn()
    assert bound(play) == {"vast-1"}
    play.machine._intake._looks_out_until_s = 0.0  # it enters at once
    play.turn(second, Seen(POD, a_pod("other").build()))
    assert bound(play) == {"vast-2", "other"}


def test_no_turn_does_more_than_a_slice_and_one_part() -> None:
    play = a_play()
    budget, spent = play.parts.cluster.budget, []
    play.see(a_pod("slow").labels(slow="yes"))
    for _ in range(10):
        before = budget.spent
        play.turn()
        spent.append(budget.spent - before)
    assert max(spent) <= 2 * SLICE_STEPS


def test_a_gang_of_thousands_is_gathered_in_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    count, taken = 3 * SLICE_STEPS, 0
    play = Play(a_node("n").allocatable(cpu="2k", memory="4Ti", pods="2k"), **GANGS)
    queue = play.machine.context.queue
    take = queue.pop_mate

    def pop_mate(*args: Any) -> Any:
        nonlocal taken
        taken += 1
        return take(*args)

    monkeypatch.setattr(queue, "pop_mate", pop_mate)
    play.turn(Seen(POD_GROUP, a_group(min_count=count)))
    facts: list[Any] = [Seen(POD, a_member(f"m{i:04}").build()) for i in range(count)]
    found, all_taken = set[str](), 0
    while facts or play.machine.next_deadline_s() == 0.0:
        taken = 0
        play.turn(*facts)
        assert taken <= SLICE_STEPS + MATES_AT_ONCE
        if 0 < all_taken + taken < count - 1:
            assert play.machine.is_taking_in, "nothing comes between"
        facts, all_taken, found = [], all_taken + taken, found | bound(play)
    assert len(found) == count
    assert all_taken == count - 1


def test_no_turn_does_more_where_thousands_would_have_to_go_for_a_gang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    each, nodes, parts = 600, 2, list[float]()
    note = Budget.note

    def noted(self: Budget, steps: float) -> None:
        parts.append(steps if self is stage.play.parts.cluster.budget else 0.0)
        note(self, steps)

    monkeypatch.setattr(Budget, "note", noted)
    monkeypatch.setattr(group_room, "VICTIM_STEPS", 1.0)  # as if they were ten times as many
    stage = Stage(
        *(a_node(f"n{i}").allocatable(cpu=str(each), memory="1Ti", pods="1k") for i in range(nodes))
    )
    stage.show(*(low(f"p{i}", f"n{i % nodes}") for i in range(each * nodes)))
    stage.group(min_count=4, priority=100)
    play, victims = stage.play, set[str]()
    budget = play.parts.cluster.budget
    facts: list[Any] = [Seen(POD, member(f"m{i}", cpu=str(each // 2)).build()) for i in range(4)]
    while facts or play.machine.next_deadline_s() == 0.0:
        before = budget.spent
        play.turn(*facts)
        # of what ends in this turn, of what begins in it, and one part beyond
        assert budget.spent - before <= 3 * SLICE_STEPS
        asked = [*play.of(MarkVictim), *play.of(DeletePod)]
        assert len(asked) <= AT_ONCE
        victims |= {effect.pod.name for effect in play.of(DeletePod)}
        facts = [Done(effect.id) for effect in asked]
    assert len(victims) == each * nodes
    assert max(parts) <= units.PART * units.POD_STEPS
    whole = each * nodes // group_room.VICTIMS_AT_ONCE
    assert parts.count(group_room.VICTIMS_AT_ONCE) == 2 * whole, "as they are told, and looked up"


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


def test_an_attempt_that_had_all_of_its_slices_ends_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scheduling, "SLICES_MAX", 3)
    play = a_play(parts=100)
    play.see(a_pod("slow").labels(slow="yes"))
    play.turn()
    assert not play.notes()
    play.turn()
    assert play.notes() == ["FailedScheduling: it is slow"]
    assert play.machine.next_deadline_s() != 0.0


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


def test_outside_of_turns_nobody_counts() -> None:
    budget = Budget()
    budget.charge(10 * SLICE_STEPS)
    budget.charge(1)
    budget.open(5)
    budget.charge(5)
    with pytest.raises(OutOfTurn, match=TOO_MUCH):
        budget.charge(1)
    budget.close()
    budget.charge(1)


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


def test_a_hopeless_search_for_devices_ends_in_the_words_of_a_time_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scheduling, "SLICES_MAX", 4)
    play = Play(a_node("n1"))
    kinds = [a_device(f"d{i}", attributes={"kind": f"k{i // 3}"}) for i in range(300)]
    alike = [{"requests": [], "matchAttribute": "gpu.example.com/kind"}]
    claim = a_claim(asks(count=4), constraints=alike)
    metadata = msgspec.structs.replace(claim.metadata, namespace="default")
    play.turn(
        Seen(DEVICE_CLASS, a_class()),
        Seen(RESOURCE_SLICE, a_slice(*kinds)),
        Seen(RESOURCE_CLAIM, msgspec.structs.replace(claim, metadata=metadata)),
    )
    wish = [{"name": "r", "resourceClaimName": claim.metadata.name}]
    play.turn(
        Seen(POD, a_pod("hopeless").spec(resourceClaims=wish).build()),
        Seen(POD, a_pod("quick").build()),
    )
    assert bound(play) == {"quick"}
    notes: list[str] = []
    for _ in range(4):
        play.turn()
        notes += play.notes()
    assert notes == ["FailedScheduling: node n1: timed out trying to allocate devices"]


def test_a_second_look_that_would_take_long_leaves_it_to_an_attempt() -> None:
    play = a_play()
    slow = a_pod("slow").labels(slow="yes").build()
    runner = play.machine.context.runners["default-scheduler"]
    play.parts.cluster.budget.open(SLICE_STEPS)
    assert second_look.blamed(runner, slow) is None
    play.parts.cluster.budget.close()
    assert play.parts.cluster.budget.spent <= 2 * SLICE_STEPS
