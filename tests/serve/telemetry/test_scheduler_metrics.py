"""What the machine reports: which scheduler_* samples move, under upstream's names and labels."""

from collections.abc import Callable

import pytest

from asched.serve.telemetry.metrics import Metrics
from tests.serve.telemetry.samples import moved, observed, samples

Report = Callable[[Metrics], None]

POINT = "scheduler_framework_extension_point_duration_seconds"
PERMIT = 'extension_point="Permit",profile="p",status="Success"'
DEVICE = 'driver="d",profile="p",status="timeout"'

#: Names and labels of pkg/scheduler/metrics/metrics.go and of the plugins' own metrics.go.
REPORTS: list[tuple[Report, dict[str, float]]] = [
    (
        lambda m: m.scheduler.attempt_ended("error", "p", 0.5),
        {
            'scheduler_schedule_attempts_total{profile="p",result="error"}': 1,
            **observed(
                "scheduler_scheduling_attempt_duration_seconds", 'profile="p",result="error"', 0.5
            ),
        },
    ),
    (
        lambda m: m.scheduler.algorithm_ran(0.5),
        observed("scheduler_scheduling_algorithm_duration_seconds", "", 0.5),
    ),
    (
        lambda m: m.scheduler.pod_scheduled("p", 14, 0.5, was_flushed=False),
        {
            **observed("scheduler_pod_scheduling_sli_duration_seconds", 'attempts="14"', 0.5),
            **observed("scheduler_pod_scheduling_attempts", "", 14),
        },
    ),
    (  # getAttemptsLabel: "15+" from 15 on
        lambda m: m.scheduler.pod_scheduled("p", 15, 0.5, was_flushed=True),
        {
            **observed("scheduler_pod_scheduling_sli_duration_seconds", 'attempts="15+"', 0.5),
            **observed("scheduler_pod_scheduling_attempts", "", 15),
            "scheduler_pod_scheduled_after_flush_total": 1,
        },
    ),
    (
        lambda m: m.scheduler.point_ran("Permit", "p", "Success", 0.5),
        observed(POINT, PERMIT, 0.5),
    ),
    (
        lambda m: m.scheduler.points_passed("Permit", "p", "Success", 3),
        {f"{POINT}_count{{{PERMIT}}}": 3, f"{POINT}_sum{{{PERMIT}}}": 0},
    ),
    (
        lambda m: m.scheduler.gates_asked("p", 0.5),
        observed(POINT, 'extension_point="PreEnqueue",profile="p",status="Success"', 0.5),
    ),
    (
        lambda m: m.scheduler.plugin_ran("Fit", "Filter", "Error", 0.5),
        observed(
            "scheduler_plugin_execution_duration_seconds",
            'extension_point="Filter",plugin="Fit",status="Error"',
            0.5,
        ),
    ),
    (
        lambda m: m.scheduler.permit_waited("timeout", 0.5),
        observed("scheduler_permit_wait_duration_seconds", 'result="timeout"', 0.5),
    ),
    (
        lambda m: m.scheduler.fact_handled("NodeAdd", 0.5),
        observed("scheduler_event_handling_duration_seconds", 'event="NodeAdd"', 0.5),
    ),
    (
        lambda m: m.scheduler.preemption_tried(),
        {"scheduler_preemption_attempts_total": 1},
    ),
    (
        lambda m: m.scheduler.preempting(3),
        observed("scheduler_preemption_victims", "", 3),
    ),
    (
        lambda m: m.scheduler.preempted("error", 0.5),
        {
            'scheduler_preemption_goroutines_execution_total{result="error"}': 1,
            **observed("scheduler_preemption_goroutines_duration_seconds", 'result="error"', 0.5),
        },
    ),
    (
        lambda m: m.scheduler.incoming("active", "NodeAdd"),
        {'scheduler_queue_incoming_pods_total{event="NodeAdd",queue="active"}': 1},
    ),
    (
        lambda m: m.scheduler.hint_answered("Fit", "NodeAdd", "Queue", 0.5),
        observed(
            "scheduler_queueing_hint_execution_duration_seconds",
            'event="NodeAdd",hint="Queue",plugin="Fit"',
            0.5,
        ),
    ),
    (
        lambda m: m.scheduler.unschedulable("Fit", "p", 2),
        {'scheduler_unschedulable_pods{plugin="Fit",profile="p"}': 2},
    ),
    (
        lambda m: m.scheduler.unschedulable("Fit", "p", -1),
        {'scheduler_unschedulable_pods{plugin="Fit",profile="p"}': -1},
    ),
    (
        lambda m: m.scheduler.device_awaited("p", "d", "timeout", 0.5),
        observed("scheduler_dra_bindingconditions_wait_duration_seconds", DEVICE, 0.5),
    ),
    (
        lambda m: m.scheduler.device_bound("p", "d", "timeout"),
        {f"scheduler_dra_bindingconditions_allocations_total{{{DEVICE}}}": 1},
    ),
    (
        lambda m: m.scheduler.volumes_failed("bind"),
        {'scheduler_volume_scheduling_stage_error_total{operation="bind"}': 1},
    ),
    (
        lambda m: m.scheduler.evaluated("Filter", "p", ("A", "B"), 7),
        {
            "scheduler_plugin_evaluation_total"
            f'{{extension_point="Filter",plugin="{plugin}",profile="p"}}': 7
            for plugin in "AB"
        },
    ),
]


@pytest.mark.parametrize(("report", "expected"), REPORTS)
def test_a_report_moves_its_samples_and_no_others(
    report: Report, expected: dict[str, float]
) -> None:
    metrics = Metrics()
    assert moved(metrics, report) == expected
    assert moved(metrics, report) == {name: by for name, by in expected.items() if by}


def test_groups_are_counted_by_result_and_profile() -> None:
    metrics = Metrics()
    metrics.scheduler.know_groups()
    name, labels = "scheduler_podgroup", 'profile="p",result="error"'
    assert moved(metrics, lambda m: m.scheduler.group_attempt_ended("error", "p", 0.5)) == {
        f"{name}_schedule_attempts_total{{{labels}}}": 1,
        **observed(f"{name}_scheduling_attempt_duration_seconds", labels, 0.5),
    }
    assert moved(metrics, lambda m: m.scheduler.group_algorithm_ran(0.5)) == observed(
        f"{name}_scheduling_algorithm_duration_seconds", "", 0.5
    )
    counted = samples(metrics)
    metrics.scheduler.know_groups()
    assert samples(metrics) == counted, "known a second time, nothing is forgotten"
