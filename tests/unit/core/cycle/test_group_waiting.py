"""Gangs that are incomplete for long say so, once, and say what is missing."""

from asched.batch.groups import incomplete as group_waiting
from asched.core.framework.effects import Bind, EmitEvent
from tests.builders import a_node, a_pod, room
from tests.playbook import Play, a_label_member, label_gang_play, label_group_seen


def said(play: Play) -> dict[str, str]:
    """Kind of what it is about -> note."""
    return {e.regarding.kind: e.note for e in play.of(EmitEvent)}


def waited(play: Play, for_s: float = 60.0) -> dict[str, str]:
    """Live on, as the machine asks to; everything that was said on the way."""
    found, end_s = {}, play.now_s + for_s
    while play.now_s < end_s:
        deadline_s = play.machine.next_deadline_s()
        assert deadline_s is not None
        play.turn(after_s=max(deadline_s - play.now_s, 0.1))
        found |= said(play)
    return found


def test_a_gang_without_some_of_its_pods_says_so_within_a_minute_and_once() -> None:
    play = label_gang_play(room("n1", 9))
    label_group_seen(play, "crew", 3)
    play.see(a_label_member("a"))
    play.see(a_label_member("b"))
    assert not play.of(EmitEvent)

    note = (
        "the gang is incomplete: 2 of minMember 3 pods exist; should the others be made only once"
        " these run, minMember is too large"
    )
    assert waited(play) == {"Pod": note, "PodGroup": note}
    assert waited(play, 300) == {}
    play.see(a_label_member("c"))
    assert len(play.of(Bind)) == 3


def test_a_gang_that_is_complete_in_time_says_nothing() -> None:
    play = label_gang_play(room("n1", 9))
    label_group_seen(play, "crew", 2)
    play.see(a_label_member("a"))
    play.turn(after_s=20)
    play.see(a_label_member("b"))
    assert waited(play, 120) == {}


def test_gates_and_other_schedulers_are_named() -> None:
    play = label_gang_play(room("n1", 9))
    label_group_seen(play, "crew", 3)
    play.see(a_label_member("a"))
    play.see(a_label_member("b").gated("kueue.x-k8s.io/topology"))
    play.see(a_label_member("c").spec(schedulerName="other"))

    assert waited(play)["PodGroup"] == (
        "the gang is incomplete: 1 of its pods wait behind the gate kueue.x-k8s.io/topology, 1 of"
        " its pods name scheduler other; give all pods of the gang one schedulerName"
    )


def test_a_gang_that_does_not_fit_is_not_called_incomplete() -> None:
    play = label_gang_play(room("n1", 1))
    label_group_seen(play, "crew", 2)
    play.see(a_label_member("a"))
    play.see(a_label_member("b"))
    notes = waited(play, 120)
    assert not [note for note in notes.values() if "incomplete" in note]


def test_nobody_is_woken_for_it_while_there_are_no_groups() -> None:
    play = label_gang_play(a_node("n1"))
    play.see(a_pod("single"))
    assert group_waiting.next_report_s(play.parts.cluster) is None
