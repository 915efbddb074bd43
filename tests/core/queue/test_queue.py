"""The queue, history by history; `test_twin.py` walks it at random beside a plain reading."""

import pytest

from asched.core.framework.points import Hint, Registration
from asched.core.model.pod import Pod
from asched.core.queue.backoff import BackoffTimes
from asched.core.queue.gangs import Gangs
from asched.core.queue.inflight import CHANGES_MAX
from asched.core.queue.queue import MAX_IN_UNSCHEDULABLE_S, UNSCHEDULABLE_FLUSH_EVERY_S
from asched.core.queue.queued import QueuedPod
from asched.core.state.changes import ASSIGNED_POD_DELETE, Change
from tests.core.queue.waiting import (
    NODE_ADDED,
    NODE_LABEL,
    POD_RELABELLED,
    VOLUME_ADDED,
    Gate,
    Scene,
    a_pod,
    always,
)

FIT = {"Fit": [Registration(NODE_ADDED)], "Ports": [Registration(VOLUME_ADDED)]}


def test_higher_priority_goes_first_then_who_came_first() -> None:
    scene = Scene()
    scene.add(a_pod("a"), a_pod("b", priority=5), a_pod("c"), a_pod("d", priority=5))

    assert [scene.pop().pod.metadata.name for _ in range(4)] == ["b", "d", "a", "c"]
    assert scene.queue.pop(1.0) is None


def test_a_rejected_pod_rests_until_its_rejector_hears_of_help() -> None:
    scene = Scene(FIT)
    scene.add(a_pod("web"))
    scene.reject("Fit", now_s=1.2)

    assert scene.move(VOLUME_ADDED, now_s=1.3) == 0
    assert scene.names() == {"unschedulable": ["web"]}
    assert scene.move(NODE_ADDED, now_s=1.4) == 1
    assert scene.names() == {"backoff": ["web"]}
    assert scene.witness.entered["backoff", "NodeAdd"] == 1


def test_after_its_pause_it_goes_straight_to_active() -> None:
    scene = Scene(FIT)
    scene.add(a_pod("web"))
    scene.reject("Fit", now_s=1.2)

    scene.move(NODE_ADDED, now_s=3.0)

    assert scene.names() == {"active": ["web"]}


def test_a_pending_rejector_cuts_the_pause() -> None:
    scene = Scene(FIT)
    scene.add(a_pod("web"))
    scene.reject(pending=["Fit"], now_s=1.2)

    scene.move(NODE_ADDED, now_s=1.3)

    assert scene.names() == {"active": ["web"]}


def test_a_change_during_the_attempt_is_made_up_for() -> None:
    scene = Scene(FIT)
    scene.add(a_pod("web"))
    queued = scene.pop(1.0)
    scene.move(NODE_ADDED, now_s=1.1)

    scene.fail(queued, "Fit", now_s=1.2)

    assert scene.names() == {"backoff": ["web"]}
    assert len(scene.queue.in_flight) == 0


def test_an_error_goes_to_the_part_of_backoff_that_is_never_taken_early() -> None:
    scene = Scene(FIT)
    scene.add(a_pod("web"))
    scene.reject(now_s=1.2)

    assert scene.names() == {"errors": ["web"]}
    assert scene.queue.pop(1.3) is None
    scene.queue.flush_backoff(2.9)
    assert scene.names() == {"errors": ["web"]}
    scene.queue.flush_backoff(3.0)
    assert scene.names() == {"active": ["web"]}


def test_a_rejected_pod_in_backoff_is_taken_when_nothing_is_active() -> None:
    scene = Scene(FIT)
    scene.add(a_pod("web"))
    scene.reject("Fit", now_s=1.2)
    scene.move(NODE_ADDED, now_s=1.3)

    assert scene.pop(1.4).attempts == 2
    assert scene.witness.entered["active", "PopFromBackoffQ"] == 1


def test_a_pod_whose_attempt_is_done_counts_as_helped() -> None:
    scene = Scene(FIT)
    scene.add(a_pod("web"))
    queued = scene.pop()
    scene.queue.done(queued.pod.uid)

    scene.fail(queued, "Fit", now_s=1.0)

    assert scene.names() == {"backoff": ["web"]}


