"""Room for resizes in place that a kubelet has deferred (KEP-5836), through the machine."""

from typing import Any

import pytest

from asched.core.cluster.facts import Done, Gone, Refused, Replied, Seen
from asched.core.config.gates import default_gates
from asched.core.config.gates import parse as parse_gates
from asched.core.framework.effects import DeletePod, EmitEvent, MarkVictim, PatchPodStatus
from asched.core.model.kinds import NODE, POD
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.playbook import Play
from tests.unit.core.extender.playing import ExtendedPlay, an_extender

GATE = "InPlacePodVerticalScalingSchedulerPreemption"
SHORT = "0/1 nodes are available: 1 Insufficient cpu. preemption:"
FOUND = f"{SHORT} found a potential placement for pod on node n1, preempting %d victims"


def four_cpus(name: str = "n1", *objects: str) -> NodeBuilder:
    node = a_node(name).allocatable(cpu="4")
    return node.spec(podPreemptionPolicy={"disableResizePreemption": list(objects)})


def low(name: str, cpu: str = "1", node: str = "n1", **metadata: Any) -> PodBuilder:
    return a_pod(name).priority(10).requests(cpu=cpu).on(node).metadata(**metadata)


def resized(cpu: str, held: str = "1", reason: str = "Deferred", **spec: Any) -> PodBuilder:
    """A running pod on n1 that holds `held` and asks for `cpu`."""
    held_now = {"resources": {"requests": {"cpu": held}}, "allocatedResources": {"cpu": held}}
    pending = {"type": "PodResizePending", "status": "True", "reason": reason}
    pod = a_pod("db").priority(100).requests(cpu=cpu).on("n1").spec(**spec)
    conditions = [{"type": "PodScheduled", "status": "True"}, pending]
    return pod.status(containerStatuses=[{"name": "c0", **held_now}], conditions=conditions)


def a_play(*pods: PodBuilder, node: NodeBuilder | None = None) -> Play:
    play = Play(node or four_cpus(), four_cpus("n2"), gates=default_gates("1.38"))
    play.turn(*(Seen(POD, pod.build()) for pod in pods))
    return play


def evicted(play: Play, *, code: int = 0) -> list[str]:
    """Answer what is asked; the names of the pods that were to be deleted."""
    gone = list[str]()
    while asked := [*play.of(MarkVictim), *play.of(DeletePod)]:
        gone += [effect.pod.name for effect in asked if isinstance(effect, DeletePod)]
        play.turn(*(Refused(e.id, code, "no") if code else Done(e.id) for e in asked))
    return gone


@pytest.mark.parametrize(
    ("cpu", "goes", "note"),
    [
        ("2", ["late"], FOUND % 1),
        ("3", ["early", "late"], FOUND % 2),
        ("1", [], ""),  # it fits by now: the kubelet will find out
        ("5", [], f"{SHORT} 0/1 nodes are available: 1 Insufficient cpu."),
    ],
)
def test_the_least_important_pods_of_its_node_make_room(
    cpu: str, goes: list[str], note: str
) -> None:
    pods = (
        low("early").status(startTime="2026-01-01T00:00:00Z"),
        low("late").status(startTime="2026-01-02T00:00:00Z"),
        a_pod("peer").priority(100).requests(cpu="1").on("n1"),
        low("elsewhere", node="n2"),
    )
    play = a_play(*pods)
    play.see(resized(cpu))
    # It stays scheduled, and has no nomination.
    assert all(patch.pod.name != "db" for patch in play.of(PatchPodStatus))
    assert play.notes() == ([f"FailedScheduling: {note}"] if note else [])
    assert sorted(evicted(play)) == goes


@pytest.mark.parametrize(
    ("pod", "node", "note"),
    [
        (
            resized("3", preemptionPolicy="Never"),
            four_cpus(),
            f"{SHORT} not eligible due to preemptionPolicy=Never.",
        ),
        (
            resized("3"),
            four_cpus("n1", "example.com/upsizer"),
            "0/1 nodes are available: 1 node had resize preemption disabled.",
        ),
        (
            resized("3").priority(10),
            four_cpus(),
            (f"{SHORT} 0/1 nodes are available: 1 No preemption victims found for incoming pod."),
        ),
        (resized("3", reason="Infeasible"), four_cpus(), ""),
        (resized("3", schedulerName="other"), four_cpus(), ""),
    ],
)
def test_where_no_room_is_made(pod: PodBuilder, node: NodeBuilder, note: str) -> None:
    play = a_play(low("a"), low("b"), low("c"), node=node)
    play.see(pod)
    assert play.notes() == ([f"FailedScheduling: {note}"] if note else [])
    assert evicted(play) == []


