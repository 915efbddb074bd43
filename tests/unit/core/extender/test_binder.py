"""An extender that binds is believed once the pod is where it should be."""

from typing import Any

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import (
    Done,
    ReadGone,
    ReadPending,
    ReadPlaced,
    Replied,
    Seen,
    Unknown,
)
from asched.core.config.v1 import Extender
from asched.core.extender.binder import READ_AGAIN_S, READ_AGAIN_S_MAX, SEEN_S, ExtenderBinder
from asched.core.framework.effects import LANDS_WITHIN_S, AskExtender, Bind, ReadPod, WaitFor
from asched.core.model.kinds import POD
from tests.builders import a_node, a_pod, pending
from tests.unit.core.extender.playing import ExtendedPlay, an_extender

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
        "extender http://x reported the pod as bound, but the pod has no node"
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


def test_a_refusal_by_status_holds_the_place_no_longer() -> None:
    """The extender did answer: nothing of it is still under way."""
    play = asked()
    play.refuse("code 500", 500)
    play.answer(ReadPending(play.the(ReadPod).id))
    assert play.notes() == ["FailedScheduling: code 500"]
    assert play.node_of("uid-web") == ""


def test_pauses_between_reads_that_nobody_answers_double_up_to_a_limit() -> None:
    play = asked()
    play.answer(Unknown(play.question().id, "timed out"))
    pause_s = READ_AGAIN_S
    while pause_s < 4 * READ_AGAIN_S_MAX:
        play.answer(Unknown(play.the(ReadPod).id, "nobody there"))
        waits_s = min(pause_s, READ_AGAIN_S_MAX)
        play.turn(after_s=waits_s - 0.01)
        assert play.effects == [], pause_s
        play.turn(after_s=0.02)
        assert play.of(ReadPod), pause_s
        pause_s *= 2


@pytest.mark.parametrize("end", ["gone", "another"])
def test_a_pod_that_is_gone_while_its_place_is_looked_for_ends_the_wait(end: str) -> None:
    """The name of a pod may be another one's by now: the place of that one says nothing."""
    play = asked()
    play.reply(YES)
    play.lose(a_pod("web"))
    if end == "another":
        play.see(a_pod("web").metadata(uid="other").on("n1"))
    assert not [note for note in play.notes() if "Scheduled" in note]
    for read in play.of(ReadPod):
        assert read.pod.uid == "uid-web"
        play.answer(ReadGone(read.id))
    assert play.node_of("uid-web") == ""


@pytest.mark.parametrize("node", ["", "n1"])
def test_another_pod_of_the_name_neither_proves_a_binding_nor_is_waited_for(node: str) -> None:
    cluster = Cluster()
    pod = pending(cluster, a_pod("web"))
    steps = ExtenderBinder(Extender(bind_verb="bind"), cluster).bind(pod, "n1")
    question = next(steps)
    other = a_pod("web").metadata(uid="other")
    cluster.apply(Seen(POD, (other.on(node) if node else other).build()))

    read = steps.send(Replied(question.id, YES))

    assert isinstance(read, ReadPod)
    assert read.pod.uid == "uid-web"
    with pytest.raises(StopIteration) as end:
        steps.send(ReadGone(read.id))
    assert end.value.value.message == 'pods "web" not found'


@pytest.mark.parametrize("way", ["watch", "read", "read at once", "never seen"])
def test_wherever_a_binding_to_another_node_is_found_out_it_is_a_failure(way: str) -> None:
    cluster = Cluster()
    pod = pending(cluster, a_pod("web"))
    extender = Extender(url_prefix="http://x", bind_verb="bind")
    steps = ExtenderBinder(extender, cluster).bind(pod, "n1")
    question = next(steps)
    if way == "watch":
        cluster.apply(Seen(POD, a_pod("web").on("n2").build()))
    elif way != "never seen":
        cluster.apply(Seen(POD, a_pod("web").build()))
    answer: Any = Replied(question.id, YES)
    if way == "read at once":
        answer = Unknown(question.id, "timed out")

    ends = 'extender http://x bound the pod to node "n2" instead of "n1"'
    if way == "watch":
        with pytest.raises(StopIteration) as end:
            steps.send(answer)
        assert end.value.value.message == ends
        return
    effect = steps.send(answer)
    if way == "read":
        assert isinstance(effect, WaitFor)
        assert (effect.timeout_s, effect.ready()) == (SEEN_S, False)
        effect = steps.send(Done(effect.id))
    assert isinstance(effect, ReadPod)
    with pytest.raises(StopIteration) as end:
        steps.send(ReadPlaced(effect.id, "n2"))
    assert end.value.value.message == ends