def test_gated_pods_wait_apart_and_enter_when_the_gate_falls() -> None:
    registrations = {"Gate": [Registration(POD_RELABELLED)], **FIT}
    scene = Scene(registrations, gates=[Gate("Gate")])
    scene.add(a_pod("web", gates=["Gate"]))

    assert scene.names() == {"gated": ["web"]}
    scene.queue.flush_unschedulable(1000.0)
    scene.queue.activate([scene.api["default/web"]], 1000.0)
    assert scene.names() == {"gated": ["web"]}
    scene.update(a_pod("web", labels={"now": "free"}), 1001.0)
    assert scene.names() == {"active": ["web"]}
    assert scene.pop(1002.0).initial_attempt_s == 1001.0


def test_time_alone_frees_a_pod_that_rested_too_long() -> None:
    scene = Scene(FIT)
    scene.add(a_pod("old"), a_pod("young"))
    scene.reject("Ports", now_s=1.0)
    scene.reject("Ports", now_s=2.0)

    scene.queue.flush_unschedulable(301.5)

    assert scene.names() == {"active": ["old"], "unschedulable": ["young"]}
    flushed = scene.pop(302.0)
    assert flushed.was_flushed
    scene.fail(flushed, "Ports", now_s=302.0)
    assert not flushed.was_flushed


def test_activation_skips_backoff_and_reaches_pods_in_flight() -> None:
    scene = Scene(FIT)
    unschedulable, flying = a_pod("unschedulable"), a_pod("flying")
    scene.add(unschedulable, flying)
    scene.reject("Ports", now_s=1.0)
    queued = scene.pop(1.0)

    scene.queue.activate([a_pod("stranger"), flying, unschedulable], 1.1)
    assert scene.names() == {"active": ["unschedulable"]}
    scene.fail(queued, "Ports", now_s=1.2)

    assert scene.names() == {"active": ["unschedulable"], "backoff": ["flying"]}


def test_an_update_replaces_the_pod_where_it_stands() -> None:
    scene = Scene(FIT)
    scene.add(a_pod("a"), a_pod("b"))

    scene.update(a_pod("b", priority=9), 1.0)
    assert scene.names() == {"active": ["b", "a"]}
    scene.reject("Fit", now_s=1.0)
    scene.update(a_pod("b", priority=1), 1.1)

    queued = scene.queue.places.get("default/b")
    assert queued is not None
    assert queued.pod.priority == 1
    assert scene.names() == {"active": ["a"], "unschedulable": ["b"]}


def test_an_update_can_wake_the_pod_itself() -> None:
    scene = Scene({"Fit": [Registration(POD_RELABELLED)]})
    scene.add(a_pod("web"))
    scene.reject("Fit", now_s=1.0)

    scene.update(a_pod("web", priority=2), 1.1)
    assert scene.names() == {"unschedulable": ["web"]}
    scene.update(a_pod("web", priority=2, labels={"a": "b"}), 1.2)
    assert scene.names() == {"backoff": ["web"]}


def test_an_update_in_flight_counts_when_the_pod_returns() -> None:
    scene = Scene({"Fit": [Registration(POD_RELABELLED)]})
    scene.add(a_pod("web"))
    queued = scene.pop(1.0)

    scene.update(a_pod("web", labels={"a": "b"}), 1.1)
    assert queued.pod.labels == {}
    scene.fail(queued, "Fit", now_s=1.2)

    assert queued.pod.labels == {"a": "b"}
    assert scene.names() == {"backoff": ["web"]}


def test_an_update_of_an_unknown_pod_enters_it() -> None:
    scene = Scene()
    pod = a_pod("web", nominated="n1")
    scene.api[pod.key] = pod

    scene.update(pod)

    assert scene.names() == {"active": ["web"]}
    assert scene.witness.entered == {("active", "UnschedulablePodUpdate"): 1}
    assert scene.queue.nominator.node_of(pod.uid) == "n1"


