"""One pod's way through the machine, told as plays."""

import pytest

from asched.core.cluster.facts import Done, Gone, ReadPending, ReadPlaced, Refused, Seen, Unknown
from asched.core.cycle.confirmation import READ_AGAIN_S_MAX, SENDS_MAX
from asched.core.framework.effects import (
    LANDS_WITHIN_S,
    Bind,
    EmitEvent,
    Patch,
    PatchPodStatus,
    ReadPod,
    WaitFor,
)
from asched.core.framework.points import PermitPlugin, PreBindPlugin
from asched.core.framework.status import SKIP, SUCCESS, Code, Status, failure
from asched.core.model.kinds import NODE, POD
from tests.builders import a_node, a_pod
from tests.playbook import Play


def test_a_pod_is_bound_and_told_so() -> None:
    play = Play(a_node("n1"))
    play.see(a_pod("web"))
    bind = play.the(Bind)
    assert (bind.pod.key, bind.node) == ("default/web", "n1")
    play.bound(bind)
    assert play.notes() == ["Scheduled: Successfully assigned default/web to n1"]
    assert play.machine.is_idle
    assert play.of(PatchPodStatus) == []


def test_a_pod_that_fits_nowhere_is_told_why_and_wakes_when_a_node_comes() -> None:
    play = Play(a_node("n1").taints("gpu=yes:NoSchedule"))
    play.see(a_pod("web"))
    condition = play.condition()
    assert condition["status"] == "False"
    assert condition["reason"] == "Unschedulable"
    assert condition["message"].startswith(
        "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
    )
    assert play.the(EmitEvent).type == "Warning"
    play.turn(Seen(NODE, a_node("n2").build()), after_s=2)
    assert play.the(Bind).node == "n2"


def test_no_node_at_all_is_an_error_that_is_tried_again_after_a_pause() -> None:
    play = Play()
    play.see(a_pod("web"))
    assert play.condition()["message"] == "no nodes available to schedule pods"
    play.turn(Seen(NODE, a_node("n1").build()))
    assert play.of(Bind) == []
    play.turn(after_s=2.5)
    assert play.the(Bind).node == "n1"


def test_the_second_identical_failure_writes_no_condition() -> None:
    play = Play(a_node("n1").cordoned())
    pod = a_pod("web")
    play.see(pod)
    play.condition()
    patch = play.the(PatchPodStatus)
    assert patch.condition is not None
    status = {"conditions": [dict(patch.condition)]}
    play.see(pod.status(**status).metadata(resourceVersion="2"))
    play.turn(Seen(NODE, a_node("n2").cordoned().build()), after_s=400)
    play.turn(after_s=400)
    assert [e.reason for e in play.of(EmitEvent)] in (["FailedScheduling"], [])
    assert all(p.condition is None or "message" in p.condition for p in play.of(PatchPodStatus))


def test_a_place_is_taken_from_the_moment_of_the_decision() -> None:
    """1. Room for one. 2. Two pods. 3. The second is refused before the first is bound."""
    play = Play(a_node("n1").allocatable(cpu="1", memory="1Gi", pods="10"))
    play.turn(
        Seen(POD, a_pod("a").requests(cpu="800m").build()),
        Seen(POD, a_pod("b").requests(cpu="800m").build()),
    )
    assert len(play.of(Bind)) == 1
    assert "Insufficient cpu" in play.condition()["message"]


def test_a_refused_binding_gives_the_place_back() -> None:
    play = Play(a_node("n1").allocatable(cpu="1", memory="1Gi", pods="10"))
    play.see(a_pod("a").requests(cpu="800m"))
    play.answer(Refused(play.the(Bind).id, 403, "not allowed", "Forbidden"))
    assert play.condition()["reason"] == "SchedulerError"
    assert "not allowed" in play.condition()["message"]
    assert play.node_of("uid-a") == ""
    play.turn(after_s=2.5)
    assert play.the(Bind).pod.name == "a"


