"""An extender that binds is believed once the pod is where it should be."""

from typing import Any

import pytest

from asched.core.extender.binder import SEEN_S
from asched.core.framework.effects import LANDS_WITHIN_S, AskExtender, Bind, ReadPod
from asched.core.state.facts import ReadGone, ReadPending, ReadPlaced, Replied, Unknown
from tests.builders import a_node, a_pod
from tests.core.extender.playing import ExtendedPlay, an_extender

YES: dict[str, str] = {"Error": ""}


def asked(**more: Any) -> ExtendedPlay:
    play = ExtendedPlay(a_node("n1"), extenders=[an_extender(bindVerb="bind", **more)])
    play.see(a_pod("web"))
    return play


def test_it_is_told_the_pod_and_the_node_and_nobody_else_binds() -> None:
    play = asked()
    assert play.question().body == {
        "PodName": "web",
        "PodNamespace": "default",
        "PodUID": "uid-web",
        "Node": "n1",
    }
    play.reply(YES)
    assert play.effects == []
    play.see(a_pod("web").on("n1"))
    assert play.notes() == ["Scheduled: Successfully assigned default/web to n1"]


def test_the_watch_may_be_quicker_than_the_answer() -> None:
    play = asked()
    question = play.question()
    play.see(a_pod("web").on("n1"))
    play.answer(Replied(question.id, YES))
    assert play.notes() == ["Scheduled: Successfully assigned default/web to n1"]


def test_a_yes_that_nothing_comes_of_gives_the_place_back() -> None:
    play = asked()
    play.reply(YES)
    play.turn(after_s=SEEN_S)
    play.answer(ReadPending(play.the(ReadPod).id))
    condition = play.condition()
    assert condition["reason"] == "SchedulerError"
    assert condition["message"] == (
        "extender http://x said that it bound the pod, but it has no node"
    )
    assert play.node_of("uid-web") == ""


def test_a_pod_that_was_bound_elsewhere_is_left_alone() -> None:
    play = asked()
    play.reply(YES)
    play.see(a_pod("web").on("another"))
    assert play.notes() == []
    assert play.node_of("uid-web") == "another"


@pytest.mark.parametrize("answer", [ReadPlaced, ReadGone])
def test_an_answer_that_got_lost_is_looked_after(answer: Any) -> None:
    play = asked()
    play.answer(Unknown(play.question().id, "timed out"))
    read = play.the(ReadPod)
    play.answer(Unknown(read.id, "nobody there"))
    play.turn(after_s=1)
    read = play.the(ReadPod)
    play.answer(ReadPlaced(read.id, "n1") if answer is ReadPlaced else ReadGone(read.id))
    bound = ["Scheduled: Successfully assigned default/web to n1"]
    gone = ['FailedScheduling: pods "web" not found']
    assert play.notes() == (bound if answer is ReadPlaced else gone)


def test_the_place_is_held_while_its_binding_may_still_show_up() -> None:
    play = asked()
    play.answer(Unknown(play.question().id, "timed out"))
    play.answer(ReadPending(play.the(ReadPod).id))
    play.turn(after_s=LANDS_WITHIN_S - 1)
    assert play.node_of("uid-web") == "n1"
    assert play.effects == []
    play.turn(after_s=1)
    play.answer(ReadPending(play.the(ReadPod).id))
    assert play.notes() == ["FailedScheduling: timed out"]
    assert play.node_of("uid-web") == ""


def test_a_refusal_by_status_may_have_bound_all_the_same() -> None:
    play = asked()
    play.refuse("code 500", 500)
    play.answer(ReadPlaced(play.the(ReadPod).id, "n1"))
    assert play.notes() == ["Scheduled: Successfully assigned default/web to n1"]


def test_a_refusal_that_never_arrived_is_one() -> None:
    play = asked()
    play.refuse("connection refused", 0)
    assert play.condition()["message"] == "connection refused"


def test_an_ignorable_one_gives_way_to_the_bind_plugins() -> None:
    play = asked(ignorable=True)
    play.reply({"error": "not today"})
    assert play.the(Bind).node == "n1"


def test_one_that_does_not_manage_what_the_pod_wants_is_not_asked() -> None:
    play = asked(managedResources=[{"name": "example.com/dev"}])
    assert play.of(AskExtender) == []
    assert play.the(Bind).node == "n1"