def test_deleted_pods_leave_every_place_and_every_count() -> None:
    scene = Scene(FIT)
    scene.add(a_pod("active"), a_pod("unschedulable", priority=9), a_pod("errored", priority=8))
    scene.reject("Fit", "Ports", now_s=1.0)
    scene.reject(now_s=1.0)
    assert scene.queue.places.pending() == (1, 1, 1, 0)

    for pod in scene.api.values():
        scene.queue.delete(pod)

    assert len(scene.queue.places) == 0
    assert +scene.witness.waiting_for == {}


def test_only_pods_of_at_most_the_priority_hear() -> None:
    scene = Scene(FIT)
    scene.add(a_pod("low", priority=1), a_pod("equal", priority=5), a_pod("high", priority=9))
    for _ in range(3):
        scene.reject("Fit", now_s=1.0)

    scene.move(NODE_ADDED, now_s=5.0, priority_at_most=5)

    assert scene.names() == {"active": ["equal", "low"], "unschedulable": ["high"]}


def test_a_pod_can_be_kept_from_hearing() -> None:
    scene = Scene(FIT, class_key_of=lambda _: "same")
    scene.add(a_pod("self"), a_pod("other"))
    for _ in range(2):
        scene.reject("Fit", now_s=1.0)

    scene.move(NODE_ADDED, now_s=5.0, except_uid="uid-self")

    assert scene.names() == {"active": ["other"], "unschedulable": ["self"]}


def test_equal_pods_are_judged_once() -> None:
    asked: list[str] = []

    def hint(pod: Pod, old: object, new: object) -> Hint:
        asked.append(pod.key)
        return Hint.SKIP

    scene = Scene({"Fit": [Registration(NODE_LABEL, hint)]}, class_key_of=lambda p: p.priority)
    scene.add(*(a_pod(f"p{number}", priority=number % 2) for number in range(10)))
    for _ in range(10):
        scene.reject("Fit", now_s=1.0)

    scene.move(NODE_LABEL, now_s=5.0)

    assert len(asked) == 2


def test_changes_nobody_registered_for_are_not_even_kept() -> None:
    scene = Scene({"Fit": [Registration(NODE_LABEL, always(Hint.QUEUE))]})
    scene.add(a_pod("web"))
    scene.pop()

    scene.queue.move(Change(ASSIGNED_POD_DELETE), 1.0)
    assert scene.queue.in_flight.counts == {"PodPopped": 1}
    scene.move(NODE_LABEL, now_s=1.0)
    assert scene.queue.in_flight.counts == {"PodPopped": 1, "NodeUpdateNodeLabel": 1}


def test_a_pod_in_flight_is_not_handed_out_twice() -> None:
    scene = Scene()
    scene.add(a_pod("web"))
    scene.pop()
    scene.add(a_pod("web"))

    assert scene.queue.pop(1.0) is None
    assert "tracked in multiple places" in scene.witness.complaints[0]


def test_a_pod_that_is_queued_already_is_not_returned() -> None:
    scene = Scene()
    scene.add(a_pod("web"))
    queued = scene.pop()
    scene.add(a_pod("web", uid="successor"))

    scene.fail(queued, "Fit", now_s=1.0)

    assert scene.witness.complaints == ["Pod default/web is already present in the active queue"]
    assert len(scene.queue.in_flight) == 0


def test_adding_a_queued_pod_again_keeps_one_record() -> None:
    scene = Scene(FIT)
    scene.add(a_pod("web"))
    scene.reject("Fit", now_s=1.0)

    scene.add(a_pod("web", uid="successor"))

    assert scene.names() == {"active": ["web"]}
    assert +scene.witness.waiting_for == {}


@pytest.mark.parametrize(
    ("seconds", "place"), [(2.9, "backoff"), (3.0, "active"), (500.0, "active")]
)
def test_ticks_run_what_is_due(seconds: float, place: str) -> None:
    scene = Scene(FIT, backoff=BackoffTimes(1, 10))
    scene.add(a_pod("web"))
    scene.queue.tick(0.0)
    assert scene.queue.next_deadline_s() is None
    scene.reject("Fit", now_s=1.2)
    assert scene.queue.next_deadline_s() == 30.0
    scene.move(NODE_ADDED, now_s=1.3)
    assert scene.queue.next_deadline_s() == 3.0

    scene.queue.tick(seconds)

    assert scene.names() == {place: ["web"]}


