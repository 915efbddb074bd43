"""Metrics flags: what is left out, and what is shown as unexpected."""

from asched.serve.telemetry.instruments import Exposition
from asched.serve.telemetry.metrics import Metrics

RESULTS = "scheduler_schedule_attempts_total"


def page(exposition: Exposition) -> str:
    metrics = Metrics(exposition)
    attempts = metrics.families.counter(RESULTS, "attempts", ("profile", "result"))
    attempts.of("a", "scheduled").value = 3
    attempts.of("a", "error").value = 2
    attempts.of("b", "unschedulable").value = 4
    sizes = metrics.families.histogram("sizes", "sizes", (1.0, 2.0), ("queue",))
    sizes.of("active").observe(1)
    sizes.of("gated").observe(2)
    sizes.of("backoff").observe(9)
    return metrics.render().decode()


def lines(text: str, name: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(name)]


def test_disabled_metrics_are_left_out_whoever_counts_them() -> None:
    disabled = (RESULTS, "process_open_fds", "sizes")
    shown, without = page(Exposition()), page(Exposition.of(disabled, {}))
    for name in disabled:
        assert lines(shown, name)
        assert not lines(without, name)
    assert lines(without, "process_max_fds")


def test_a_label_with_an_allow_list_adds_up_what_is_not_on_it() -> None:
    text = page(Exposition.of((), {f"{RESULTS},result": "scheduled,other"}))
    assert lines(text, RESULTS) == [
        f'{RESULTS}{{profile="a",result="unexpected"}} 2.0',
        f'{RESULTS}{{profile="a",result="scheduled"}} 3.0',
        f'{RESULTS}{{profile="b",result="unexpected"}} 4.0',
    ]


def test_buckets_of_unexpected_values_add_up_too() -> None:
    text = page(Exposition.of((), {"sizes,queue": "active"}))
    assert lines(text, 'sizes_bucket{le="2.0",queue="unexpected"}') == [
        'sizes_bucket{le="2.0",queue="unexpected"} 1.0'
    ]
    assert 'sizes_bucket{le="+Inf",queue="unexpected"} 2.0' in text
    assert 'sizes_sum{queue="unexpected"} 11.0' in text
    assert 'sizes_count{queue="active"} 1.0' in text
