"""What is asked of the API server: which samples a report moves, under upstream's names."""

from collections.abc import Callable

import pytest

from asched.serve.telemetry.metrics import Metrics
from tests.serve.telemetry.samples import moved, observed, samples

Report = Callable[[Metrics], None]

#: Names and labels of upstream's: component-base/metrics/prometheus/{restclient,workqueue} and
#: pkg/scheduler/metrics. What is not known of an exchange is not observed.
REPORTS: list[tuple[Report, dict[str, float]]] = [
    (
        lambda m: m.client.requested(("PUT", "h", "200", 0.5, 300, 700)),
        {
            'rest_client_requests_total{code="200",host="h",method="PUT"}': 1,
            **observed("rest_client_request_duration_seconds", 'host="h",verb="PUT"', 0.5),
            **observed("rest_client_request_size_bytes", 'host="h",verb="PUT"', 300),
            **observed("rest_client_response_size_bytes", 'host="h",verb="PUT"', 700),
        },
    ),
    (
        lambda m: m.client.requested(("PUT", "h", "200", None, 0, None)),
        {
            'rest_client_requests_total{code="200",host="h",method="PUT"}': 1,
            **observed("rest_client_request_size_bytes", 'host="h",verb="PUT"', 0),
        },
    ),
    (
        lambda m: m.client.throttled("GET", "h", 0.5),
        observed("rest_client_rate_limiter_duration_seconds", 'host="h",verb="GET"', 0.5),
    ),
    (
        lambda m: m.client.retried("500", "GET", "h"),
        {'rest_client_request_retries_total{code="500",host="h",verb="GET"}': 1},
    ),
    (
        lambda m: m.client.created_claim(is_created=True),
        {'scheduler_resourceclaim_creates_total{status="success"}': 1},
    ),
    (
        lambda m: m.client.created_claim(is_created=False),
        {'scheduler_resourceclaim_creates_total{status="failure"}': 1},
    ),
    (lambda m: m.client.added("binding"), {'workqueue_adds_total{name="binding"}': 1}),
    (
        lambda m: m.client.worked("binding", 0.5, 0.25, is_retry=False),
        {
            **observed("workqueue_queue_duration_seconds", 'name="binding"', 0.5),
            **observed("workqueue_work_duration_seconds", 'name="binding"', 0.25),
        },
    ),
    (
        lambda m: m.client.worked("binding", 0.5, 0.25, is_retry=True),
        {
            'workqueue_retries_total{name="binding"}': 1,
            **observed("workqueue_work_duration_seconds", 'name="binding"', 0.25),
        },
    ),
]


@pytest.mark.parametrize(("report", "expected"), REPORTS)
def test_a_report_moves_its_samples_and_no_others(
    report: Report, expected: dict[str, float]
) -> None:
    metrics = Metrics()
    # A sum of nothing appears the first time alone.
    assert moved(metrics, report) == expected
    assert moved(metrics, report) == {name: by for name, by in expected.items() if by}


@pytest.mark.parametrize(("is_done", "result"), [(True, "success"), (False, "error")])
def test_calls_are_told_by_type_and_result_once_they_are_shown(is_done: bool, result: str) -> None:
    metrics = Metrics()
    assert metrics.client.calls is None
    metrics.show_async_calls()
    calls = metrics.client.calls
    assert calls is not None
    name, labels = "scheduler_async_api_call_execution", f'call_type="x",result="{result}"'
    assert moved(metrics, lambda _: calls.ended("x", 0.5, is_done=is_done)) == {
        f"{name}_total{{{labels}}}": 1,
        **observed(f"{name}_duration_seconds", labels, 0.5),
    }


def test_lanes_that_are_known_show_zeros_from_the_start() -> None:
    metrics = Metrics()
    metrics.client.know_lanes(("a", "b"))
    found = samples(metrics)
    for name in ("adds", "retries"):
        for lane in "ab":
            assert found[f'workqueue_{name}_total{{name="{lane}"}}'] == 0
