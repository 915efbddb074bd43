"""The queue in the log: where a pod goes, and what sent it there."""

import logging

import pytest

from asched.core.queue.queued import QueuedPod
from asched.edge.telemetry import reports
from asched.edge.telemetry.component_metrics import OwnMetrics
from asched.edge.telemetry.instruments import Families
from tests.core.queue.waiting import a_pod


def lines(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, v: int) -> list[str]:
    monkeypatch.setattr(reports, "verbosity", lambda: v)
    families = Families()
    told = reports.Reports(families, OwnMetrics(families))
    queued = QueuedPod(a_pod("web"), 100.2)
    queued.rejected_by, queued.attempts, queued.backoff_until_s = frozenset({"Fit"}), 2, 102.0
    with caplog.at_level(logging.INFO, logger="asched.scheduler"):
        told.incoming("backoff", "AssignedPodDelete", queued)
    return [str(vars(record)) for record in caplog.records]


def test_a_pod_that_is_sent_to_backoff_has_a_line_with_the_cause_and_the_pause(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (line,) = lines(monkeypatch, caplog, 4)

    for part in ("default/web", "AssignedPodDelete", "Backoff", "['Fit']", "'backoffSeconds': 1.8"):
        assert part in line


def test_below_verbosity_4_the_queue_is_silent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert lines(monkeypatch, caplog, 3) == []