def test_a_lost_answer_is_checked_before_the_place_is_given_back() -> None:
    """1. The bind request times out. 2. It had in fact succeeded. 3. No second binding is sent."""
    play = Play(a_node("n1"))
    play.see(a_pod("web"))
    play.answer(Unknown(play.the(Bind).id, "connection reset"))
    read = play.the(ReadPod)
    play.answer(ReadPlaced(read.id, "n1"))
    assert play.notes() == ["Scheduled: Successfully assigned default/web to n1"]
    assert play.of(Bind) == []
    assert play.machine.is_idle


def test_a_lost_request_is_sent_once_more_to_the_same_node() -> None:
    play = Play(a_node("n1"), a_node("n2"))
    play.see(a_pod("web"))
    first = play.the(Bind)
    play.answer(Unknown(first.id, "connection reset"))
    play.answer(ReadPending(play.the(ReadPod).id))
    again = play.the(Bind)
    assert (again.pod, again.node) == (first.pod, first.node)
    assert again.id != first.id
    play.bound(again)
    assert play.notes() == [f"Scheduled: Successfully assigned default/web to {first.node}"]


def test_a_lost_request_is_not_sent_once_more_to_a_node_that_became_ill() -> None:
    """Its place is held for as long as the first one may still be carried out."""
    play = Play(a_node("n1"))
    play.see(a_pod("web"))
    bind = play.the(Bind)
    play.turn(Seen(NODE, a_node("n2").build()), Seen(NODE, a_node("n1").cordoned().build()))
    play.answer(Unknown(bind.id, "timeout"))
    play.answer(ReadPending(play.the(ReadPod).id))
    assert play.of(Bind) == []
    play.turn(after_s=LANDS_WITHIN_S - 1)
    assert play.effects == []
    assert play.node_of("uid-web") == "n1"
    play.turn(after_s=1)
    play.answer(ReadPending(play.the(ReadPod).id))
    play.turn(after_s=10)
    assert play.the(Bind).node == "n2"


def lose_all_answers(play: Play) -> None:
    """The binding of `web` gets no answer, however often it is sent; the pod has no node."""
    for _ in range(SENDS_MAX):
        play.answer(Unknown(play.the(Bind).id, "timeout"))
        play.answer(ReadPending(play.the(ReadPod).id))
        if not play.of(Bind):
            play.turn(after_s=READ_AGAIN_S_MAX)


def test_a_place_is_held_while_a_lost_binding_can_still_show_up() -> None:
    """1. No answer, and no node. 2. Another pod wants the room. 3. The binding shows up at last."""
    play = Play(a_node("n1").allocatable(cpu="1", memory="1Gi", pods="10"))
    first = a_pod("web").requests(cpu="800m")
    play.see(first)
    lose_all_answers(play)
    play.see(a_pod("other").requests(cpu="800m"))
    for _ in range(5):
        play.turn(after_s=10)
        assert play.of(Bind) == []
        assert play.node_of("uid-web") == "n1"
    play.see(first.metadata(resourceVersion="2").build().on("n1"))
    assert play.notes() == ["Scheduled: Successfully assigned default/web to n1"]
    assert play.node_of("uid-other") == ""


def test_a_place_is_free_once_a_lost_binding_cannot_show_up_any_more() -> None:
    play = Play(a_node("n1").allocatable(cpu="1", memory="1Gi", pods="10"))
    play.see(a_pod("web").requests(cpu="800m"))
    lose_all_answers(play)
    play.turn(after_s=LANDS_WITHIN_S)
    play.answer(ReadPending(play.the(ReadPod).id))
    assert play.node_of("uid-web") == ""
    assert play.condition()["reason"] == "SchedulerError"
    assert play.condition()["message"].endswith(
        "the binding was lost on its way: the pod has no node"
    )
    play.turn(after_s=2.5)
    assert play.the(Bind).node == "n1"