def test_ticks_look_through_the_rest_every_half_minute() -> None:
    scene = Scene(FIT)
    scene.add(a_pod("web"))
    scene.queue.tick(0.0)
    scene.reject("Fit", now_s=1.0)

    deadlines = []
    while scene.queue.places.pending().active == 0:
        deadline_s = scene.queue.next_deadline_s()
        assert deadline_s is not None
        deadlines.append(deadline_s)
        scene.queue.tick(deadline_s)

    assert deadlines == [30.0 * number for number in range(1, 12)]


def test_pods_that_come_back_together_after_many_changes_are_judged_in_linear_time() -> None:
    asked = 0

    def skip(pod: Pod, old: object, new: object) -> Hint:
        nonlocal asked
        asked += 1
        return Hint.SKIP

    one = Scene({"Fit": [Registration(NODE_ADDED, skip)]})
    pods = [a_pod(f"p{number}") for number in range(100)]
    one.add(*pods)
    flying = [one.pop(1.0) for _ in pods]
    for _ in range(2000):
        one.move(NODE_ADDED, now_s=1.0)

    for queued in flying:
        one.fail(queued, "Fit", now_s=2.0)

    assert asked <= len(pods) * CHANGES_MAX
    assert len(one.names()["backoff"]) == len(pods), "who knows whether one would have helped"


# --- what is remembered of a pod ------------------------------------------------------------------


def test_a_nomination_follows_the_versions_of_its_pod_and_ends_with_it() -> None:
    one = Scene()
    one.add(a_pod("a", nominated="n1"))
    nominator = one.queue.nominator
    assert nominator.node_of("uid-a") == "n1"

    one.update(a_pod("a", version=2, nominated="n2"), 1.0)
    assert nominator.node_of("uid-a") == "n2"
    one.queue.delete(one.api["default/a"])
    assert nominator.node_of("uid-a") is None


def test_only_who_arrives_brings_the_nomination_of_its_status_along() -> None:
    """One that was taken back stays so, though the API has not heard of it."""
    one = Scene({"Fit": [Registration(NODE_ADDED)]})
    one.add(a_pod("a", nominated="n1"))
    queued = one.reject("Fit", now_s=1.0)
    one.queue.nominator.add(queued.pod, "")

    for now_s in (1.5, 20.0):
        one.move(NODE_ADDED, now_s=now_s)
        one.queue.flush_backoff(now_s)
        one.queue.activate([queued.pod], now_s)
        assert one.queue.nominator.node_of("uid-a") is None


def test_a_mate_is_the_very_pod_and_not_one_behind_a_gate() -> None:
    one = Scene(gates=[Gate("Gate")])
    one.add(a_pod("first"), a_pod("here"), a_pod("gated", gates=["Gate"]))
    popped = one.pop()

    def mate(pod: Pod) -> QueuedPod | None:
        return one.queue.pop_mate(pod, popped, 1.0)

    assert mate(a_pod("here", uid="another")) is None
    assert mate(a_pod("gated")) is None
    assert one.names() == {"active": ["here"], "gated": ["gated"]}
    assert mate(a_pod("here")) is not None
    assert mate(a_pod("here")) is None


def test_what_becomes_of_a_pod_in_flight_counts_when_it_returns() -> None:
    one = Scene(
        {"Fit": [Registration(NODE_ADDED)]},
        class_key_of=lambda pod: str(pod.labels),
        gangs=Gangs(tries_groups=True),
    )
    one.add(a_pod("a"))
    queued = one.pop()
    new = a_pod("a", version=2, labels={"x": "y"}, group="crew")
    one.update(new, 1.0)
    one.fail(queued, "Fit", now_s=1.0)

    assert (queued.pod, queued.class_key, queued.gang) == (new, str(new.labels), "default/crew")


