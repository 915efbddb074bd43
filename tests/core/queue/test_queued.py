"""The record of a waiting pod."""

from asched.core.queue.queued import QueuedPod
from tests.core.queue.waiting import a_pod


def test_both_kinds_of_rejectors_are_asked() -> None:
    queued = QueuedPod(a_pod("web"), 1.5)
    queued.rejected_by, queued.pending_on = frozenset({"Fit"}), frozenset({"Volumes"})

    assert queued.rejectors == {"Fit", "Volumes"}
    assert not queued.is_gated
    assert repr(queued) == "QueuedPod(default/web, attempts=0)"
