"""Whom of several pods a change wakes, and what those missed that were being tried meanwhile."""

from typing import Any

import pytest

from asched.core.framework.points import Hint, Registration
from asched.core.model.pod import Pod
from asched.core.queue.backoff import Backoff
from asched.core.queue.gangs import Gangs
from asched.core.queue.hints import Judge, Worth
from asched.core.queue.profile import QueueProfile
from asched.core.queue.queued import QueuedPod
from asched.core.queue.waking import Waking
from asched.core.state.budget import Budget
from asched.core.state.changes import Change
from tests.core.queue.test_waking import Looked, scene, unschedulable
from tests.core.queue.waiting import (
    NODE_ADDED,
    NODE_LABEL,
    POD_RELABELLED,
    PROFILE,
    VOLUME_ADDED,
    Scene,
    a_node,
    a_pod,
    always,
    by_priority,
)

HEARD, SOON, OVERLOOKED, NOTHING = (
    Change(trigger) for trigger in (NODE_ADDED, VOLUME_ADDED, NODE_LABEL, POD_RELABELLED)
)
IF_FITS = Change(NODE_ADDED, only_if_fits=True)
BOTH = Change(NODE_ADDED)


class Hints:
    """What a change is worth by the hints, and whether it may have been overlooked."""

    def __init__(self) -> None:
        self.asked: list[Change] = []

    def worth(self, _queued: QueuedPod, change: Change, *_memo: Any) -> Worth:
        self.asked.append(change)
        by_trigger = {NODE_ADDED: Worth.AFTER_BACKOFF, VOLUME_ADDED: Worth.IMMEDIATELY}
        return by_trigger.get(change.trigger, Worth.SKIP)

    def profits(self, _queued: QueuedPod, change: Change, *_memos: Any) -> bool:
        return change is OVERLOOKED or change is BOTH


class Missing:
    """A pod that rests, and what its looks were."""

    def __init__(self, *, fits: bool = True, is_pending: bool = False) -> None:
        self.hints, self.look = Hints(), Looked(**({} if fits else {"web": "Ports"}))
        self.waking = Waking(self.hints, None, {PROFILE: self.look}, Budget())  # type: ignore[arg-type]
        self.queued = QueuedPod(a_pod("web"), 0.0)
        self.queued.rejected_by = frozenset({"Fit"})
        if is_pending:
            self.queued.pending_on = frozenset({"Fit"})


@pytest.mark.parametrize(
    ("missed", "fits", "is_pending", "worth", "looks"),
    [
        ([], True, False, Worth.SKIP, 0),
        ([NOTHING, HEARD], True, False, Worth.AFTER_BACKOFF, 0),
        ([HEARD, SOON, HEARD], True, True, Worth.IMMEDIATELY, 0),
        ([HEARD, NOTHING], True, True, Worth.AFTER_BACKOFF, 0),
        ([OVERLOOKED, NOTHING], True, False, Worth.AFTER_BACKOFF, 1),
        ([OVERLOOKED, NOTHING], False, False, Worth.SKIP, 1),
        ([OVERLOOKED, HEARD], False, False, Worth.AFTER_BACKOFF, 0),
        ([IF_FITS, NOTHING], True, False, Worth.AFTER_BACKOFF, 1),
        ([NOTHING, IF_FITS], False, False, Worth.SKIP, 1),
        ([IF_FITS, SOON], False, True, Worth.IMMEDIATELY, 0),
    ],
)
def test_what_was_missed_is_worth_what_the_best_of_it_is(
    missed: list[Change], fits: bool, is_pending: bool, worth: Worth, looks: int
) -> None:
    """One look at most, and only where hints alone say nothing."""
    one = Missing(fits=fits, is_pending=is_pending)
    assert one.waking.of_missed(one.queued, missed) is worth
    assert len(one.look.asked) == looks
    blamed = [] if fits or not looks else [(one.queued, frozenset({"Ports"}))]
    assert list(one.waking.notes) == blamed