def test_the_first_attempt_is_counted_from_when_the_pod_first_became_active() -> None:
    heard = [Registration(NODE_ADDED)]
    one = Scene({"Fit": heard, "Gate": heard}, gates=[Gate("Gate")])
    one.add(a_pod("a", gates=["Gate"]), now_s=1.0)
    one.update(a_pod("a", version=2), 4.0)
    one.move(NODE_ADDED, now_s=5.0)
    queued = one.reject("Fit", now_s=6.0)
    assert queued.initial_attempt_s == 5.0
    one.move(NODE_ADDED, now_s=30.0)
    again = one.pop(30.0)
    assert (again.initial_attempt_s, again.attempts, again.woken_by) == (5.0, 2, NODE_ADDED.label)
    assert again.backoff_until_s is None


def test_who_is_active_already_is_not_made_so_again() -> None:
    one = Scene()
    one.add(a_pod("a"))
    one.queue.activate([a_pod("a")], 1.0)
    assert one.witness.entered == {("active", "UnschedulablePodAdd"): 1}


# --- backoff that is never cut short --------------------------------------------------------------


@pytest.mark.parametrize("why", ["patient", "group", "error", "none"])
def test_some_are_not_taken_early_though_nobody_else_is_there(why: str) -> None:
    one = Scene({"Fit": [Registration(NODE_ADDED)]}, gangs=Gangs(tries_groups=True))
    one.add(a_pod("a", **({"group": "crew"} if why == "group" else {})))
    queued = one.pop()
    rejectors = () if why == "error" else ("Fit",)
    one.queue.return_failed(queued, queued.pod, rejectors, (), 1.0, is_patient=why == "patient")
    one.move(NODE_ADDED, now_s=1.5)

    place = "backoff" if why == "none" else "errors"
    assert one.names() == {place: ["a"]}
    assert one.queue.next_deadline_s() == 3.0, "the second after the one in which it ends"
    assert (one.queue.pop(1.6) is not None) is (why == "none")


# --- timers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch_s", [0.0, 1.7e9])
def test_whoever_rests_for_longer_than_allowed_is_tried_and_nobody_after_just_as_long(
    epoch_s: float,
) -> None:
    for number in range(50):
        since_s = epoch_s + number / 7
        one = Scene({"Fit": []})
        one.add(a_pod("a"))
        one.reject("Fit", now_s=since_s)
        one.queue.flush_unschedulable(since_s + MAX_IN_UNSCHEDULABLE_S)
        assert one.names() == {"unschedulable": ["a"]}, since_s
        one.queue.flush_unschedulable(since_s + MAX_IN_UNSCHEDULABLE_S + 1e-5)
        assert one.names() == {"active": ["a"]}, since_s


def test_the_rest_is_gone_through_half_a_minute_after_it_was() -> None:
    """Not after it should have been: a late one would be followed by another at once."""
    one = Scene({"Fit": []})
    one.add(a_pod("a"))
    one.reject("Fit", now_s=1.0)
    for now_s in (1.0, 31.0, 95.0):
        one.queue.tick(now_s)
        assert one.queue.next_deadline_s() == now_s + UNSCHEDULABLE_FLUSH_EVERY_S


def test_who_is_in_flight_hears_that_others_rested_too_long() -> None:
    """As upstream, where it is an event like any other."""
    one = Scene({"Fit": []})
    one.add(a_pod("rests"))
    one.reject("Fit", now_s=1.0)
    one.add(a_pod("flies"), now_s=2.0)
    flying = one.pop(2.0)
    one.queue.flush_unschedulable(500.0)

    one.fail(flying, "Fit", now_s=501.0)

    assert one.names() == {"active": ["rests"], "backoff": ["flies"]}


@pytest.mark.parametrize("is_promised", [False, True])
def test_who_gave_the_room_back_is_not_woken_by_it(is_promised: bool) -> None:
    one = Scene({"Fit": [Registration(NODE_ADDED)]}, class_key_of=lambda _: 1)
    one.add(a_pod("a"), a_pod("b"))
    for _ in range(2):
        queued = one.pop(1.0)
        one.queue.return_failed(queued, queued.pod, ("Fit",), (), 1.0, is_promised=is_promised)
    assert one.move(NODE_ADDED, now_s=20.0, except_uid="uid-a") == 1
    assert one.names() == {"active": ["b"], "unschedulable": ["a"]}