def test_an_unknown_read_is_repeated_and_the_watch_may_settle_it() -> None:
    play = Play(a_node("n1"))
    pod = a_pod("web")
    play.see(pod)
    play.answer(Unknown(play.the(Bind).id, "timeout"))
    play.answer(Unknown(play.the(ReadPod).id, "timeout"))
    assert play.effects == []
    play.see(pod.build().on("n1"))
    assert play.notes() == ["Scheduled: Successfully assigned default/web to n1"]
    assert play.machine.is_idle


def test_a_conflict_that_names_our_own_node_is_a_success() -> None:
    play = Play(a_node("n1"))
    play.see(a_pod("web"))
    message = 'Operation cannot be fulfilled: pod web is already assigned to node "n1"'
    play.answer(Refused(play.the(Bind).id, 409, message, "Conflict"))
    assert play.notes() == ["Scheduled: Successfully assigned default/web to n1"]


def test_a_pod_bound_by_somebody_else_is_left_alone() -> None:
    """1. Another scheduler wins. 2. Nobody writes PodScheduled=False over its True."""
    play = Play(a_node("n1"), a_node("n2"))
    pod = a_pod("web")
    play.see(pod)
    bind = play.the(Bind)
    other = "n2" if bind.node == "n1" else "n1"
    play.see(pod.build().on(other))
    assert play.node_of(bind.pod.uid) == other
    play.answer(Refused(bind.id, 409, f'pod web is already assigned to node "{other}"', "Conflict"))
    assert play.of(PatchPodStatus) == []
    assert play.of(EmitEvent) == []
    assert play.node_of(bind.pod.uid) == other


def test_a_pod_that_is_deleted_while_it_is_bound_frees_its_place() -> None:
    play = Play(a_node("n1").allocatable(cpu="1", memory="1Gi", pods="10"))
    pod = a_pod("a").requests(cpu="800m")
    play.see(pod)
    bind = play.the(Bind)
    play.lose(pod)
    assert play.node_of(bind.pod.uid) == ""
    play.answer(Refused(bind.id, 404, 'pods "a" not found', "NotFound"))
    assert play.of(PatchPodStatus) == []
    assert play.machine.is_idle


def test_nothing_is_decided_while_another_replica_leads() -> None:
    play = Play(a_node("n1"))
    play.machine.is_active = False
    play.see(a_pod("web"))
    assert play.effects == []
    play.machine.is_active = True
    play.turn()
    assert play.the(Bind).node == "n1"


def test_no_more_bindings_are_under_way_than_allowed() -> None:
    play = Play(a_node("n1"))
    play.machine.bindings_max = 2
    play.turn(*(Seen(POD, a_pod(f"p{i}").build()) for i in range(5)))
    assert len(play.of(Bind)) == 2
    play.bound(play.of(Bind)[0])
    assert len(play.of(Bind)) == 1


class Disks(PreBindPlugin):
    """Waits for disks that nobody makes."""

    name = "Disks"

    def pre_bind_pre_flight(self, pod, node):
        return SUCCESS if pod.pod.metadata.name.startswith("disk") else SKIP

    def pre_bind(self, pod, node):
        yield WaitFor(ready=lambda: False, timeout_s=600.0, on=(("PersistentVolume", "pv"),))
        return failure("no disk")


def test_a_pod_that_is_deleted_in_pre_bind_is_not_waited_for() -> None:
    play = Play(a_node("n1").allocatable(cpu="1", memory="1Gi", pods="10"), plugins=[Disks])
    first = a_pod("disk").requests(cpu="800m")
    play.see(first)
    assert play.node_of("uid-disk") == "n1"
    play.lose(first)
    assert play.node_of("uid-disk") == ""
    assert play.machine.is_idle


class Slow(PreBindPlugin):
    """Writes something first; its answer takes a while."""

    name = "Slow"

    def pre_bind_pre_flight(self, pod, node):
        return SUCCESS

    def pre_bind(self, pod, node):
        yield Patch(kind=NODE, namespace="", name=node, body={})
        return SUCCESS


