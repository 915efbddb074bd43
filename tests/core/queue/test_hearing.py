"""A change that many have to hear of goes through them in slices, and ends as if it had not."""

from collections.abc import Collection, Hashable

from asched.core.framework.points import Concerns, Hint, Registration
from asched.core.model.pod import Pod
from asched.core.queue.due import WAKE_STEPS
from asched.core.queue.queue import MAX_IN_UNSCHEDULABLE_S
from asched.core.state.changes import ASSIGNED_POD_DELETE, Change
from tests.core.queue.waiting import (
    NODE_ADDED,
    Scene,
    a_pod,
    always,
)

MANY = 40


def a_crowd(*registrations: Registration, count: int = MANY) -> Scene:
    """So many pods rest, each a class of its own."""
    one = Scene({"Fit": registrations})
    for number in range(count):
        one.add(a_pod(f"p{number:02d}"))
        one.reject("Fit", now_s=1.0)
    return one


def woken(one: Scene) -> list[str]:
    return one.names().get("active", []) + one.names().get("backoff", [])


def slices(one: Scene, steps: int) -> int:
    """Go on until all have heard; how many slices that took."""
    took = 0
    while one.queue.sliced:
        one.queue.sliced.budget.open(steps)
        one.queue.sliced.go_on()
        assert one.queue.sliced.budget.left > -2 * WAKE_STEPS, "more than one part beyond it"
        took += 1
        assert took < 1_000, "it never ends"
    one.queue.sliced.budget.close()
    return took


def test_a_slice_asks_some_and_all_are_woken_in_the_end_in_the_same_order() -> None:
    at_once, sliced = (a_crowd(Registration(NODE_ADDED, always(Hint.QUEUE))) for _ in range(2))
    at_once.move(NODE_ADDED, 100.0)

    sliced.queue.sliced.budget.open(5)
    moved = sliced.move(NODE_ADDED, 100.0)
    assert moved < MANY
    assert slices(sliced, 5) > 5

    assert woken(sliced) == woken(at_once)
    assert len(woken(sliced)) == MANY


def test_who_goes_meanwhile_is_neither_asked_nor_woken() -> None:
    asked: list[str] = []

    def hint(pod: Pod, _old: object, _new: object) -> Hint:
        asked.append(pod.metadata.name)
        return Hint.QUEUE

    one = a_crowd(Registration(NODE_ADDED, hint))
    one.queue.sliced.budget.open(5)
    one.move(NODE_ADDED, 100.0)
    assert "p00" in asked, "asked, and not woken yet"
    assert "p39" not in asked
    for name in ("p00", "p39"):
        one.queue.delete(one.api[f"default/{name}"])
    slices(one, 5)

    assert "p39" not in asked
    assert woken(one) == [f"p{number:02d}" for number in range(1, MANY - 1)]


def test_an_index_is_made_in_slices_and_tells_the_same() -> None:
    def sought(pod: Pod) -> Collection[Hashable]:
        return (pod.metadata.name,)

    asked: list[str] = []

    def hint(pod: Pod, _old: object, _new: object) -> Hint:
        asked.append(pod.metadata.name)
        return Hint.QUEUE

    concerns = Concerns(sought, lambda _old, _new: ("p07", "p39"))
    one = a_crowd(Registration(NODE_ADDED, hint, concerns))
    one.queue.sliced.budget.open(5)
    one.move(NODE_ADDED, 100.0)
    assert not asked, "the index takes several slices"
    one.queue.delete(one.api["default/p39"])
    assert slices(one, 5) > 2

    assert asked == woken(one) == ["p07"]


def test_changes_are_heard_one_after_the_other() -> None:
    heard: list[float] = []

    def hint(_pod: Pod, _old: object, new: object) -> Hint:
        heard.append(id(new))
        return Hint.SKIP

    one = a_crowd(Registration(NODE_ADDED, hint))
    one.queue.sliced.budget.open(5)
    one.move(NODE_ADDED, 100.0)
    one.move(NODE_ADDED, 100.0)
    slices(one, 5)

    assert len(heard) == 2 * MANY
    assert len(set(heard[:MANY])) == len(set(heard[MANY:])) == 1


def test_those_who_waited_too_long_move_in_slices() -> None:
    one = a_crowd()
    late_s = 10.0 + MAX_IN_UNSCHEDULABLE_S
    one.queue.sliced.budget.open(5)
    one.queue.flush_unschedulable(late_s)
    assert 0 < len(woken(one)) < MANY
    for name in ("p20", "p39"):
        one.queue.delete(one.api[f"default/{name}"])
    assert slices(one, 5) > 5

    assert len(woken(one)) == MANY - 2
    assert one.witness.entered["active", "UnschedulableTimeout"] == MANY - 2
    assert "unschedulable" not in one.names()


def test_those_who_are_always_asked_are_asked_of_what_offers_nothing() -> None:
    """One that seeks what no key tells comes to those that seek keys."""

    def sought(pod: Pod) -> Collection[Hashable] | None:
        return ("device",) if pod.metadata.name.startswith("p") else None

    hears = Registration(
        ASSIGNED_POD_DELETE, always(Hint.QUEUE), Concerns(sought, lambda _old, _new: ())
    )
    one = a_crowd(hears, count=3)
    gone = Change(ASSIGNED_POD_DELETE, a_pod("left", node="node"), None)
    one.queue.move(gone, 100.0)
    assert not woken(one)

    one.add(a_pod("any"))
    one.reject("Fit", now_s=1.0)
    one.queue.move(gone, 100.0)
    assert woken(one) == ["any"]
