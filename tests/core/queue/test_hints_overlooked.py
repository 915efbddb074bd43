"""What hints for overlooked changes say, whom a change can concern, and what is kept of that."""

from collections.abc import Collection, Hashable

import pytest

from asched.core.framework.points import Concerns, Hint, HintFunction, Registration
from asched.core.model.meta import Record
from asched.core.model.pod import Pod
from asched.core.queue import hints
from asched.core.queue.hints import Heard, Interest, Judge, Memo
from asched.core.queue.queued import QueuedPod
from asched.core.queue.unschedulable import GroupKey, RejectorGroup
from asched.core.state.changes import Change
from tests.core.queue.waiting import (
    NODE_ADDED,
    NODE_LABEL,
    PROFILE,
    VOLUME_ADDED,
    Witness,
    a_node,
    a_pod,
    always,
)

YES, NO = always(Hint.QUEUE), always(Hint.SKIP)
CHANGE = Change(NODE_LABEL, a_node("n"), a_node("n", zone="a"))


def refuse(pod: Pod, old: object, new: object) -> Hint:
    raise ValueError("surprise")


#: Hints, and whether they let a pod be looked at.
HINTS = [(YES, True), (None, True), (refuse, True), (NO, False)]


def overlooked(*plugins: str, hint: HintFunction | None, twice: bool = False) -> Interest:
    said = [Registration(NODE_LABEL, NO)] * twice + [Registration(NODE_LABEL, hint)]
    return Interest(dict.fromkeys(plugins, said))


def a_rejected(rejected_by: str = "", also: str = "", class_key: Hashable = None) -> QueuedPod:
    queued = QueuedPod(a_pod("web"), 0.0, class_key)
    queued.rejected_by, queued.also_blamed = frozenset(rejected_by.split()), frozenset(also.split())
    return queued


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize(
    ("hint", "helps"), [(YES, True), (None, True), (refuse, True), (NO, False)]
)
@pytest.mark.parametrize(
    ("rejected_by", "also", "asked"),
    [("Fit", "", True), ("Ports", "Fit", True), ("Ports", "", False), ("Ports", "Taints", False)],
)
def test_an_overlooked_change_may_help_whom_a_plugin_rejected_or_stood_against_later(
    rejected_by: str, also: str, asked: bool, hint: HintFunction | None, helps: bool, twice: bool
) -> None:
    """One hint of several is enough; without one, or after a mistake in it, the look decides."""
    extra = {PROFILE: overlooked("Fit", hint=hint, twice=twice)}
    judge = Judge({}, Witness(), lambda: 0.0, extra)
    assert judge.profits(a_rejected(rejected_by, also), CHANGE) is (asked and helps)


@pytest.mark.parametrize("class_key", [None, "all"])
@pytest.mark.parametrize(
    ("hint", "helps"), [(YES, True), (None, True), (refuse, True), (NO, False)]
)
@pytest.mark.parametrize(
    ("rejected_by", "also", "asked"),
    [("Ports", "Fit", True), ("Fit", "", False), ("Ports", "Taints", False)],
)
def test_who_stood_against_it_later_is_heard_from_by_its_own_hints(
    rejected_by: str,
    also: str,
    asked: bool,
    hint: HintFunction | None,
    helps: bool,
    class_key: Hashable,
) -> None:
    witness = Witness()
    judge = Judge({PROFILE: overlooked("Fit", hint=hint)}, witness, lambda: 0.0)
    queued = a_rejected(rejected_by, also, class_key)
    assert judge.profits(queued, CHANGE, {}) is (asked and helps)
    assert [plugin for plugin, *_ in witness.answers] == ["Fit"] * asked


@pytest.mark.parametrize(
    ("class_key", "shares", "times"), [("all", True, 1), (None, True, 2), ("all", False, 2)]
)
@pytest.mark.parametrize("answer", [Hint.QUEUE, Hint.SKIP])
def test_pods_of_a_class_share_what_is_said_of_an_overlooked_change(
    class_key: Hashable, shares: bool, times: int, answer: Hint
) -> None:
    memo = Memo() if shares else None
    asked: list[tuple[Record, ...]] = []

    def hint(*about: Record) -> Hint:
        asked.append(about)
        return answer

    judge = Judge({}, Witness(), lambda: 0.0, {PROFILE: overlooked("Fit", hint=hint)})
    pods = [a_rejected("Fit", class_key=class_key) for _ in "ab"]
    told = [judge.profits(queued, CHANGE, None, memo) for queued in pods]
    assert told == [answer is Hint.QUEUE] * 2
    assert asked == [(queued.pod, CHANGE.old, CHANGE.new) for queued in pods][:times]


