"""A pod that changes while it is being bound: the binding carries the version that was decided for,
and a refusal because of another version costs neither the place nor an attempt.
"""

from asched.core.cluster.facts import Bound, Gone, ReadPending, ReadPlaced, Refused, Seen
from asched.core.framework.effects import Bind, EmitEvent, PatchPodStatus, ReadPod
from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from tests.builders import PodBuilder, a_node, a_pod
from tests.playbook import Play, a_member, gang_play, room_for, seen_group

OUTDATED = "Operation cannot be fulfilled on pods: Precondition failed: ResourceVersion"


def version(pod: PodBuilder, number: int) -> Pod:
    return pod.metadata(resourceVersion=str(number)).build()


def a_play(pod: PodBuilder) -> tuple[Play, Bind]:
    """One node with room for one pod, and this pod on its way there."""
    play = Play()
    play.turn(Seen(NODE, a_node("n1").labels(zone="a").allocatable(cpu="1", pods="9").build()))
    play.turn(Seen(POD, version(pod, 7)))
    return play, play.the(Bind)


def refused(bind: Bind) -> Refused:
    return Refused(bind.id, 409, OUTDATED, "Conflict")


def test_a_binding_carries_the_version_of_its_pod() -> None:
    _, bind = a_play(a_pod("web").requests(cpu="1"))
    assert bind.pod.resource_version == "7"


def test_a_pod_that_somebody_annotates_is_bound_with_its_newest_version() -> None:
    pod = a_pod("web").requests(cpu="1")
    play, bind = a_play(pod)
    play.turn(Seen(POD, version(pod.metadata(annotations={"note": "x"}), 8)))
    play.answer(refused(bind))
    play.answer(ReadPending(play.the(ReadPod).id, "8"))

    again = play.the(Bind)

    assert (again.pod.resource_version, again.node) == ("8", "n1")
    play.answer(Bound(again.id))
    assert not [e for e in play.of(EmitEvent) if e.reason != "Scheduled"]
    assert not play.of(PatchPodStatus)


def test_it_is_bound_once_the_watch_has_shown_what_was_read() -> None:
    """What decides about the pod is compared with that version."""
    pod = a_pod("web").requests(cpu="1")
    play, bind = a_play(pod)
    play.answer(refused(bind))
    play.answer(ReadPending(play.the(ReadPod).id, "9"))
    assert not play.of(Bind)

    play.turn(Seen(POD, version(pod, 9)))

    assert play.the(Bind).pod.resource_version == "9"


def test_a_binding_that_has_arrived_is_not_repeated() -> None:
    """The server checks the version before the node, so its refusal does not name the node."""
    play, bind = a_play(a_pod("web").requests(cpu="1"))
    play.answer(refused(bind))
    play.answer(ReadPlaced(play.the(ReadPod).id, "n1"))
    assert play.the(EmitEvent).reason == "Scheduled"
    assert not play.of(Bind)


def test_a_pod_that_does_not_fit_there_any_more_gives_its_place_back() -> None:
    neighbour = (
        a_pod("neighbour")
        .on("n1")
        .spec(
            affinity={
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "rival"}}}
                    ]
                }
            }
        )
    )
    pod = a_pod("web").requests(cpu="1")
    play = Play()
    play.turn(Seen(NODE, a_node("n1").labels(zone="a").allocatable(cpu="1", pods="9").build()))
    play.turn(Seen(POD, version(neighbour, 1)))
    play.turn(Seen(POD, version(pod, 7)))
    bind = play.the(Bind)
    play.turn(Seen(POD, version(pod.labels(app="rival"), 8)))
    play.answer(refused(bind))
    play.answer(ReadPending(play.the(ReadPod).id, "8"))

    assert not play.of(Bind)
    assert "has changed and no longer fits on n1" in play.the(EmitEvent).note
    play.see(a_pod("other").requests(cpu="1"))
    assert play.the(Bind).pod.name == "other", "the place is free"


def test_a_member_of_a_gang_keeps_its_place_whatever_changes() -> None:
    play = gang_play(room_for(2))
    seen_group(play, 2)
    members = [a_member(f"m{n}") for n in range(2)]
    for member in members:
        play.see(version(member, 7))
    first, second = play.of(Bind)
    play.answer(Bound(first.id))
    play.see(version(members[1].labels(app="new"), 8))
    play.answer(refused(second))
    play.answer(ReadPending(play.the(ReadPod).id, "8"))

    again = play.the(Bind)

    assert (again.pod.name, again.node) == (second.pod.name, second.node)


def test_a_pod_that_changes_without_end_is_tried_anew() -> None:
    """Its owner could keep a place for ever otherwise."""
    pod = a_pod("web").requests(cpu="1")
    play, bind = a_play(pod)
    for number in range(8, 40):
        play.turn(Seen(POD, version(pod, number)))
        play.answer(refused(bind))
        play.answer(ReadPending(play.the(ReadPod).id, str(number)))
        if play.of(EmitEvent):
            break
        if not play.of(Bind):
            play.turn(after_s=5.0)
        bind = play.the(Bind)
    assert OUTDATED in play.the(EmitEvent).note


def test_a_node_that_is_gone_meanwhile_is_not_bound_to() -> None:
    """The pod itself has not changed in what decides, and is read back all the same."""
    node = a_node("n1").labels(zone="a").allocatable(cpu="1", pods="9").build()
    pod = a_pod("web").requests(cpu="1")
    play, bind = a_play(pod)
    play.turn(Gone(NODE, node))
    play.turn(Seen(POD, version(pod.metadata(annotations={"note": "x"}), 8)))
    play.answer(refused(bind))
    play.answer(ReadPending(play.the(ReadPod).id, "8"))

    assert not play.of(Bind)
    assert "no longer fits on n1" in play.the(EmitEvent).note


def test_nor_is_a_member_of_a_gang() -> None:
    room = room_for(2)
    play = gang_play(room)
    seen_group(play, 2)
    members = [a_member(f"m{n}") for n in range(2)]
    for member in members:
        play.see(version(member, 7))
    first, second = play.of(Bind)
    play.answer(Bound(first.id))
    play.turn(Gone(NODE, room.build()))
    play.see(version(members[1].labels(app="new"), 8))
    play.answer(refused(second))
    play.answer(ReadPending(play.the(ReadPod).id, "8"))

    assert not play.of(Bind)
