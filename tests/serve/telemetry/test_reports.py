"""What the machine reports: which line it makes, from which verbosity on, and what it counts."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from asched.core.queue.queued import QueuedPod
from asched.serve.telemetry import reports
from asched.serve.telemetry.log import extras
from asched.serve.telemetry.metrics import Metrics
from tests.core.queue.waiting import a_pod
from tests.serve.telemetry.samples import moved

ERROR = ValueError("no")
EVENT = 'event="PodAdd"'


def queued(**fields: Any) -> QueuedPod:
    made = QueuedPod(a_pod("web"), 100.0)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


#: What is reported; the line's level, what it tells, the verbosity it needs; and what is counted.
CASES: dict[str, tuple[Callable[[Any], None], int, dict[str, Any], int, dict[str, float]]] = {
    "a binding": (
        lambda told: told.pod_bound("d/a", "n1", 7, 5),
        logging.INFO,
        {"pod": "d/a", "node": "n1", "evaluatedNodes": 7, "feasibleNodes": 5},
        2,
        {},
    ),
    "no fit": (
        lambda told: told.scheduling_failed("d/a", "Unschedulable", "0/1"),
        logging.INFO,
        {"pod": "d/a", "err": "0/1"},
        2,
        {},
    ),
    "an attempt that failed": (
        lambda told: told.scheduling_failed("d/a", "SchedulerError", "oh"),
        logging.ERROR,
        {"pod": "d/a", "err": "oh"},
        0,
        {},
    ),
    "a binding that failed": (
        lambda told: told.binding_failed("d/a", "n1", "oh"),
        logging.INFO,
        {"pod": "d/a", "node": "n1", "err": "oh"},
        2,
        {"asched_binding_failures_total": 1},
    ),
    "a plugin that raised": (
        lambda told: told.plugin_raised("Mine", "Filter", ERROR),
        logging.ERROR,
        {"plugin": "Mine", "point": "Filter"},
        0,
        {'asched_plugin_exceptions_total{extension_point="Filter",plugin="Mine"}': 1},
    ),
    "a complaint": (
        lambda told: told.complaint("odd"),
        logging.ERROR,
        {},
        0,
        {"asched_complaints_total": 1},
    ),
    "a pod that enters the queue": (
        lambda told: told.incoming("active", "PodAdd", queued()),
        logging.INFO,
        {"pod": "default/web", "event": "PodAdd", "queue": "Active"},
        4,
        {f'scheduler_queue_incoming_pods_total{{{EVENT},queue="active"}}': 1},
    ),
    "one that was rejected, without a pause": (
        lambda told: told.incoming(
            "backoff",
            "PodAdd",
            queued(rejected_by=frozenset({"Fit"}), pending_on=frozenset({"Affinity"}), attempts=3),
        ),
        logging.INFO,
        {
            "pod": "default/web",
            "event": "PodAdd",
            "queue": "Backoff",
            "rejectedBy": ["Affinity", "Fit"],
        },
        4,
        {f'scheduler_queue_incoming_pods_total{{{EVENT},queue="backoff"}}': 1},
    ),
    "one that has to pause": (
        lambda told: told.incoming(
            "backoff", "PodAdd", queued(attempts=3, backoff_until_s=104.0009)
        ),
        logging.INFO,
        {
            "pod": "default/web",
            "event": "PodAdd",
            "queue": "Backoff",
            "attempts": 3,
            "backoffSeconds": 4.001,
        },
        4,
        {f'scheduler_queue_incoming_pods_total{{{EVENT},queue="backoff"}}': 1},
    ),
    "one whose pause is over": (
        lambda told: told.incoming("active", "PodAdd", queued(attempts=3, backoff_until_s=104.0)),
        logging.INFO,
        {"pod": "default/web", "event": "PodAdd", "queue": "Active"},
        4,
        {f'scheduler_queue_incoming_pods_total{{{EVENT},queue="active"}}': 1},
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_a_report_is_counted_and_told_from_its_verbosity_on(
    what: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    report, level, told, needed, counted = CASES[what]
    for verbosity in (needed, needed + 1, needed - 1):
        monkeypatch.setattr(reports, "verbosity", lambda v=verbosity: v)
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="asched.scheduler"):
            assert moved(Metrics(), lambda m: report(m.scheduler)) == counted
        # A line carries the verbosity that it needs; below that the handler drops it.
        shown = [one for one in caplog.records if getattr(one, "v", 0) <= verbosity]
        if verbosity < needed:
            assert not shown
        else:
            (record,) = shown
            assert record.levelno == level
            assert extras(record) == told
            assert getattr(record, "v", 0) == needed


def test_the_exception_of_a_plugin_goes_along(caplog: pytest.LogCaptureFixture) -> None:
    Metrics().scheduler.plugin_raised("Mine", "Filter", ERROR)
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is ERROR


def test_a_complaint_is_told_in_its_own_words(caplog: pytest.LogCaptureFixture) -> None:
    Metrics().scheduler.complaint("odd")
    assert caplog.messages == ["odd"]


def test_who_is_no_pod_of_the_queue_has_no_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reports, "verbosity", lambda: 9)
    with caplog.at_level(logging.INFO, logger="asched.scheduler"):
        Metrics().scheduler.incoming("active", "PodAdd", None)
    assert not caplog.records
