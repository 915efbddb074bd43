"""Rest: groups of equal rejectors, classes inside them, and counts."""

from collections.abc import Hashable

from asched.core.queue.queued import QueuedPod
from asched.core.queue.unschedulable import UnschedulablePods
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
