"""Is a change worth another attempt? The decision as a table, and what registrations amount to."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import pytest

from asched.core.framework.points import Hint, Registration
from asched.core.model.pod import Pod
from asched.core.queue.hints import (
    CAUSES_MAX,
    EVERYTHING,
    HintEvaluator,
    Interest,
    Memo,
    Worth,
    registered,
    watched,
)
from asched.core.queue.queued import QueuedPod
from asched.core.queue.unschedulable import GroupKey
from asched.core.state.changes import (
    ASSIGNED_POD_ADD,
    FORCE_ACTIVATE,
    NODE_ADD,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    Change,
    Trigger,
)
from tests.core.queue.waiting import (
    NODE_LABEL,
    PROFILE,
    VOLUME_ADDED,
    Witness,
    a_node,
    a_pod,
    always,
)


def refuse(pod: Pod, old: object, new: object) -> Hint:
    raise ValueError("surprise")


REGISTRATIONS = {
    "Yes": [Registration(NODE_ADD, always(Hint.QUEUE))],
    "No": [Registration(NODE_ADD, always(Hint.SKIP))],
    "NoFunction": [Registration(NODE_ADD)],
    "Broken": [Registration(NODE_ADD, refuse)],
    "NoThenYes": [
        Registration(NODE_ADD, always(Hint.SKIP)),
        Registration(Trigger("Node", Action.ADD | Action.UPDATE_NODE_LABEL), always(Hint.QUEUE)),
    ],
    "Elsewhere": [Registration(VOLUME_ADDED)],
}


@dataclass(frozen=True)
class Case:
    name: str
    rejected_by: str
    pending_on: str
    worth: Worth


CASES = [
    Case("nobody rejected it: an error", "", "", Worth.AFTER_BACKOFF),
    Case("its rejector says Queue", "Yes", "", Worth.AFTER_BACKOFF),
    Case("its rejector says QueueSkip", "No", "", Worth.SKIP),
    Case("its rejector is not registered for this", "Elsewhere", "", Worth.SKIP),
    Case("its rejector is unknown", "Stranger", "", Worth.SKIP),
    Case("no function means Queue", "NoFunction", "", Worth.AFTER_BACKOFF),
    Case("an error means Queue", "Broken", "", Worth.AFTER_BACKOFF),
    Case("one of two registrations is enough", "NoThenYes", "", Worth.AFTER_BACKOFF),
    Case("one of two rejectors is enough", "No Yes", "", Worth.AFTER_BACKOFF),
    Case("a pending rejector skips the backoff", "", "Yes", Worth.IMMEDIATELY),
    Case("a pending rejector is heard past another", "Yes", "NoFunction", Worth.IMMEDIATELY),
    Case("a silent pending rejector takes nothing away", "Yes", "No", Worth.AFTER_BACKOFF),
    Case("a pending rejector that is not asked", "No", "Elsewhere", Worth.SKIP),
]


def a_judge(witness: Witness | None = None) -> HintEvaluator:
    counter_s = iter(range(5, 999)).__next__
    return HintEvaluator({PROFILE: Interest(REGISTRATIONS)}, witness or Witness(), counter_s)


def a_rejected(rejected_by: str, pending_on: str = "", name: str = "web") -> QueuedPod:
    queued = QueuedPod(a_pod(name), 0.0)
    queued.rejected_by = frozenset(rejected_by.split())
    queued.pending_on = frozenset(pending_on.split())
    return queued


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_worth(case: Case, shares: bool) -> None:
    memo = Memo() if shares else None
    queued = a_rejected(case.rejected_by, case.pending_on)
    queued.class_key = case.name

    assert a_judge().worth(queued, Change(NODE_ADD, None, a_node("n")), memo) is case.worth


def test_a_wildcard_helps_everybody_it_is_meant_for() -> None:
    judge, queued = a_judge(), a_rejected("Elsewhere")

    worths = [
        judge.worth(queued, Change(UNSCHEDULABLE_TIMEOUT)),
        judge.worth(queued, Change(FORCE_ACTIVATE, None, queued.pod)),
        judge.worth(queued, Change(FORCE_ACTIVATE, None, a_pod("other"))),
    ]

    assert worths == [Worth.AFTER_BACKOFF, Worth.AFTER_BACKOFF, Worth.SKIP]


def test_a_pod_of_an_unknown_profile_is_not_left_asleep() -> None:
    queued = QueuedPod(a_pod("web", scheduler="unknown"), 0.0)
    queued.rejected_by = frozenset({"No"})

    assert a_judge().worth(queued, Change(NODE_ADD)) is Worth.AFTER_BACKOFF


def test_every_call_is_timed_and_an_error_is_told() -> None:
    witness = Witness()

    a_judge(witness).worth(a_rejected("Broken"), Change(NODE_ADD))

    assert witness.answers == [("Broken", "NodeAdd", "Error", 1)]
    assert witness.raised == [("Broken", "queueingHint", "ValueError('surprise')")]
    assert witness.notes == ["asked for pod default/web on NodeAdd; told once"]


def test_equal_pods_share_an_answer_for_one_change() -> None:
    witness, memo = Witness(), Memo()
    judge = a_judge(witness)
    for name in ("a", "b"):
        queued = a_rejected("No", name=name)
        queued.class_key = "same"
        judge.worth(queued, Change(NODE_ADD), memo)

    assert len(witness.answers) == 1


def test_who_may_hear() -> None:
    judge = a_judge()

    def may_hear(trigger: Trigger, *plugins: str, gated_by: str = "") -> bool:
        key = GroupKey(PROFILE, frozenset(plugins), frozenset(), gated_by)
        return judge.may_hear(key, trigger)

    assert may_hear(NODE_ADD, "No", "Elsewhere")
    assert not may_hear(NODE_ADD, "Elsewhere")
    assert may_hear(UNSCHEDULABLE_TIMEOUT, "Elsewhere")
    assert not may_hear(UNSCHEDULABLE_TIMEOUT, "Elsewhere", gated_by="Elsewhere")
    assert not may_hear(NODE_ADD, "Yes", "Elsewhere", gated_by="Elsewhere")
    assert may_hear(VOLUME_ADDED, "Yes", "Elsewhere", gated_by="Elsewhere")
    unknown = GroupKey("unknown", frozenset({"No"}), frozenset(), "")
    assert judge.may_hear(unknown, VOLUME_ADDED), "it is not left asleep"


def test_a_change_nobody_registered_for_is_of_no_interest() -> None:
    judge = a_judge()

    assert judge.is_of_interest(NODE_LABEL)
    assert not judge.is_of_interest(ASSIGNED_POD_ADD)


TAINT = Registration(Trigger("Node", Action.UPDATE_NODE_TAINT))
ADD = Registration(NODE_ADD)
LABEL = Registration(NODE_LABEL)
WILD = Registration(Trigger("*", Action.ALL))


@pytest.mark.parametrize(
    ("own", "resolved"),
    [
        (None, EVERYTHING),
        ((), ()),
        ((LABEL,), (LABEL,)),
        ((ADD,), (ADD, TAINT)),
        ((ADD, TAINT), (ADD, TAINT)),
        ((WILD,), EVERYTHING),
        ((WILD, ADD, LABEL), (*EVERYTHING, ADD, LABEL)),
        ((Registration(Trigger("Pod", Action.ADD)),), (Registration(Trigger("Pod", Action.ADD)),)),
    ],
)
def test_what_registrations_amount_to(
    own: Sequence[Registration] | None, resolved: Sequence[Registration]
) -> None:
    assert registered(own) == tuple(resolved)


def test_watched_is_the_union_over_plugins_and_profiles() -> None:
    gone = Registration(Trigger("Pod", Action.DELETE))
    union = watched([{"A": [ADD]}, {"B": [LABEL, Registration(VOLUME_ADDED)], "C": [gone]}])

    assert union == {
        "Node": Action.ADD | Action.UPDATE_NODE_LABEL,
        "PersistentVolume": Action.ADD,
        "Pod": Action.DELETE,
    }


def test_an_error_of_a_hint_is_told_once_and_counted_always() -> None:
    """A senseless object raises at every change; the log hears of each cause once."""
    errors: list[Exception] = [ValueError("senseless Gt")]

    def raises(pod: Pod, old: object, new: object) -> Hint:
        raise errors[0]

    witness = Witness()
    registrations = {"Fit": [Registration(NODE_ADD, raises)]}
    judge = HintEvaluator({PROFILE: Interest(registrations)}, witness, lambda: 0.0)
    queued = a_rejected("Fit")

    for _ in range(1000):
        assert judge.worth(queued, Change(NODE_ADD)) is Worth.AFTER_BACKOFF
    assert witness.raised == [("Fit", "queueingHint", "ValueError('senseless Gt')")]
    assert witness.complaints == []
    assert [hint for _, _, hint, _ in witness.answers] == ["Error"] * 1000

    for number in range(2 * CAUSES_MAX):
        errors[0] = ValueError(f"senseless {number}")
        judge.worth(queued, Change(NODE_ADD))
    assert len(witness.raised) == CAUSES_MAX
