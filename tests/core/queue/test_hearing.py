"""A change that many have to hear of goes through them in slices, and ends as if it had not."""

from collections.abc import Collection, Hashable, Iterator

import pytest

from asched.core.framework.expecting import Expecting
from asched.core.framework.points import Concerns, Hint, Registration
from asched.core.model.pod import Pod
from asched.core.queue import hearing
from asched.core.queue import queue as queue_
from asched.core.queue.backoff import Backoff
from asched.core.queue.due import WAKE_STEPS
from asched.core.queue.gangs import Gangs
from asched.core.queue.gates import Gates
from asched.core.queue.hints import Heard, Judge
from asched.core.queue.profile import QueueProfile
from asched.core.queue.queue import MAX_IN_UNSCHEDULABLE_S
from asched.core.queue.unschedulable import GroupKey
from asched.core.state.changes import ASSIGNED_POD_DELETE, Change, Trigger
from tests.core.queue.waiting import (
    NODE_ADDED,
    NODE_LABEL,
    PROFILE,
    VOLUME_ADDED,
    Gate,
    Scene,
    a_pod,
    always,
    by_priority,
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


@pytest.fixture(name="looked_at")
def overlooked_by_one_of_many() -> Scene:
    """All are of a class, and one look has told of all who stands against them: Ports."""
    one = Scene(class_key_of=lambda _: "all")
    blamed = [frozenset({"Ports"}), None]
    profile = QueueProfile(
        by_priority,
        {"Fit": [], "Ports": [Registration(VOLUME_ADDED)]},
        extra_events={"Fit": [Registration(NODE_LABEL)]},
        blame=lambda _pod, _left: blamed.pop(0),
    )
    one.queue.learn({PROFILE: profile}, Backoff(1, 10))
    for number in range(MANY):
        one.add(a_pod(f"p{number:02d}"))
        one.reject("Fit", now_s=1.0)
    one.queue.sliced.budget.open(1)
    assert one.move(NODE_LABEL, now_s=100.0) == 0
    assert one.queue.sliced
    return one


def test_all_of_a_class_take_note_of_a_look_in_slices(looked_at: Scene) -> None:
    assert slices(looked_at, 5) >= MANY / 5
    assert {queued.also_blamed for queued in looked_at.queue.places.all()} == {frozenset({"Ports"})}


def test_a_change_that_concerns_nobody_yet_waits_for_those_who_are_still_to_hear_of_another(
    looked_at: Scene,
) -> None:
    looked_at.move(VOLUME_ADDED, now_s=100.0)
    slices(looked_at, 20)
    assert len(woken(looked_at)) == MANY


def test_of_those_whose_backoff_ends_so_many_move_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_, "FLUSHED_AT_ONCE", 15)
    one = a_crowd(Registration(NODE_ADDED, always(Hint.QUEUE)))
    one.move(NODE_ADDED, 1.5)
    assert len(one.names()["backoff"]) == MANY
    left = []
    while "backoff" in one.names():
        one.queue.flush_backoff(50.0)
        left.append(len(one.names().get("backoff", [])))
    assert left == [MANY - 15, MANY - 30, 0]