def test_nothing_is_asked_any_more_once_nothing_can_be_worth_more() -> None:
    one = Missing()
    one.waking.of_missed(one.queued, [HEARD, NOTHING])
    assert one.hints.asked == [HEARD]
    pending = Missing(is_pending=True)
    pending.waking.of_missed(pending.queued, [HEARD, SOON, NOTHING])
    assert pending.hints.asked == [HEARD, SOON]


@pytest.mark.parametrize(
    ("change", "fits", "worth", "looks"),
    [
        (HEARD, False, Worth.AFTER_BACKOFF, 0),
        (OVERLOOKED, True, Worth.AFTER_BACKOFF, 1),
        (OVERLOOKED, False, Worth.SKIP, 1),
        (NOTHING, True, Worth.SKIP, 0),
        (BOTH, False, Worth.AFTER_BACKOFF, 0),
    ],
)
def test_a_change_of_the_pod_itself_is_looked_at_if_hints_overlook_it(
    change: Change, fits: bool, worth: Worth, looks: int
) -> None:
    one = Missing(fits=fits)
    assert one.waking.of_itself(one.queued, change) is worth
    assert len(one.look.asked) == looks


@pytest.mark.parametrize("nominated", ["", "n"])
@pytest.mark.parametrize("names", [("vip", "low", "mid"), ("low", "vip", "mid")])
def test_room_given_back_is_heard_of_by_those_it_was_kept_from_whoever_comes_first(
    names: tuple[str, ...], nominated: str
) -> None:
    one = scene(Looked(), by_class=bool(nominated))
    priorities = {"vip": 9, "low": 0, "mid": 5}
    one.add(*(a_pod(n, priority=priorities[n], nominated=nominated) for n in names))
    for _ in names:
        one.reject("Fit", now_s=1.2)
    assert one.move(NODE_ADDED, now_s=1.3, priority_at_most=5) == 2
    assert unschedulable(one) == ["vip"]


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("nominated", ["", "n"])
@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_whoever_is_left_out_rests_and_its_equals_do_not(
    name: str, nominated: str, by_class: bool
) -> None:
    one = scene(Looked(), by_class=by_class)
    one.add(*(a_pod(each, nominated=nominated) for each in "abc"))
    for _ in range(3):
        one.reject("Fit", now_s=1.2)
    assert one.move(NODE_ADDED, now_s=1.3, except_uid=f"uid-{name}") == 2
    assert unschedulable(one) == [name]


def test_pods_that_are_promised_room_are_looked_at_each_by_itself() -> None:
    """It may fit where its like do not. Their equals without a promise share one look."""
    look = Looked(b="Ports", a="Ports")
    one = scene(look, by_class=True)
    one.add(*(a_pod(name, nominated="n") for name in "bc"), a_pod("a"), a_pod("d"))
    for _ in range(4):
        one.reject("Fit", now_s=1.2)
    assert one.move(NODE_LABEL, now_s=1.3) == 1
    assert sorted(look.asked) == ["a", "b", "c"]
    assert sorted(unschedulable(one)) == ["a", "b", "d"]
    assert [queued.also_blamed for queued in one.queue.places.unschedulable] == [{"Ports"}] * 3


def test_a_group_that_is_not_concerned_keeps_nothing_from_the_next_one() -> None:
    look = Looked()
    one = scene(look)
    one.add(a_pod("a"), a_pod("b"), a_pod("c"))
    for plugin in ("Ports", "Fit", "Ports"):
        one.reject(plugin, now_s=1.2)
    assert one.move(NODE_ADDED, now_s=1.3) == 1
    assert unschedulable(one) == ["a", "c"]


@pytest.mark.parametrize("by_class", [False, True])
def test_hints_for_overlooked_changes_are_asked_where_the_others_say_no(by_class: bool) -> None:
    look = Looked(web="Fit")
    one = Scene(class_key_of=lambda pod: pod.metadata.name if by_class else None)
    skip = Registration(NODE_ADDED, lambda _pod, _old, _new: Hint.SKIP)
    extra_events = {"Fit": [Registration(NODE_ADDED)]}
    profile = QueueProfile(by_priority, {"Fit": [skip]}, extra_events=extra_events, blame=look)
    one.queue.learn({PROFILE: profile}, Backoff(1, 10))
    one.add(a_pod("web"), a_pod("fits"))
    for _ in range(2):
        one.reject("Fit", now_s=1.2)
    one.queue.move(Change(NODE_ADDED, None, a_node("n")), 1.3)
    assert sorted(look.asked) == ["fits", "web"]
    assert unschedulable(one) == ["web"]


