"""The queue, history by history; `test_twin.py` walks it at random beside a plain reading."""

from asched.core.framework.registrations import Hint, Registration
from asched.core.model.pod import Pod
from asched.core.queue.in_flight import CHANGES_MAX
from tests.unit.core.queue.waiting import (
    NODE_ADDED,
    POD_RELABELLED,
    VOLUME_ADDED,
    Gate,
    Scene,
    a_pod,
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

    assert scene.names() == {"error_backoff": ["web"]}
    assert scene.queue.pop(1.3) is None
    scene.queue.flush_backoff(2.9)
    assert scene.names() == {"error_backoff": ["web"]}
    scene.queue.flush_backoff(3.0)
    assert scene.names() == {"active": ["web"]}


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


def test_a_pod_in_flight_is_not_handed_out_twice() -> None:
    scene = Scene()
    scene.add(a_pod("web"))
    scene.pop()
    scene.add(a_pod("web"))

    assert scene.queue.pop(1.0) is None
    assert "tracked in multiple places" in scene.witness.complaints[0]


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


# --- backoff that is never cut short --------------------------------------------------------------


# --- timers ---------------------------------------------------------------------------------------