@pytest.mark.parametrize("end", ["deleted", "terminating", "elsewhere"])
def test_what_was_seen_last_is_looked_at_before_the_binding_is_sent(end: str) -> None:
    play = Play(a_node("n1"), plugins=[Slow])
    pod = a_pod("web")
    play.see(pod)
    patch = play.the(Patch)
    if end == "deleted":
        play.lose(pod)
    elif end == "terminating":
        play.see(pod.metadata(deletionTimestamp="2026-01-01T00:00:00Z", resourceVersion="2"))
    else:
        play.see(pod.metadata(resourceVersion="2").build().on("n9"))
    play.answer(Done(patch.id))
    assert play.of(Bind) == []
    assert play.machine.is_idle


class Patience(PermitPlugin):
    name = "Patience"

    def permit(self, pod, node):
        return Status(Code.WAIT), 10.0


def test_permit_waits_until_somebody_allows_it() -> None:
    play = Play(a_node("n1"), plugins=[Patience])
    play.see(a_pod("web"))
    nomination = play.the(PatchPodStatus)
    assert nomination.nominated_node_name == "n1"
    assert play.of(Bind) == []
    next(iter(play.machine.context.waiting)).allow("Patience")
    play.turn()
    assert play.the(Bind).node == "n1"


def test_permit_times_out_with_the_reference_s_words() -> None:
    play = Play(a_node("n1"), plugins=[Patience])
    play.see(a_pod("web"))
    play.turn(after_s=10.5)
    message = play.condition()["message"]
    assert message == (
        "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin Patience."
    )
    assert play.machine.is_idle


def test_a_recreated_pod_is_another_pod() -> None:
    """1. A pod is being bound. 2. It is deleted and made anew. 3. The new one is bound by
    itself.
    """
    play = Play(a_node("n1"))
    pod = a_pod("web")
    play.see(pod)
    first = play.the(Bind)
    play.turn(Gone(POD, pod.build()), Seen(POD, a_pod("web").metadata(uid="second").build()))
    second = play.the(Bind)
    assert second.pod.uid == "second"
    play.answer(Refused(first.id, 409, "the UID in the precondition does not match", "Conflict"))
    assert play.of(PatchPodStatus) == []
    play.bound(second)
    assert play.notes() == ["Scheduled: Successfully assigned default/web to n1"]


def test_the_room_of_a_pod_that_is_deleted_while_it_is_bound_wakes_those_who_wait_for_it() -> None:
    play = Play(a_node("n1").allocatable(cpu="1", memory="1Gi", pods="10"))
    first = a_pod("a").requests(cpu="800m")
    play.see(first)
    play.the(Bind)
    play.see(a_pod("b").requests(cpu="800m"))
    play.turn(after_s=5)

    play.lose(first)

    assert play.the(Bind).pod.name == "b"


def test_a_pod_that_is_gone_before_the_watch_showed_its_node_holds_no_room() -> None:
    play = Play(a_node("n1").allocatable(cpu="1", memory="1Gi", pods="10"))
    first = a_pod("a").requests(cpu="800m")
    play.see(first)
    bind = play.the(Bind)
    play.see(a_pod("b").requests(cpu="800m"))
    play.turn(after_s=5)

    play.lose(a_pod("a").requests(cpu="800m").on("n1"))

    assert play.node_of(bind.pod.uid) == ""
    assert play.the(Bind).pod.name == "b"


def test_room_promised_to_a_pod_that_was_placed_elsewhere_is_free_for_others() -> None:
    play = Play(a_node("n1").allocatable(cpu="1", memory="1Gi", pods="10").labels(disk="ssd"))
    waiting = a_pod("a").requests(cpu="800m").priority(10).selects(disk="hdd")
    play.see(waiting.spec(preemptionPolicy="Never").status(nominatedNodeName="n1"))
    play.see(a_pod("b").requests(cpu="800m"))
    assert play.of(Bind) == []
    play.turn(after_s=5)
    taken = a_pod("a").requests(cpu="800m").priority(10).selects(disk="hdd")

    play.see(taken.status(nominatedNodeName="n1").metadata(resourceVersion="2").on("n2"))

    assert play.the(Bind).pod.name == "b"
