"""What the queue counts, hands on and remembers, beside where each pod stands."""

from collections.abc import Callable
from typing import Any

import pytest

from asched.core.framework.points import Hint, Registration
from asched.core.model.pod import Pod
from asched.core.queue.backoff import Backoff
from asched.core.queue.gangs import Gangs
from asched.core.queue.looking import Verdict
from asched.core.queue.profile import QueueProfile
from asched.core.queue.round import unknown_room
from asched.core.state.changes import Action, Change, Trigger
from tests.core.queue.waiting import (
    NODE_ADDED,
    NODE_LABEL,
    POD_RELABELLED,
    PROFILE,
    VOLUME_ADDED,
    Gate,
    Scene,
    a_node,
    a_pod,
    by_priority,
)

GATES_GONE = Trigger("Pod", Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
HEARS = {"Fit": [Registration(NODE_ADDED)]}


@pytest.mark.parametrize("flies", [False, True])
def test_a_hint_is_told_the_version_before_and_the_one_after(flies: bool) -> None:
    told: list[tuple[str, str]] = []

    def hint(_pod: Pod, old: Any, new: Any) -> Hint:
        told.append((old.metadata.resource_version, new.metadata.resource_version))
        return Hint.QUEUE

    one = Scene({"Fit": [Registration(GATES_GONE, hint)]})
    one.add(a_pod("a", gates=["of another profile"]))
    queued = one.pop(1.0)
    if not flies:
        one.fail(queued, "Fit", now_s=1.1)
    one.update(a_pod("a", version=2), 1.2)
    if flies:
        one.fail(queued, "Fit", now_s=1.3)

    assert told == [("1", "2")]
    assert one.names() == {"backoff": ["a"]}


# --- what is counted ------------------------------------------------------------------------------


def activated(one: Scene) -> None:
    one.reject("Fit", now_s=1.0)
    one.queue.activate([one.api["default/a"]], 1.1)


def brought_along(one: Scene) -> None:
    one.reject("Fit", now_s=1.0)
    one.add(a_pod("b"), now_s=1.1)
    assert one.queue.pop_mate(one.api["default/a"], one.pop(1.1), 1.2) is not None
    assert one.names() == {}


def tried_again(one: Scene) -> None:
    queued = one.reject("Fit", now_s=1.0)
    one.queue.places.leave(queued)
    one.queue.try_again(queued, 1.1)


def paused(one: Scene) -> None:
    one.reject(now_s=1.0)
    one.queue.flush_backoff(4.0)


def regated(one: Scene) -> None:
    """It rests on: nobody comes in."""
    one.reject("Fit", now_s=1.0)
    one.update(a_pod("a", version=2, gates=["Gates"]), 1.1)
    for now_s in (1.2, 1.3):
        one.move(NODE_ADDED, now_s=now_s)


ARRIVED = ("active", "UnschedulablePodAdd")
FAILED = ("unschedulable", "ScheduleAttemptFailure")
FORCED = ("active", "ForceActivate")


@pytest.mark.parametrize(
    ("history", "entered"),
    [
        (activated, {ARRIVED: 1, FAILED: 1, FORCED: 1}),
        (brought_along, {ARRIVED: 2, FAILED: 1, FORCED: 1}),
        (tried_again, {ARRIVED: 1, FAILED: 1, FORCED: 1}),
        (
            paused,
            {ARRIVED: 1, ("backoff", FAILED[1]): 1, ("active", "BackoffComplete"): 1},
        ),
        (regated, {ARRIVED: 1, FAILED: 1}),
    ],
)
def test_each_way_into_a_queue_is_counted_by_its_name(
    history: Callable[[Scene], None], entered: dict[tuple[str, str], int]
) -> None:
    one = Scene(HEARS, gates=[Gate("Gates")])
    one.add(a_pod("a"))
    history(one)
    assert one.witness.entered == entered


def test_who_becomes_another_while_it_is_due_backs_off_as_after_any_update() -> None:
    class Full:
        def __call__(self, _queued: object) -> Verdict:
            return Verdict(frozenset({"Fit"}), is_of_class=True)

        def may_help(self, _queued: object, _left: str) -> bool:
            return True

        room_left = staticmethod(unknown_room)

    one = Scene(HEARS, class_key_of=lambda pod: str(pod.labels), look=Full())
    one.add(a_pod("a"))
    queued = one.reject("Fit", now_s=1.0)
    one.move(NODE_ADDED, now_s=1.1)
    one.update(a_pod("a", version=2, labels={"app": "web"}), 1.2)

    assert one.names() == {"backoff": ["a"]}
    assert one.witness.entered["backoff", "UnschedulablePodUpdate"] == 1
    assert queued.woken_by == "UnschedulablePodUpdate"


def test_gates_are_asked_once_when_a_pod_is_tried_again() -> None:
    gate = Gate("Gates")
    one = Scene(HEARS, gates=[gate])
    one.add(a_pod("a"))
    queued = one.reject("Fit", now_s=1.0)
    one.queue.places.leave(queued)
    gate.asked.clear()
    one.queue.try_again(queued, 1.1)
    assert gate.asked == ["default/a"]


# --- what is remembered ---------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["active", "backoff", "errors", "unschedulable", "gated"])
def test_whoever_is_added_again_stands_once_wherever_it_stood(place: str) -> None:
    one = Scene(HEARS, gates=[Gate("Gates")])
    one.add(a_pod("a", gates=["Gates"] if place == "gated" else []))
    if place in {"backoff", "errors", "unschedulable"}:
        one.reject(*([] if place == "errors" else ["Fit"]), now_s=1.0)
    if place == "backoff":
        one.move(NODE_ADDED, now_s=1.1)
    assert one.names() == {place: ["a"]}

    one.add(a_pod("a", uid="successor"), now_s=1.2)

    assert one.move(NODE_ADDED, now_s=20.0) == 0
    one.queue.tick(1000.0)
    assert one.pop(1000.0).pod.uid == "successor"
    assert one.queue.pop(1000.0) is None
    assert not any(one.witness.waiting_for.values())
    assert not one.witness.complaints


def test_of_pods_of_one_time_who_arrived_first_goes_first() -> None:
    one = Scene(HEARS)
    one.queue.add(a_pod("a"), 0.0)
    one.queue.add(a_pod("b"), 0.0)
    one.api |= {pod.key: pod for pod in (a_pod("a"), a_pod("b"))}
    for _ in "ab":
        one.reject("Fit", now_s=1.0)
    for name in "ba":
        one.queue.activate([one.api[f"default/{name}"]], 1.1)
    assert one.names() == {"active": ["a", "b"]}


def test_equals_behind_a_gate_are_judged_once() -> None:
    asked: list[str] = []

    def hint(pod: Pod, _old: object, _new: object) -> Hint:
        asked.append(pod.metadata.name)
        return Hint.SKIP

    gates = {"Gates": [Registration(NODE_LABEL, hint)]}
    one = Scene(gates, gates=[Gate("Gates")], class_key_of=lambda _: "all")
    one.add(a_pod("a", gates=["Gates"]), a_pod("b", gates=["Gates"]))
    one.move(NODE_LABEL, now_s=1.0)
    assert asked == ["a"]


@pytest.mark.parametrize("flies", [False, True])
def test_who_is_blamed_when_a_pod_is_looked_at_for_its_own_change_is_heard_from_then_on(
    flies: bool,
) -> None:
    one = Scene()
    profile = QueueProfile(
        by_priority,
        {"Fit": [], "Ports": [Registration(VOLUME_ADDED)]},
        extra_events={"Fit": [Registration(POD_RELABELLED)]},
        blame=lambda _pod, _left: frozenset({"Ports"}),
    )
    one.queue.learn({PROFILE: profile}, Backoff(1, 10))
    one.add(a_pod("a"))
    queued = one.pop(1.0)
    if not flies:
        one.fail(queued, "Fit", now_s=1.1)
    one.update(a_pod("a", version=2, labels={"app": "web"}), 1.2)
    if flies:
        one.fail(queued, "Fit", now_s=1.3)

    (group,) = one.queue.places.unschedulable.groups()
    assert (queued.also_blamed, group.key.also_blamed) == ({"Ports"}, {"Ports"})


@pytest.mark.parametrize(
    ("gangs", "is_promised", "place"),
    [
        (Gangs(tries_groups=True), False, "unschedulable"),
        (Gangs(tries_groups=True), True, "errors"),
        (Gangs(tries_groups=True, tries_placements=True), False, "errors"),
        (Gangs(), True, "unschedulable"),
    ],
)
def test_time_alone_brings_back_a_gang_tried_in_placements_or_waiting_for_victims(
    gangs: Gangs, is_promised: bool, place: str
) -> None:
    one = Scene(HEARS, gangs=gangs)
    one.add(a_pod("a", group="crew"))
    queued = one.pop(1.0)
    one.queue.return_failed(queued, queued.pod, ("Fit",), (), 1.0, is_promised=is_promised)
    assert one.names() == {place: ["a"]}


# --- who hears ------------------------------------------------------------------------------------


@pytest.mark.parametrize("flies", [False, True])
@pytest.mark.parametrize("rests", [False, True])
def test_a_queue_is_deaf_where_nobody_rests_and_nobody_is_tried(rests: bool, flies: bool) -> None:
    one = Scene(HEARS)
    one.add(a_pod("active"))
    if rests:
        one.reject("Fit", now_s=1.0)
        one.add(a_pod("another"))
    if flies:
        one.pop(1.0)
    assert one.queue.is_deaf == (not rests and not flies)


@pytest.mark.parametrize("trigger", [NODE_ADDED, VOLUME_ADDED])
def test_a_change_moves_nobody_where_nobody_rests_who_hears_of_it(trigger: Trigger) -> None:
    one = Scene(HEARS)
    change = Change(trigger, None, a_node("n"))
    assert one.queue.move(change, 1.0) == 0
    one.add(a_pod("a"))
    one.pop(1.0)
    assert one.queue.move(change, 1.0) == 0


def test_who_is_in_flight_hears_of_no_timeout_where_nobody_rested_too_long() -> None:
    one = Scene({"Fit": []})
    one.add(a_pod("a"), a_pod("b"))
    one.reject("Fit", now_s=1.0)
    queued = one.pop(1.0)
    one.queue.flush_unschedulable(2.0)
    one.fail(queued, "Fit", now_s=3.0)
    assert one.names() == {"unschedulable": ["a", "b"]}


def test_the_rest_is_gone_through_at_once_where_that_was_never_done() -> None:
    one = Scene({"Fit": []})
    one.add(a_pod("a"))
    one.reject("Fit", now_s=7.0)
    deadline_s = one.queue.next_deadline_s()
    assert deadline_s is not None
    assert deadline_s <= 7.0