def test_of_equals_that_are_promised_room_each_has_to_fit_if_that_is_asked() -> None:
    look = Looked(b="Fit")
    one = scene(look, by_class=True)
    one.add(*(a_pod(name, nominated="n") for name in "abc"))
    for _ in range(3):
        one.reject("Fit", now_s=1.2)
    one.queue.move(Change(NODE_ADDED, None, a_node("n"), only_if_fits=True), 1.3)
    assert look.asked == ["a", "b", "c"]
    assert unschedulable(one) == ["b"]


@pytest.mark.parametrize("answer", [Hint.QUEUE, Hint.SKIP])
def test_hints_are_asked_once_for_equals_however_many_are_promised_room(answer: Hint) -> None:
    asked: list[str] = []

    def hint(pod: Pod, _old: Any, _new: Any) -> Hint:
        asked.append(pod.metadata.name)
        return answer

    one = scene(Looked(), by_class=True)
    extra_events = {"Fit": [Registration(NODE_LABEL)]}
    fit = [Registration(NODE_ADDED, hint)]
    profile = QueueProfile(by_priority, {"Fit": fit}, extra_events=extra_events, blame=Looked())
    one.queue.learn({PROFILE: profile}, Backoff(1, 10))
    one.add(*(a_pod(name, nominated="n") for name in "abc"))
    for _ in range(3):
        one.reject("Fit", now_s=1.2)
    assert one.move(NODE_ADDED, now_s=1.3) == (3 if answer is Hint.QUEUE else 0)
    assert asked == ["a"]


def test_of_looks_in_vain_each_that_had_one_takes_note() -> None:
    one = scene(Looked(a="Ports", c="Ports"), by_class=True)
    one.add(*(a_pod(name, nominated="n") for name in "abc"))
    for _ in range(3):
        one.reject("Fit", now_s=1.2)
    assert one.move(NODE_LABEL, now_s=1.3) == 1
    assert [q.also_blamed for q in one.queue.places.unschedulable] == [{"Ports"}] * 2


@pytest.mark.parametrize("answer", [Hint.QUEUE, Hint.SKIP])
def test_of_pods_that_hints_do_not_tell_apart_one_is_asked_about(
    answer: Hint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands may be promised room, or have given it back."""
    asked: list[QueuedPod] = []
    worth = Judge.worth

    def counted(self: Judge, queued: QueuedPod, *about: Any) -> Worth:
        asked.append(queued)
        return worth(self, queued, *about)

    one = scene(Looked(), by_class=True)
    fit = [Registration(NODE_ADDED, always(answer))]
    one.queue.learn({PROFILE: QueueProfile(by_priority, {"Fit": fit})}, Backoff(1, 10))
    one.add(*(a_pod(name, nominated="n") for name in "abcd"))
    for _ in range(4):
        one.reject("Fit", now_s=1.2)
    monkeypatch.setattr(Judge, "worth", counted)
    moved = one.move(NODE_ADDED, now_s=1.3, except_uid="uid-a")
    assert (len(asked), moved) == (1, 3 if answer is Hint.QUEUE else 0)


def test_of_a_gang_that_is_too_important_in_part_the_others_hear() -> None:
    one = Scene(
        {"Fit": [Registration(NODE_ADDED)]},
        class_key_of=lambda pod: pod.priority,
        gangs=Gangs(tries_groups=True),
    )
    one.add(*(a_pod(name, group="crew", priority=p) for name, p in (("a", 9), ("b", 0))))
    for _ in "ab":
        one.reject("Fit", now_s=1.0)
    assert one.move(NODE_ADDED, now_s=9.0, priority_at_most=5) > 0
