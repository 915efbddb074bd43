"""Events about gangs that cannot start: a line each, however much a tenant writes on its pods."""

from collections.abc import Callable

import pytest

from asched.core.cluster.facts import Listed, Seen
from asched.core.framework.effects import Bind, EmitEvent
from asched.core.model.kinds import POD
from tests.builders import a_node, a_pod, room
from tests.playbook import (
    Play,
    a_label_member,
    a_member,
    bound,
    explained_gang,
    gang_play,
    label_gang_play,
    label_group_seen,
    ours,
    seen_group,
)

#: What the API server takes of an event's note.
NOTE_BYTES_MAX = 1024


def notes_within(play: Play, seconds: float) -> list[str]:
    """Notes of the events of the next seconds."""
    found, end_s = [], play.now_s + seconds
    while play.now_s < end_s:
        due_s = play.machine.next_deadline_s()
        assert due_s is not None
        play.turn(after_s=max(due_s - play.now_s, 0.1))
        found += [event.note for event in play.of(EmitEvent)]
    return found


def test_a_note_about_an_incomplete_gang_names_a_handful_of_gates() -> None:
    play = label_gang_play(room("n1", 9))
    label_group_seen(play, "crew", 1_000)
    gates = [{"name": f"example.com/a-gate-with-a-long-name-{n}"} for n in range(500)]
    pods = [a_label_member(f"p{number}").spec(schedulingGates=gates) for number in range(150)]
    free = a_label_member("free")
    play.turn(Listed(POD, tuple(ours(Seen(POD, pod.build())).obj for pod in (free, *pods))))

    notes = notes_within(play, 60)

    assert notes
    assert all(len(note.encode()) <= NOTE_BYTES_MAX for note in notes)
    assert all(note.count("wait behind the gate") <= 5 for note in notes)
    assert all("151 of minMember 1000 pods exist" in note for note in notes)
    assert all("at least" in note for note in notes), "not all pods are counted"


def test_a_note_stays_short_where_every_name_is_long() -> None:
    play = label_gang_play(room("n1", 9))
    label_group_seen(play, "crew", 9)
    play.see(a_label_member("free"))
    for number in range(9):
        play.see(a_label_member(f"gated-{number}").gated(f"{'x' * 250}.example.com/{number}"))
        play.see(a_label_member(f"far-{number}").spec(schedulerName=f"{number}-{'y' * 250}"))

    notes = notes_within(play, 60)

    assert notes
    assert all(len(note.encode()) <= NOTE_BYTES_MAX for note in notes)


def test_gated_pods_of_another_scheduler_do_not_make_a_complete_gang_incomplete() -> None:
    play = label_gang_play(room("n1", 0))
    label_group_seen(play, "crew", 1)
    play.see(a_label_member("mine"))
    play.see(a_label_member("far").spec(schedulerName="other").gated("example.com/wait"))

    assert not [note for note in notes_within(play, 60) if "incomplete" in note]


def test_the_name_of_a_foreign_gang_is_cut() -> None:
    play = Play(a_node("n1").allocatable(cpu="4", pods="9"))
    annotations = {"scheduling.k8s.io/group-name": "g" * 200_000}
    play.see(a_pod("p").metadata(annotations=annotations))

    notes = [event.note for event in play.of(EmitEvent) if event.reason == "GangNotFollowed"]

    assert len(notes) == 1
    assert len(notes[0]) <= NOTE_BYTES_MAX


def a_gang_of_three(api: str) -> tuple[Play, Callable[..., object]]:
    """A play in which a gang of three is awaited, with room for all of it, and how to make one of
    its pods.
    """
    if api == "scheduling.x-k8s.io":
        play = label_gang_play(room("n1", 9))
        label_group_seen(play, "crew", 3)
        return play, a_label_member
    play = gang_play(room("n1", 9), GenericWorkload=True, GangScheduling=True)
    seen_group(play, 3)
    return play, a_member


@pytest.mark.parametrize("api", ["scheduling.x-k8s.io", "scheduling.k8s.io"])
@pytest.mark.parametrize("order", ["far a b", "a far b", "a b far"])
def test_a_gang_under_two_schedulers_waits_and_its_event_names_the_other(api, order) -> None:
    play, member = a_gang_of_three(api)
    for name in order.split():
        scheduler = "other" if name == "far" else "default-scheduler"
        play.see(member(name).spec(schedulerName=scheduler))

    notes = notes_within(play, 300)

    why = (
        "the gang is incomplete: 1 of its pods name scheduler other; give all pods of the gang one"
        " schedulerName"
    )
    assert notes == [why, why], "one on the first pod, one on the PodGroup, and no attempts"
    page = explained_gang(play, "default/crew").splitlines()
    assert f"  {why}" in page
    assert {"2 gated", "1 another scheduler's"} <= set(page)
    play.see(member("far").spec(schedulerName="other").on("n1"))
    assert bound(play) == {"a", "b"}, "a pod with a node counts, whoever placed it"


def test_waiting_pods_of_another_scheduler_do_not_complete_a_gang() -> None:
    play, member = a_gang_of_three("scheduling.x-k8s.io")
    for name in ("a", "b", "far"):
        play.see(member(name).spec(schedulerName="other"))
    assert not play.of(Bind)
    for name in ("c", "d"):
        play.see(member(name))
    assert not play.of(Bind), "two of three"
    play.see(member("e"))
    assert bound(play) == {"c", "d", "e"}
