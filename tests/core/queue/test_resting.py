"""Rest: groups of equal rejectors, classes inside them, and counts."""

from collections.abc import Hashable

from asched.core.queue.queued import QueuedPod
from asched.core.queue.resting import RestingPods
from tests.core.queue.waiting import a_pod


def a_resting(name: str, *plugins: str, gated_by: str = "", cls: Hashable = None) -> QueuedPod:
    queued = QueuedPod(a_pod(name), 0.0, cls)
    queued.rejected_by, queued.gated_by = frozenset(plugins), gated_by
    return queued


def test_equal_rejectors_share_a_group_and_equal_pods_a_class() -> None:
    resting = RestingPods()
    for queued in (
        a_resting("a", "Fit", cls=1),
        a_resting("b", "Fit", cls=1),
        a_resting("c", "Fit", cls=2),
        a_resting("d", "Ports", cls=1),
    ):
        resting.add(queued)

    shapes = {
        tuple(g.rejectors): [len(pods) for pods in g.classes.values()] for g in resting.groups()
    }
    assert shapes == {("Fit",): [2, 1], ("Ports",): [1]}


def test_pods_without_a_class_share_nothing() -> None:
    resting = RestingPods()
    resting.add(a_resting("a", "Fit"))
    resting.add(a_resting("b", "Fit"))

    (group,) = resting.groups()
    assert len(group.classes) == 2


def test_nothing_stays_behind() -> None:
    resting = RestingPods()
    pods = [a_resting("a", "Fit", cls=1), a_resting("b", "Gate", gated_by="Gate")]
    for queued in pods:
        resting.add(queued)
    assert (resting.unschedulable_count, resting.gated_count, len(resting)) == (1, 1, 2)

    pods[1].gated_by = ""  # it has just passed, and leaves the group it was filed under
    for queued in pods:
        resting.discard(queued)

    assert (resting.unschedulable_count, resting.gated_count) == (0, 0)
    assert list(resting.groups()) == []
