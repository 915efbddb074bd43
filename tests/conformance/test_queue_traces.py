"""The queue against recorded traces of kube-scheduler's: every state after every step, exactly."""

import pytest

from tests.conformance.queue_traces import replay
from tests.support import shared_path


@pytest.mark.shared
def test_every_recorded_trace_is_reproduced() -> None:
    outcomes = replay(shared_path("conformance/queue.jsonl.gz"))

    wrong = [f"{name}: {difference}" for name, agrees, difference in outcomes if not agrees]
    assert wrong == []
    assert outcomes
