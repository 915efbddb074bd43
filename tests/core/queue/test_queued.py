"""The record of a waiting pod."""

import pytest

from asched.core.queue.queued import QueuedPod
from tests.core.queue.waiting import a_pod


def test_both_kinds_of_rejectors_are_asked() -> None:
    queued = QueuedPod(a_pod("web"), 1.5)
    queued.rejected_by, queued.pending_on = frozenset({"Fit"}), frozenset({"Volumes"})

    assert queued.rejectors == {"Fit", "Volumes"}
    assert not queued.is_gated
    assert repr(queued) == "QueuedPod(default/web, attempts=0)"


@pytest.mark.parametrize(
    ("fields", "marks", "apart"),
    [
        ({}, {}, False),
        ({}, {"is_patient": True}, True),
        ({}, {"is_promised": True}, True),
        ({"nominated": "n1"}, {}, True),
        ({"group": "crew"}, {}, True),
        ({"group": "crew"}, {"gang": "default/crew"}, False),
        ({}, {"gated_by": "Gate"}, False),
    ],
)
def test_who_stands_apart_from_its_like(
    fields: dict[str, str], marks: dict[str, object], apart: bool
) -> None:
    """A pod of a group that is not tried with it stands for itself."""
    queued = QueuedPod(a_pod("web", **fields), 0.0)
    for name, value in marks.items():
        setattr(queued, name, value)
    assert queued.stands_apart == apart


def test_a_new_one_has_failed_never() -> None:
    queued = QueuedPod(a_pod("web"), 1.5)
    assert (queued.attempts, queued.unschedulable_count, queued.consecutive_errors) == (0, 0, 0)
    assert queued.backoff_until_s is queued.initial_attempt_s is queued.lane is queued.group is None
