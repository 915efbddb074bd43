"""Who leads, who asked for pages, and what is asched's own: which samples a report moves."""

from collections.abc import Callable

import pytest

from asched.serve.telemetry.metrics import Metrics
from tests.serve.telemetry.samples import kinds, moved, observed, samples

Report = Callable[[Metrics], None]

#: Names, labels and their values of upstream's: component-base/metrics/prometheus/clientgo/
#: leaderelection, apiserver/pkg/endpoints/filters, .../authentication/token/cache and
#: .../server/options (authentication and authorization metrics).
UPSTREAM: list[tuple[Report, dict[str, float]]] = [
    (
        lambda m: m.leader.leads("lease", is_leader=True),
        {'leader_election_master_status{name="lease"}': 1},
    ),
    (
        lambda m: m.leader.leads("lease", is_leader=False),
        {'leader_election_master_status{name="lease"}': 0},
    ),
    (
        lambda m: m.leader.took_slow_path("lease"),
        {'leader_election_slowpath_total{name="lease"}': 1},
    ),
    (
        lambda m: m.access.looked_at_token(0.5, is_known=True),
        {
            'authentication_token_cache_request_total{status="hit"}': 1,
            **observed("authentication_token_cache_request_duration_seconds", 'status="hit"', 0.5),
        },
    ),
    (
        lambda m: m.access.looked_at_token(0.25, is_known=False),
        {
            'authentication_token_cache_request_total{status="miss"}': 1,
            **observed(
                "authentication_token_cache_request_duration_seconds", 'status="miss"', 0.25
            ),
        },
    ),
    (
        lambda m: m.access.authenticated("failure", 2.0),
        observed("authentication_duration_seconds", 'result="failure"', 2.0),
    ),
    (
        lambda m: m.access.authorized("no-opinion", 0.5),
        {
            'authorization_attempts_total{result="no-opinion"}': 1,
            **observed("authorization_duration_seconds", 'result="no-opinion"', 0.5),
        },
    ),
    (
        lambda m: m.access.reviewed_token("201", 0.5),
        {
            'apiserver_delegated_authn_request_total{code="201"}': 1,
            **observed("apiserver_delegated_authn_request_duration_seconds", 'code="201"', 0.5),
        },
    ),
    (
        lambda m: m.access.reviewed_access("403", 0.5),
        {
            'apiserver_delegated_authz_request_total{code="403"}': 1,
            **observed("apiserver_delegated_authz_request_duration_seconds", 'code="403"', 0.5),
        },
    ),
]
OWN: list[tuple[Report, dict[str, float]]] = [
    (
        lambda m: m.own.plugin_raised("Mine", "Filter"),
        {'asched_plugin_exceptions_total{extension_point="Filter",plugin="Mine"}': 1},
    ),
    (lambda m: m.own.complained(), {"asched_complaints_total": 1}),
    (lambda m: m.own.binding_failed(), {"asched_binding_failures_total": 1}),
    (
        lambda m: m.own.extender_asked("http://x", "filter", "lost", 0.5),
        {
            'asched_extender_requests_total{extender="http://x",result="lost",verb="filter"}': 1,
            **observed(
                "asched_extender_request_duration_seconds",
                'extender="http://x",verb="filter"',
                0.5,
            ),
        },
    ),
    (
        lambda m: m.own.kubelet_refused("OutOfcpu", "others"),
        {'asched_pods_refused_by_kubelet_total{reason="OutOfcpu",whose="others"}': 1},
    ),
    (
        lambda m: m.own.quota_status_written("error"),
        {'asched_elasticquota_status_writes_total{result="error"}': 1},
    ),
    (
        lambda m: m.own.group_status_written("Running"),
        {'asched_podgroup_status_writes_total{phase="Running"}': 1},
    ),
    (
        lambda m: m.own.audit_compared("queue", 7),
        {'asched_audit_compared_total{part="queue"}': 7},
    ),
    (
        lambda m: m.own.audit_failed("pods"),
        {'asched_audit_failures_total{part="pods"}': 1},
    ),
    (
        lambda m: m.own.audit_differed("pods", "deleted"),
        {'asched_audit_differences_total{resource="pods",what="deleted"}': 1},
    ),
    (
        lambda m: m.own.reloaded("refused"),
        {'asched_config_reloads_total{result="refused"}': 1},
    ),
    (lambda m: m.own.lagged(0.5), observed("asched_event_loop_lag_seconds", "", 0.5)),
]


@pytest.mark.parametrize(("report", "expected"), UPSTREAM + OWN)
def test_a_report_moves_its_samples_and_no_others(
    report: Report, expected: dict[str, float]
) -> None:
    metrics = Metrics()
    assert moved(metrics, report) == expected
    again = {name: value for name, value in expected.items() if "_status{" not in name}
    assert moved(metrics, report) == again, "a counter goes on, a state stays"


def test_families_are_of_the_kind_that_their_names_promise() -> None:
    metrics = Metrics()
    for report, _ in UPSTREAM + OWN:
        report(metrics)
    for name, kind in kinds(metrics):
        if name.endswith("_total"):
            assert kind == "counter", name
        elif name.endswith("_seconds"):
            assert kind == "histogram", name


def test_a_lease_that_is_lost_is_told() -> None:
    metrics = Metrics()
    metrics.leader.leads("a", is_leader=True)
    metrics.leader.leads("b", is_leader=True)
    metrics.leader.leads("a", is_leader=False)
    found = samples(metrics)
    assert found['leader_election_master_status{name="a"}'] == 0
    assert found['leader_election_master_status{name="b"}'] == 1


def test_a_token_s_review_is_an_error_if_it_raises() -> None:
    metrics = Metrics()

    def fetch(m: Metrics, *errors: Exception) -> None:
        with m.access.fetching_token():
            for error in errors:
                raise error

    name = 'authentication_token_cache_fetch_total{{status="{}"}}'
    assert moved(metrics, fetch) == {name.format("ok"): 1}

    def failing(m: Metrics) -> None:
        with pytest.raises(OSError, match="gone"):
            fetch(m, OSError("gone"))

    assert moved(metrics, failing) == {name.format("error"): 1}


def test_the_build_and_the_gates_are_told() -> None:
    """Stages as upstream writes them: none for what is generally available."""
    metrics, asked = Metrics(), []

    def version() -> str:
        asked.append(1)
        return "9.8.7"

    gates = {"A": ("ALPHA", False), "B": ("BETA", True), "G": ("GA", True)}
    metrics.tell_build(version, gates)
    assert not asked
    found = samples(metrics)
    assert found['asched_build_info{version="9.8.7"}'] == 1
    assert found['kubernetes_build_info{git_version="v1.36.3",major="1",minor="36"}'] == 1
    enabled = {name: value for name, value in found.items() if "feature_enabled" in name}
    assert enabled == {
        'kubernetes_feature_enabled{name="A",stage="ALPHA"}': 0,
        'kubernetes_feature_enabled{name="B",stage="BETA"}': 1,
        'kubernetes_feature_enabled{name="G",stage=""}': 1,
    }
