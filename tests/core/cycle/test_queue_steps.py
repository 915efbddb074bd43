"""What follows for the queue from what was seen: who hears of it, and whose place is given back."""

from typing import Any

import pytest

from asched.core.cycle.queue_steps import room_is_free, take_step
from asched.core.framework.effects import Bind
from asched.core.framework.waiting import Stage, WaitingPod
from asched.core.model.kinds import POD
from asched.core.queue import event_handlers
from asched.core.queue.event_handlers import Announce, Enqueue, Promise, Refresh, Release, Withdraw
from asched.core.state.changes import ASSIGNED_POD_ADD, NODE_ADD, Change
from asched.core.state.facts import Seen
from tests.builders import PodBuilder, a_node, a_pod, pending
from tests.core.cycle.playbook import Play

FREED = "AssignedPodDelete"


class Ear:
    """The queue, as far as it is told anything."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def add(self, pod: Any, _now_s: float) -> None:
        self.calls.append(("add", pod.metadata.name))

    def update(self, old: Any, new: Any, _now_s: float) -> None:
        self.calls.append(("update", new.metadata.name))

    def delete(self, pod: Any) -> None:
        self.calls.append(("delete", pod.metadata.name))

    def move(self, change: Change, _now_s: float, *, except_uid: str = "") -> None:
        assert not except_uid
        seen: Any = change.old or change.new
        node = seen.spec.node_name if hasattr(seen.spec, "node_name") else seen.metadata.name
        self.calls.append((change.trigger.label, node))
        self.last = change

    def told(self) -> list[tuple[Any, ...]]:
        calls, self.calls = self.calls, []
        return calls


class Steps:
    def __init__(self) -> None:
        play = Play(a_node("n1"), a_node("n2"))
        self.context, self.cluster = play.machine.context, play.parts.cluster
        self.ear = Ear()
        self.context.queue = self.ear  # type: ignore[assignment]

    def take(self, step: event_handlers.Step) -> str:
        return take_step(self.context, step)

    def told(self) -> list[tuple[Any, ...]]:
        return self.ear.told()

    def see(self, pod: PodBuilder) -> Any:
        built = pod.build()
        self.cluster.pods_seen[built.key] = built
        return built


def high(version: str = "1", node: str = "", cpu: str = "2") -> PodBuilder:
    pod = a_pod("high").priority(9).requests(cpu=cpu).metadata(resourceVersion=version)
    return pod.status(nominatedNodeName=node) if node else pod


def test_each_step_has_its_label() -> None:
    steps = Steps()
    pod, node = high().build(), a_node("n3").build()
    assert steps.take(Announce(Change(NODE_ADD, None, node))) == "NodeAdd"
    assert steps.take(Announce(Change(ASSIGNED_POD_ADD, None, pod.on("n1")))) == "AssignedPodAdd"
    assert steps.take(Enqueue(pod)) == "UnschedulablePodAdd"
    assert steps.take(Refresh(pod, pod)) == "UnschedulablePodUpdate"
    assert steps.take(Withdraw(pod)) == ""
    assert steps.told() == [
        ("NodeAdd", "n3"),
        ("AssignedPodAdd", "n1"),
        ("add", "high"),
        ("update", "high"),
        ("delete", "high"),
    ]


def test_a_pod_that_room_is_promised_to_and_that_needs_less_now_lets_others_have_it() -> None:
    steps = Steps()
    old, same, less = high().build(), high("2").build(), high("3", cpu="1").build()
    steps.context.nominator.add(steps.see(high()), "n1")
    steps.take(Refresh(old, same))
    assert steps.told() == [("update", "high")]
    steps.take(Refresh(old, less))
    assert steps.told() == [("update", "high"), (FREED, "n1")]
    assert (steps.ear.last.priority_at_most, steps.ear.last.only_if_fits) == (9, True)


def test_without_a_promise_it_says_nothing() -> None:
    steps = Steps()
    steps.take(Refresh(high().build(), high("2", cpu="1").build()))
    assert steps.told() == [("update", "high")]


def test_another_promise_than_its_status_had_is_announced_elsewhere() -> None:
    """`event_handlers` announces the end of a promise that the status told of."""
    steps = Steps()
    steps.context.nominator.add(steps.see(high("2")), "n1")
    steps.take(Refresh(high("1", "n2").build(), high("2", cpu="1").build()))
    assert steps.told() == [("update", "high")]


def test_a_promise_of_another_scheduler_that_moves_frees_its_first_node() -> None:
    steps = Steps()
    steps.take(Promise(None, steps.see(high("1", "n1"))))
    assert steps.context.nominator.node_of("uid-high") == "n1"
    assert steps.context.nominator.of_others("uid-high")
    steps.take(Promise(high("1", "n1").build(), steps.see(high("2", "n2"))))
    assert steps.told() == [(FREED, "n1")]
    assert steps.context.nominator.node_of("uid-high") == "n2"
    steps.take(Promise(high("2", "n2").build(), steps.see(high("3", "n2"))))
    assert steps.told() == []
    steps.take(Promise(high("3", "n2").build(), steps.see(high("4", "n2", cpu="1"))))
    assert steps.told() == [(FREED, "n2")]
    steps.take(Promise(high("4").build(), steps.see(high("5", "n2"))))
    assert steps.told() == [], "nothing had been promised"


def test_a_pod_that_goes_gives_back_what_was_promised_to_it_written_or_not() -> None:
    for node, written in (("n1", ""), ("n1", "n1"), (None, "n2")):
        steps = Steps()
        pod = steps.see(high("1", written))
        if node is not None:
            steps.context.nominator.add(pod, node)
        steps.take(Withdraw(pod))
        assert steps.told() == [("delete", "high"), (FREED, node or written)]


def test_a_pod_that_took_its_promise_frees_nothing() -> None:
    steps = Steps()
    pod = steps.see(high("1", "n1"))
    steps.cluster.assume(pending(steps.cluster, high("1", "n1")), "n1")
    steps.take(Withdraw(pod))
    assert steps.told() == [("delete", "high")]


def test_a_pod_that_has_its_place_elsewhere_frees_its_promise() -> None:
    steps = Steps()
    pod = steps.see(high("1", "n1"))
    steps.cluster.assume(pending(steps.cluster, high("1", "n1")), "n2")
    steps.take(Withdraw(pod))
    assert steps.told() == [("delete", "high"), (FREED, "n1")]


def test_room_that_is_free_concerns_those_who_had_to_respect_it() -> None:
    steps = Steps()
    room_is_free(steps.context, high().build(), "n2")
    assert steps.told() == [(FREED, "n2")]
    assert (steps.ear.last.priority_at_most, steps.ear.last.only_if_fits) == (9, True)


def test_an_assumed_pod_that_goes_gives_its_place_back() -> None:
    steps = Steps()
    info = pending(steps.cluster, high())
    steps.cluster.assume(info, "n1")
    steps.take(Release(info.pod))
    assert steps.told() == [(FREED, "n1")]
    assert not steps.cluster.is_assumed("uid-high")
    steps.take(Release(info.pod))
    assert steps.told() == []


def test_a_pod_that_waits_at_permit_is_turned_away_there() -> None:
    steps = Steps()
    info = pending(steps.cluster, high())
    steps.cluster.assume(info, "n1")
    waiting = WaitingPod(info, "n1", "default-scheduler")
    waiting.stage, waiting.deadlines = Stage.PERMIT, {"Slow": (2000.0, 60.0)}
    steps.context.waiting.add(waiting)
    steps.take(Release(info.pod))
    assert waiting.decision is not None
    assert steps.told() == []
    assert steps.cluster.is_assumed("uid-high"), "its binding cycle gives it back"


def test_a_pod_in_pre_bind_that_goes_is_given_back_and_stopped() -> None:
    steps = Steps()
    info = pending(steps.cluster, high())
    steps.cluster.assume(info, "n1")
    waiting = WaitingPod(info, "n1", "default-scheduler")
    waiting.stage = Stage.PRE_BIND
    steps.context.waiting.add(waiting)
    steps.take(Release(info.pod))
    assert waiting.decision is not None
    assert steps.told() == [(FREED, "n1")]


def test_a_pod_that_is_placed_for_good_stays() -> None:
    steps = Steps()
    info = pending(steps.cluster, high())
    steps.cluster.assume(info, "n1")
    steps.cluster.apply(Seen(POD, info.pod.on("n1")))
    steps.take(Release(info.pod))
    assert steps.told() == []
    assert "uid-high" in steps.cluster.placed


@pytest.mark.parametrize(
    "seen", [a_pod().requests(cpu="2").on("n2"), a_pod().requests(cpu="1").on("n1")]
)
def test_a_place_that_the_api_does_not_confirm_is_free_for_others_at_once(seen: PodBuilder) -> None:
    """Somebody else bound it elsewhere, or it has become smaller meanwhile."""
    play = Play(a_node("n1").allocatable(cpu="2"), a_node("n2").allocatable(cpu="500m"))
    play.see(a_pod().requests(cpu="2"))
    assert play.the(Bind).node == "n1"
    play.see(a_pod("late").requests(cpu="1"))
    assert not play.of(Bind)

    play.see(seen)
    play.turn(after_s=10.0)

    assert play.node_of("uid-late") == "n1"