def key_of(rejected_by: str, also: str = "", gated_by: str = "") -> GroupKey:
    rejectors, blamed = frozenset(rejected_by.split()), frozenset(also.split())
    return GroupKey(PROFILE, rejectors, frozenset(), gated_by, blamed)


@pytest.mark.parametrize(
    ("key", "may"),
    [
        (key_of("Fit"), True),
        (key_of("Ports", also="Fit"), True),
        (key_of("Ports"), False),
        (key_of("Taints"), False),
        (key_of("Ports", also="Taints"), True),
    ],
)
def test_who_may_have_a_change_overlooked(key: GroupKey, may: bool) -> None:
    """Fit overlooks changes of labels, Taints hears of them."""
    own, extra = overlooked("Taints", hint=YES), overlooked("Fit", hint=YES)
    judge = Judge({PROFILE: own}, Witness(), lambda: 0.0, {PROFILE: extra})
    assert judge.may_profit(key, NODE_LABEL) is may
    assert not judge.may_profit(key, NODE_ADDED)


# --- whom it can concern --------------------------------------------------------------------------


def nobody(_pod: Pod) -> Collection[Hashable]:
    return ()


CONCERNS = [Concerns(nobody, lambda _old, _new: ()) for _ in range(3)]


@pytest.mark.parametrize(
    ("key", "whom"),
    [
        (key_of("Fit"), {CONCERNS[0]}),
        (key_of("Fit Ports"), {CONCERNS[0], CONCERNS[1]}),
        (key_of("Ports", also="Fit"), {CONCERNS[0], CONCERNS[1]}),
        (key_of("Fit", also="Extra"), {CONCERNS[0], CONCERNS[2]}),
        (key_of("Fit Silent"), None),
        (key_of("Stranger"), set()),
    ],
)
def test_whom_a_change_can_concern_is_what_those_say_who_stand_against_the_pods(
    key: GroupKey, whom: set[Concerns] | None
) -> None:
    judge = a_judge()
    assert judge.heard(key, NODE_LABEL).concerns == whom


def a_judge() -> Judge:
    told = {
        "Fit": [Registration(NODE_LABEL, YES, CONCERNS[0])],
        "Ports": [Registration(NODE_LABEL, YES, CONCERNS[1])],
        "Silent": [Registration(NODE_LABEL, YES)],
    }
    extra = {"Extra": [Registration(NODE_LABEL, YES, CONCERNS[2])]}
    own = {PROFILE: Interest(told)}
    return Judge(own, Witness(), lambda: 0.0, {PROFILE: Interest(extra)})


@pytest.mark.parametrize(
    ("rejectors", "whom"),
    [
        (["Fit", "Ports"], CONCERNS[:2]),
        (["Fit", "Silent"], None),
        (["Silent", "Fit"], None),
        (["Fit", "Stranger"], CONCERNS[:1]),
    ],
)
def test_one_group_that_does_not_tell_opens_the_change_to_all(
    rejectors: list[str], whom: list[Concerns] | None
) -> None:
    groups = tuple(RejectorGroup(key_of(rejector)) for rejector in rejectors)
    found = a_judge().listeners(groups, NODE_LABEL).concerns
    assert (found if found is None else [concerns for concerns, _ in found]) == whom


def test_what_is_to_be_known_of_a_change_is_found_out_once_and_kept_of_so_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hints, "HEARD_MAX", 3)
    judge = a_judge()

    def heard(number: int) -> Heard:
        return judge.heard(key_of(f"Fit {number}"), NODE_LABEL)

    first = [heard(number) for number in range(3)]
    assert all(heard(number) is first[number] for number in range(3))
    assert heard(3) == first[0]
    assert not any(heard(number) is first[number] for number in range(3)), "they were forgotten"
    assert not judge.heard(key_of("Fit"), VOLUME_ADDED).hears