def test_events_of_its_node_alone_bring_it_back() -> None:
    play = a_play(low("a"), low("b", node="n2"), node=four_cpus("n1", "example.com/upsizer"))
    play.see(resized("4"))
    assert len(play.of(EmitEvent)) == 1
    play.turn(Seen(NODE, four_cpus("n2").build()), Gone(POD, low("b", node="n2").build()))
    assert play.machine.next_deadline_s() is None
    play.turn(Seen(NODE, four_cpus("n1").build()))
    assert evicted(play) == []  # it backs off
    play.turn(after_s=1.0)
    assert evicted(play) == ["a"]
    play.turn(Seen(POD, low("a", deletionTimestamp="2026-01-01T00:00:00Z").build()), after_s=60.0)
    play.turn(Seen(POD, low("b", cpu="500m").build()), after_s=60.0)
    play.turn(Seen(POD, low("b", cpu="250m").build()), after_s=60.0)
    assert evicted(play) == ["b"]
    play.see(resized("4", reason=""))
    play.lose(low("b"))
    assert play.machine.next_deadline_s() is None


def test_another_pod_of_its_node_that_grows_brings_it_back() -> None:
    """The resize fits, but the kubelet accepts that of the other pod first."""
    play = a_play(low("a"), low("b").priority(5))
    play.see(resized("2"))
    assert play.machine.next_deadline_s() is None
    play.see(low("a", cpu="1500m"))
    assert evicted(play) == ["b"]


def test_pods_that_leave_for_it_are_enough() -> None:
    play = a_play(low("a"), low("b"))
    leaving = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    gone = low("c", deletionTimestamp="2026-01-01T00:00:00Z").status(conditions=[leaving])
    play.see(gone)
    play.see(resized("2"))
    note = f"FailedScheduling: {SHORT} not eligible due to a terminating pod on the nominated node."
    assert play.notes() == [note]
    play.lose(gone)
    play.turn(after_s=1.0)
    assert (play.effects, evicted(play)) == ([], [])


def test_an_eviction_that_is_refused_is_tried_again() -> None:
    play = a_play(low("a", cpu="3"))
    play.see(resized("2"))
    assert evicted(play, code=403) == []
    play.turn(after_s=1.0)
    assert evicted(play) == ["a"]


def an_extended_play() -> ExtendedPlay:
    """Two pods on n1, either of which makes room."""
    extender = an_extender(preemptVerb="preempt", filterVerb="filter")
    play = ExtendedPlay(four_cpus(), extenders=[extender], gates=default_gates("1.38"))
    play.turn(*(Seen(POD, low(name, cpu="1500m").build()) for name in ("a", "b")))
    play.see(resized("2"))
    return play


def test_extenders_choose_the_victims() -> None:
    play = an_extended_play()
    question = play.question()
    assert question.verb == "preempt"
    ((node, victims),) = question.body["NodeNameToMetaVictims"].items()
    ((proposed,),) = [[pod["UID"] for pod in victims["Pods"]]]
    (other,) = {"uid-a", "uid-b"} - {proposed}
    play.reply({"NodeNameToMetaVictims": {node: {"Pods": [{"UID": other}]}}})
    assert play.notes() == [f"FailedScheduling: {FOUND % 1}"]
    assert evicted(play) == [other.removeprefix("uid-")]


def test_extenders_refuse_or_answer_too_late() -> None:
    play = an_extended_play()
    first = play.question()
    play.lose(low("b", cpu="1500m"))
    play.see(low("c", cpu="1500m"))
    play.turn(after_s=60.0)
    assert not play.effects  # the question is open still
    play.answer(Replied(first.id, {"NodeNameToMetaVictims": {}}))
    note = f"FailedScheduling: {SHORT} no candidate node for preemption"
    assert play.notes() == [note]
    play.turn(after_s=60.0)
    question = play.question()
    play.see(resized("1500m"))
    victims = {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "uid-a"}]}}}
    play.answer(Replied(question.id, victims))
    assert evicted(play) == []


@pytest.mark.parametrize(("minor", "gate"), [("1.37", ""), ("1.36", ""), ("1.37", f"{GATE}=true")])
def test_the_gate(minor: str, gate: str) -> None:
    play = Play(four_cpus(), gates=parse_gates([gate] if gate else [], minor).enabled)
    play.see(low("a", cpu="3"))
    play.see(resized("2"))
    assert evicted(play) == (["a"] if gate else [])
