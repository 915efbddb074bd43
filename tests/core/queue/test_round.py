"""One change on its way: who is looked at for it, and whom it passes by."""

import pytest

from asched.core.framework.expecting import NOBODY_EXPECTS, Expecting
from asched.core.queue.hints import Worth
from asched.core.queue.queued import QueuedPod
from asched.core.queue.round import (
    LOOK_STEPS,
    LOOKS_MAX,
    ClassDryRuns,
    RoomLeft,
    Round,
    unknown_room,
)
from asched.core.state.budget import Budget
from asched.core.state.changes import ASSIGNED_POD_DELETE, Change
from tests.core.queue.queues import Looked
from tests.core.queue.waiting import PROFILE, a_pod


def a_queued(name: str, class_key: str | None = None, nominated: str = "") -> QueuedPod:
    return QueuedPod(a_pod(name, nominated=nominated), 0.0, class_key)


def a_round(room_left: RoomLeft = unknown_room, look: Looked | None = None) -> Round:
    """A pod left n1."""
    gone = a_pod("gone", node="n1")
    change = Change(ASSIGNED_POD_DELETE, gone, None)
    return Round(change, gone, "", {PROFILE: look or Looked()}, Budget(), room_left)


def by_key(*queued: QueuedPod) -> dict[str, QueuedPod]:
    return {one.key: one for one in queued}


def room_for(*names: str) -> RoomLeft:
    return lambda left: (
        lambda queued: (left, queued.pod.metadata.name) in [("n1", n) for n in names]
    )


@pytest.mark.parametrize(
    ("nodes", "fits", "passes"),
    [
        ({}, False, False),
        ({"default/a": "n2"}, False, False),  # not for b
        ({"default/a": "n2", "default/b": "n1"}, False, False),  # for b here
        ({"default/a": "n2", "default/b": "n3"}, False, True),  # too little is left
        ({"default/a": "n2", "default/b": "n3"}, True, False),
        ({"default/a": "n2", "default/b": "n3", "default/c": "n1"}, True, True),  # c comes first
    ],
)
def test_those_are_passed_by_who_get_room_elsewhere_and_have_none_here(
    nodes: dict[str, str], fits: bool, passes: bool
) -> None:
    one = a_round(room_for(*("ab" if fits else "")))
    one.expect(Expecting(nodes))
    assert one.passes_by(by_key(a_queued("a"), a_queued("b"))) is passes


def test_each_profile_says_where_it_makes_room() -> None:
    one = a_round()
    one.expect(Expecting({"default/c": "n1", "default/a": "n2"}))
    assert one.is_awaited
    assert one.worth_elsewhere(a_queued("a")) is Worth.SKIP
    one.expect(NOBODY_EXPECTS)
    assert not one.is_awaited
    assert one.worth_elsewhere(a_queued("a")) is Worth.AFTER_BACKOFF


def test_where_a_pod_had_room_promised_alone_no_node_was_left() -> None:
    asked = []

    def room_left(left: str):  # type: ignore[no-untyped-def]
        asked.append(left)
        return lambda _queued: True

    assert a_round(room_left).left == "n1"
    change = Change(ASSIGNED_POD_DELETE, a_pod("gone"), None)
    assert Round(change, None, "", {}, Budget(), room_left).left == ""
    assert asked == ["n1", ""]


def test_equals_share_a_look_and_promised_ones_have_their_own() -> None:
    look, budget = Looked(a="Ports"), Budget()
    looks = ClassDryRuns({PROFILE: look}, budget, "n1")
    a, like, promised = a_queued("a", "x"), a_queued("b", "x"), a_queued("c", "x", nominated="n2")
    assert [looks.worth(one) for one in (a, like)] == [Worth.SKIP] * 2
    assert looks.worth(promised) is Worth.AFTER_BACKOFF
    assert look.asked == ["a", "c"]
    assert look.left == ["n1", "n1"]
    assert budget.spent == 2 * LOOK_STEPS
    assert looks.noted(like) == {"Ports"}
    assert looks.noted(promised) == set()
    assert looks.worth_to_its_like(promised) is Worth.AFTER_BACKOFF, "as if of any of the class"
    assert look.asked == ["a", "c", "c"]
    assert looks.asked == 4


def test_beyond_a_number_of_looks_they_are_woken_unseen() -> None:
    look = Looked(**{f"p{number}": "Ports" for number in range(LOOKS_MAX + 2)})
    looks = ClassDryRuns({PROFILE: look}, Budget())
    worths = [looks.worth(a_queued(f"p{number}")) for number in range(LOOKS_MAX + 1)]
    assert worths == [Worth.SKIP] * LOOKS_MAX + [Worth.AFTER_BACKOFF]
    assert looks.worth_to_its_like(a_queued(f"p{LOOKS_MAX + 1}")) is Worth.SKIP, "each is looked at"
