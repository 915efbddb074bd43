"""Whoever names a gang that nobody follows is told so, once for each gang."""

import pytest

from asched.core.framework.effects import Bind, EmitEvent
from tests.builders import a_node, a_pod
from tests.playbook import Play, a_label_member, label_gang_play, label_group_seen


def told(play: Play) -> list[str]:
    return [e.note for e in play.of(EmitEvent) if e.reason == "GangNotFollowed"]


MARKS = [
    ("annotations", "scheduling.k8s.io/group-name", "Volcano"),
    ("annotations", "pod-group-name", "KAI"),
    ("annotations", "yunikorn.apache.org/task-group-name", "YuniKorn"),
    ("labels", "yunikorn.apache.org/task-group-name", "YuniKorn"),
    ("annotations", "gang.scheduling.koordinator.sh/name", "Koordinator"),
    ("labels", "pod-group.scheduling.sigs.k8s.io/name", "Koordinator"),
]


@pytest.mark.parametrize(("where", "mark", "whose"), MARKS)
def test_a_gang_of_another_scheduler_is_told_of_once(where: str, mark: str, whose: str) -> None:
    play = Play(a_node("n1"))
    play.see(a_pod("a").metadata(**{where: {mark: "crew"}}))
    assert play.of(Bind)
    (note,) = told(play)
    assert note.startswith(f"the gang default/crew ({whose}) is not followed: its pods are placed")

    play.see(a_pod("b").metadata(**{where: {mark: "crew"}}))
    assert not told(play)
    play.see(a_pod("c").metadata(**{where: {mark: "other"}}))
    assert told(play)


def test_a_label_in_a_profile_without_the_plugin_says_which_plugin() -> None:
    play = Play(a_node("n1"))
    play.see(a_label_member("a"))
    (note,) = told(play)
    assert 'enable the plugin Coscheduling in profile "default-scheduler"' in note


def test_a_group_whose_gate_is_off_says_which_gate() -> None:
    play = Play(a_node("n1"))
    play.see(a_pod("a").spec(schedulingGroup={"podGroupName": "crew"}))
    (note,) = told(play)
    assert "--feature-gates=GenericWorkload=true,GangScheduling=true" in note


def test_a_gang_that_is_followed_and_a_pod_without_one_say_nothing() -> None:
    play = label_gang_play(a_node("n1"))
    label_group_seen(play, "crew", 1)
    play.see(a_label_member("a"))
    assert play.of(Bind)
    assert not told(play)
    play.see(a_pod("b").labels(app="x").metadata(annotations={"note": "y"}))
    assert not told(play)
