"""Rest: groups of equal rejectors, classes inside them, and counts."""

from collections.abc import Hashable

from asched.core.queue.due import DueReason
from asched.core.queue.hints import Worth
from asched.core.queue.queued import QueuedPod
from asched.core.queue.unschedulable import UnschedulablePods, equals_of
from tests.core.queue.waiting import a_pod


def an_unschedulable(
    name: str, *plugins: str, gated_by: str = "", cls: Hashable = None
) -> QueuedPod:
    queued = QueuedPod(a_pod(name), 0.0, cls)
    queued.rejected_by, queued.gated_by = frozenset(plugins), gated_by
    return queued


def test_equal_rejectors_share_a_group_and_equal_pods_a_class() -> None:
    unschedulable = UnschedulablePods()
    for queued in (
        an_unschedulable("a", "Fit", cls=1),
        an_unschedulable("b", "Fit", cls=1),
        an_unschedulable("c", "Fit", cls=2),
        an_unschedulable("d", "Ports", cls=1),
    ):
        unschedulable.add(queued)

    shapes = {
        tuple(g.rejectors): [len(pods) for pods in g.classes.values()]
        for g in unschedulable.groups()
    }
    assert shapes == {("Fit",): [2, 1], ("Ports",): [1]}


def test_pods_without_a_class_share_nothing() -> None:
    unschedulable = UnschedulablePods()
    unschedulable.add(an_unschedulable("a", "Fit"))
    unschedulable.add(an_unschedulable("b", "Fit"))

    (group,) = unschedulable.groups()
    assert len(group.classes) == 2


def test_nothing_stays_behind() -> None:
    unschedulable = UnschedulablePods()
    pods = [an_unschedulable("a", "Fit", cls=1), an_unschedulable("b", "Gate", gated_by="Gate")]
    for queued in pods:
        unschedulable.add(queued)
    assert (unschedulable.unschedulable_count, unschedulable.gated_count, len(unschedulable)) == (
        1,
        1,
        2,
    )

    pods[1].gated_by = ""  # it has just passed, and leaves the group it was filed under
    for queued in pods:
        unschedulable.discard(queued)

    assert (unschedulable.unschedulable_count, unschedulable.gated_count) == (0, 0)
    assert list(unschedulable.groups()) == []


def test_pods_behind_a_gate_stand_in_no_line() -> None:
    """Nobody looks at one of them before the others; a gang of thousands would be sorted twice."""
    unschedulable = UnschedulablePods()
    pods = [an_unschedulable(name, "Gang", cls="a") for name in ("one", "two", "three")]
    for queued in pods:
        queued.gated_by = queued.gang = "Gang"
        unschedulable.add(queued)
    assert list(unschedulable) == pods
    assert [queued.lane for queued in pods] == [None] * 3
    for queued in pods:
        unschedulable.discard(queued)
    assert list(unschedulable.groups()) == []


def test_who_was_tried_and_left_does_not_keep_the_others_from_awaiting_a_look() -> None:
    unschedulable = UnschedulablePods()
    pods = [an_unschedulable(name, "Fit", cls=1) for name in "ab"]
    for queued in pods:
        equals = unschedulable.add(queued)
    unschedulable.due.add(equals, DueReason(Worth.AFTER_BACKOFF, "x"))
    equals.note_tried(pods[0])
    assert not equals.awaits_look

    unschedulable.discard(pods[0])

    assert equals.awaits_look


def test_another_order_may_have_keys_that_no_old_one_can_be_compared_with() -> None:
    """Those of two queue sorts: nothing that was ordered by one is left beside the other."""
    keys: dict[str, object] = {}
    unschedulable = UnschedulablePods(lambda queued: keys.get(queued.key, queued.timestamp_s))
    pods = [an_unschedulable(name, "Fit", cls=cls) for name, cls in (("a", 1), ("b", 1), ("c", 2))]
    for queued in pods:
        unschedulable.add(queued)
    for queued in pods[1:]:
        unschedulable.due.add(equals_of(queued), DueReason(Worth.AFTER_BACKOFF, "x"))
    unschedulable.due.file(1.0)
    for queued in pods:
        unschedulable.discard(queued)
    keys.update({queued.key: queued.key for queued in pods})

    unschedulable.renew()
    for queued in reversed(pods):
        unschedulable.add(queued)
    for queued in pods[1:]:
        unschedulable.due.add(equals_of(queued), DueReason(Worth.AFTER_BACKOFF, "x"))

    assert unschedulable.due.first(1.0) is equals_of(pods[0])
    assert [equals.first(1.0) for equals in unschedulable.due] == [pods[0], pods[2]]


def test_a_pod_of_a_gang_that_stands_apart_is_of_its_own_class() -> None:
    """Room is promised to it alone."""
    unschedulable = UnschedulablePods()
    pods = [an_unschedulable(name, "Fit", cls=name) for name in "abc"]
    for queued in pods:
        queued.gang = "default/crew"
    pods[2].is_promised = True
    found = [unschedulable.add(queued) for queued in pods]
    assert found[0] is found[1]
    assert found[2] is not found[0]