def test_a_change_that_nobody_at_rest_hears_of_costs_one_look_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many groups rest, and however often such a change comes."""
    names = [f"Plugin{i}" for i in range(20)]
    hears = Registration(NODE_ADDED, always(Hint.QUEUE))
    one = Scene({**dict.fromkeys(names, ()), "Late": (hears,)})
    for number, name in enumerate(names):
        one.add(a_pod(f"p{number}"))
        one.reject(name, now_s=1.0)
    asked: list[str] = []
    heard_by = Judge.heard

    def counted(self: Judge, group: GroupKey, trigger: Trigger) -> Heard:
        asked.append(min(group.rejected_by))
        return heard_by(self, group, trigger)

    monkeypatch.setattr(Judge, "heard", counted)
    begun: list[Iterator[None]] = []
    monkeypatch.setattr(one.queue.sliced, "do", begun.append)
    for _ in range(10):
        one.move(NODE_ADDED, 100.0)
    assert sorted(asked) == sorted(names)
    assert not begun

    one.add(a_pod("late"))
    one.reject("Late", now_s=1.0)
    one.move(NODE_ADDED, 100.0)
    assert len(begun) == 1, "who begins to rest hears of the next one"


def test_a_pod_that_left_and_concerns_nobody_costs_one_look_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those at rest seek something, as devices are, that the pod had none of; gates hear of it all
    the same.
    """
    offered: list[tuple[str, ...]] = [()]
    concerns = Concerns(lambda _: ("device",), lambda _old, _new: offered[-1])
    hears = Registration(ASSIGNED_POD_DELETE, always(Hint.QUEUE), concerns)
    one, left = a_crowd(hears, count=3), a_pod("left", node="node")
    gone = Change(ASSIGNED_POD_DELETE, left, None)
    told: list[str] = []

    def expecting(_: Gates, departed: Pod) -> dict[str, Expecting]:
        told.append(departed.metadata.name)
        return {}

    monkeypatch.setattr(Gates, "expecting", expecting)
    begun: list[Iterator[None]] = []
    do = one.queue.sliced.do

    def counted(steps: Iterator[None]) -> None:
        begun.append(steps)
        do(steps)

    monkeypatch.setattr(one.queue.sliced, "do", counted)
    for _ in range(10):
        one.queue.move(gone, 100.0)
    assert len(begun) == 1, "they are indexed once"
    assert told == ["left"] * 10

    offered.append(("device",))
    one.queue.move(gone, 100.0)
    assert len(woken(one)) == 3


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


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (Change(ASSIGNED_POD_DELETE, a_pod("gone", node="n1")), "n1"),
        (Change(ASSIGNED_POD_DELETE, a_pod("gone", node="n1"), only_if_fits=True), ""),
        (Change(ASSIGNED_POD_DELETE, a_pod("gone", node="n1"), priority_at_most=5), ""),
        (Change(ASSIGNED_POD_DELETE), ""),
        (Change(NODE_ADDED, a_pod("gone", node="n1")), ""),
    ],
)
def test_only_a_pod_that_left_and_nothing_more_is_told_with_its_node(
    change: Change, left: str
) -> None:
    assert hearing._left(change) == left


def test_each_that_is_woken_is_paid_for_beside_what_it_takes_to_hear() -> None:
    spent = []
    for answer in (Hint.SKIP, Hint.QUEUE):
        one = a_crowd(Registration(NODE_ADDED, always(answer)), count=5)
        before = one.queue.sliced.budget.spent
        one.move(NODE_ADDED, now_s=20.0)
        spent.append(one.queue.sliced.budget.spent - before)
    assert spent[0] >= 5 * hearing.HEAR_STEPS
    assert spent[1] - spent[0] == pytest.approx(5 * WAKE_STEPS)


@pytest.mark.parametrize("are_tried", [False, True])
def test_a_gang_that_a_gate_lets_go_is_as_old_as_its_last_pod_where_gangs_are_tried(
    are_tried: bool,
) -> None:
    one = Scene(
        {"Gates": [Registration(NODE_ADDED)]},
        gates=[Gate("Gates")],
        gangs=Gangs(tries_groups=are_tried),
    )
    for name, at_s in (("a", 1.0), ("b", 5.0)):
        one.add(a_pod(name, gates=["Gates"], group="crew"), now_s=at_s)
    pods = [one.queue.places.get(f"default/{name}") for name in "ab"]
    for queued in pods:
        assert queued is not None
        queued.pod = a_pod(queued.pod.metadata.name, group="crew")  # its gate is open
    one.move(NODE_ADDED, now_s=9.0)
    assert one.names() == {"active": ["a", "b"]}
    times = [queued.timestamp_s for queued in pods if queued is not None]
    assert times == ([5.0, 5.0] if are_tried else [1.0, 5.0])
