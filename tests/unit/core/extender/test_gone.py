"""Pods that go while an extender thinks, about them or about others: nothing is done for them."""

from collections.abc import Callable
from typing import ClassVar

import pytest

from asched.core.cluster.facts import Replied
from asched.core.framework.effects import AskExtender, Bind, DeletePod, EmitEvent, PatchPodStatus
from asched.core.framework.points import ReservePlugin
from asched.core.framework.status import SUCCESS
from asched.core.preemption.under_way import UnderWay
from tests.builders import PodBuilder, a_node, a_pod
from tests.unit.core.extender.playing import ExtendedPlay, an_extender

Ending = Callable[[ExtendedPlay, PodBuilder], object]


def deleted(play: ExtendedPlay, pod: PodBuilder) -> None:
    play.lose(pod)


def terminating(play: ExtendedPlay, pod: PodBuilder) -> None:
    play.see(pod.metadata(deletionTimestamp="2026-01-01T00:00:00Z", resourceVersion="2"))


def placed(play: ExtendedPlay, pod: PodBuilder) -> None:
    play.see(pod.metadata(resourceVersion="2").build().on("elsewhere"))


class Reserving(ReservePlugin):
    """Notes for whom something was to be reserved."""

    name = "Reserving"
    asked: ClassVar[list[str]] = []

    def reserve(self, pod, node, data):
        self.asked.append(pod.pod.key)
        return SUCCESS

    def unreserve(self, pod, node):
        """Nothing to undo."""


ENDS = pytest.mark.parametrize("end", [deleted, terminating, placed])


@ENDS
def test_a_pod_that_goes_while_it_is_parked_is_not_asked_about(end: Ending) -> None:
    play = ExtendedPlay(a_node("n1"), a_node("n2"), extenders=[an_extender(filterVerb="filter")])
    play.see(a_pod("first"))
    question = play.question()
    second = a_pod("second")
    play.see(second)
    end(play, second)
    play.answer(Replied(question.id, {"NodeNames": ["n1"]}))
    assert [bind.pod.name for bind in play.of(Bind)] == ["first"]
    assert play.of(AskExtender) == []
    play.bind_all()
    assert play.machine.is_idle
    assert len(play.machine.context.queue.in_flight) == 0


def test_a_pod_made_anew_while_its_namesake_is_parked_is_asked_about_by_itself() -> None:
    play = ExtendedPlay(a_node("n1"), extenders=[an_extender(filterVerb="filter")])
    play.see(a_pod("first"))
    question = play.question()
    second = a_pod("second")
    play.see(second)
    play.lose(second)
    play.see(a_pod("second").metadata(uid="anew"))
    play.answer(Replied(question.id, {"NodeNames": ["n1"]}))
    assert play.question().body["Pod"].uid == "anew"


@ENDS
def test_a_pod_that_goes_while_it_is_asked_about_gets_no_place(end: Ending) -> None:
    Reserving.asked.clear()
    extender = an_extender(filterVerb="filter")
    play = ExtendedPlay(a_node("n1"), extenders=[extender], plugins=[Reserving])
    pod = a_pod("web")
    play.see(pod)
    question = play.question()
    end(play, pod)
    play.answer(Replied(question.id, {"NodeNames": ["n1"]}))
    assert play.of(Bind) == []
    assert Reserving.asked == [], "it was not even assumed"
    assert play.node_of("uid-web") in ("", "elsewhere")
    assert play.machine.is_idle


def made_anew(play: ExtendedPlay, pod: PodBuilder) -> None:
    play.lose(pod)
    play.see(a_pod("web").requests(cpu="2").priority(5).gated("wait").metadata(uid="anew"))


@pytest.mark.parametrize("verb", ["preempt", "filter"])
@pytest.mark.parametrize("end", [deleted, terminating, placed, made_anew])
def test_nobody_is_evicted_for_a_pod_that_goes_while_it_is_asked_about(
    end: Ending, verb: str
) -> None:
    """Some extender is asked about the nodes on which room could be made."""
    play = ExtendedPlay(
        a_node("n1").allocatable(cpu="2"), extenders=[an_extender(**{f"{verb}Verb": verb})]
    )
    victim, pod = a_pod("victim").requests(cpu="2").on("n1"), a_pod("web").priority(5)
    play.see(victim)
    play.see(pod.requests(cpu="2"))
    question = play.question()
    end(play, pod)
    evict = {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "uid-victim"}]}}}
    play.answer(Replied(question.id, evict if verb == "preempt" else {"NodeNames": ["n1"]}))
    assert [effect.pod.name for effect in play.of(PatchPodStatus)] == []
    assert play.of(DeletePod) == []
    assert play.machine.is_idle
    under_way = play.parts.cluster.singleton(UnderWay)
    assert not under_way.holding()


@pytest.mark.parametrize("end", [terminating, placed, made_anew])
def test_nor_for_one_that_goes_while_its_nodes_are_asked_about(end: Ending) -> None:
    """The extender refuses the only node that fits; on another one room could be made."""
    extender = an_extender(filterVerb="filter")
    full, free = a_node("full").allocatable(cpu="2"), a_node("free").allocatable(cpu="2")
    play = ExtendedPlay(full, free, extenders=[extender])
    play.see(a_pod("victim").requests(cpu="2").on("full"))
    pod = a_pod("web").priority(5)
    play.see(pod.requests(cpu="2"))
    question = play.question()
    assert question.body["NodeNames"] == ("free",)
    end(play, pod)
    play.answer(Replied(question.id, {"NodeNames": []}))
    assert [effect for effect in play.effects if not isinstance(effect, EmitEvent)] == []
    assert play.machine.is_idle
