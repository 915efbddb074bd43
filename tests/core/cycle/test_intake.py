"""What thousands have to hear takes several turns, and nothing else happens before all have."""

from collections.abc import Iterable
from itertools import count
from typing import Any

import pytest

from asched.core.cycle.backlog import LISTED_PER_TURN
from asched.core.cycle.intake import Intake
from asched.core.cycle.look import Looks
from asched.core.cycle.orders import KubeletRefused
from asched.core.cycle.turn_limit import CountedLimit
from asched.core.framework.effects import Bind, EmitEvent
from asched.core.model.kinds import NODE, POD
from asched.core.queue.queue import SchedulingQueue
from asched.core.state.budget import SLICE_STEPS
from asched.core.state.cluster import Sight
from asched.core.state.facts import Done, Fact, Gone, Listed, Seen
from tests.builders import a_node, a_pod
from tests.core.cycle.playbook import Play, ours
from tests.core.cycle.recording import Recorder

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


def test_a_turn_that_makes_up_for_the_last_one_takes_in_no_more_and_decides(
    crowd: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Looks, "may_help", lambda *_: True)  # else nobody is worth a look
    there = a_pod("there").on("n1").requests(cpu="1").build()
    crowd.turn(Seen(POD, there))
    rest(crowd)
    late = a_pod("late").requests(cpu="1").build()
    before = queue_of(crowd).looking.left + queue_of(crowd).looking.tried
    crowd.turn(Gone(POD, there), Seen(POD, late))
    while queue_of(crowd).sliced:
        assert not crowd.of(Bind)
        crowd.turn()

    assert late.key not in crowd.parts.cluster.pods_seen
    looking = queue_of(crowd).looking
    looked = looking.left + looking.tried - before
    assert 0 < looked < MANY, "some of those who are due were looked at"
    rest(crowd)
    assert late.key in crowd.parts.cluster.pods_seen


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


class Told:
    """An intake by itself, over the cluster and the queue of a play: who was told of what."""

    def __init__(self) -> None:
        self.context = Play(a_node("n1")).machine.context
        self.context.observer = self.ear = Recorder()
        self.context.counter_s = count(0.0, 2.0).__next__
        self.said: list[Any] = []
        self.intake = Intake(
            self.context,
            lambda sight: self.said.append(("saw", sight.new.metadata.name)),
            lambda answer: self.said.append(("answered", answer.effect_id)),
            lambda effects: self.said.extend(("asked", type(effect)) for effect in effects),
            lambda _: False,
        )

    def turn(self, *facts: Fact) -> bool:
        self.said.clear()
        return self.intake.turn([ours(fact) for fact in facts])


def test_every_fact_reaches_those_whom_it_is_for() -> None:
    told = Told()
    order = KubeletRefused("default", "web", "uid-web", "", "n1", "OutOfcpu", "me")
    assert told.turn(Seen(POD, a_pod("web").build()), Done(7), order)
    assert told.said == [("saw", "web"), ("answered", 7), ("asked", EmitEvent)]
    assert not told.intake
    assert told.intake.may_decide
    assert not told.turn()


@pytest.mark.parametrize("is_deaf", [True, False], ids=["nobody rests", "somebody rests"])
def test_metrics_hear_of_each_fact_by_its_label_and_how_long_it_took(is_deaf: bool) -> None:
    told = Told()
    queue = told.context.queue
    if not is_deaf:
        told.turn(Seen(POD, a_pod("rests").gated("later").build()))
        told.ear.heard.clear()
    assert queue.is_deaf == is_deaf
    told.turn(Seen(POD, a_pod("there").on("n1").build()))
    told.turn(Seen(POD, a_pod("web").build()))
    assert told.ear.of("fact_handled") == [
        ("AssignedPodAdd", 2.0),
        ("UnschedulablePodAdd", 2.0),
    ]


def test_of_what_concerns_nobody_no_metric_tells() -> None:
    told = Told()
    told.turn(Gone(POD, a_pod("nobody").build()))
    assert told.ear.of("fact_handled") == []


class Beside:
    """Whoever follows another scheduler's decisions: what it heard, and what was known then."""

    def __init__(self, told: Told) -> None:
        self.told = told
        self.heard: list[Any] = []
        told.context.beside = self  # type: ignore[assignment]

    def about_to_see(self, fact: Seen) -> None:
        is_known = fact.obj.metadata.key in self.told.context.cluster.pods_seen
        self.heard.append((fact.obj.metadata.name, is_known))

    def listed(self, sights: Iterable[Sight]) -> None:
        self.heard += [sight.new.metadata.name for sight in sights]


def test_who_follows_another_scheduler_hears_of_a_fact_before_it_is_known() -> None:
    told = Told()
    beside = Beside(told)
    told.turn(Seen(POD, a_pod("web").build()), Done(7))
    assert beside.heard == [("web", False)]
    told.turn(Listed(POD, (a_pod("web").build(), a_pod("more").build())))
    assert set(beside.heard[1:]) == {"web", "more"}


def test_nothing_may_be_decided_while_half_a_list_is_known() -> None:
    told = Told()
    long = tuple(a_pod(f"p{number}").on("n1").build() for number in range(LISTED_PER_TURN))
    told.turn(Listed(POD, long))
    assert told.intake
    assert not told.intake.may_decide
    while told.intake:
        assert told.turn()
    assert told.intake.may_decide
    assert len(told.context.cluster.pods_seen) == len(long)
