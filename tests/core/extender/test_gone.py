"""Pods that go while an extender thinks, about them or about others: nothing is done for them."""

from collections.abc import Callable
from typing import ClassVar

import pytest

from asched.core.framework.effects import AskExtender, Bind
from asched.core.framework.points import ReservePlugin
from asched.core.framework.status import SUCCESS
from asched.core.state.facts import Replied
from tests.builders import PodBuilder, a_node, a_pod
from tests.core.extender.playing import ExtendedPlay, an_extender

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
