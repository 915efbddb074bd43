"""Families, labels and buckets as recorded from kube-scheduler 1.36.2; cheap to write; promtool."""

import json
import re
import shutil
import subprocess

import pytest

from asched.core.config.gates import default_gates
from asched.core.model.kinds import NODE
from asched.serve.telemetry.metrics import Metrics
from tests.support import recorded_text

#: Families of kube-scheduler that are to be as recorded.
WANTED = ("scheduler_", "rest_client_", "authentication_token_cache_")
#: Families of upstream's that have no meaning here, each with the reason.
MEANINGLESS = {
    "scheduler_batch_attempts_total": "equal pods share work by class, not by batch",
    "scheduler_batch_cache_flushed_total": "the same",
    "scheduler_get_node_hint_duration_seconds": "the same",
    "scheduler_store_schedule_results_duration_seconds": "the same",
    "rest_client_transport_cache_entries": "transports are not cached, each lane has its own",
    "rest_client_transport_create_calls_total": "the same",
    "rest_client_transport_cert_rotation_gc_calls_total": "Go's garbage collector",
    "rest_client_exec_plugin_certificate_rotation_age": "promtool refuses the name",
    "authentication_token_cache_active_fetch_count": "the same",
    "rest_client_exec_plugin_ttl_seconds": "certificates of exec plugins are read once",
}
#: Families that are looked up in a running scheduler (`serve/figures.py`).
LOOKED_UP = {
    "scheduler_cache_size",
    "scheduler_goroutines",
    "scheduler_inflight_events",
    "scheduler_pending_pods",
}


def drive(metrics):
    """One report of each kind."""
    metrics.show_async_calls()
    metrics.client.calls.ended("pod_binding", 0.1, is_done=True)
    seen = metrics.scheduler
    seen.attempt_ended("scheduled", "p", 0.002)
    seen.algorithm_ran(0.001)
    seen.pod_scheduled("p", 2, 0.5, was_flushed=True)
    seen.point_ran("Filter", "p", "Success", 0.0002)
    seen.points_passed("Permit", "p", "Success", 3)
    seen.plugin_ran("NodeName", "Filter", "Success", 0.00001)
    seen.evaluated("Filter", "p", ("NodeName", "NodePorts"), 7)
    seen.permit_waited("Success", 1.5)
    seen.fact_handled("NodeAdd", 0.0001, NODE)
    seen.preemption_tried()
    seen.preempting(3, 0, 0)
    seen.preempted("success", 0.1, "pod")
    seen.incoming("active", "NodeAdd")
    seen.unschedulable("NodeName", "p", 1)
    seen.hint_answered("NodeName", "NodeAdd", "Queue", 0.00002)
    seen.gates_ran("p", 0.00002)
    seen.device_awaited("p", "gpu.example.com", "success", 3.0)
    seen.device_bound("p", "gpu.example.com", "success")
    seen.volumes_failed("bind")
    seen.pod_bound("ns/a", "n1", 5, 5)
    seen.scheduling_failed("ns/a", "Unschedulable", "0/1 nodes are available")
    seen.binding_failed("ns/a", "n1", "refused")
    seen.plugin_raised("Mine", "schedule", ValueError("no"))
    seen.complaint("odd")
    metrics.client.requested(("POST", "host", "201", 0.01, 300, 700))
    metrics.client.rate_limiter.of("POST", "host").observe(0.0)
    metrics.client.request_retries.add("500", "POST", "host")
    metrics.own.extender_asked("http://x", "filter", "success", 0.01)
    metrics.client.created_claim(is_created=True)
    metrics.client.know_lanes(("binding",))
    metrics.client.worked("binding", 0.1, 0.2, is_retry=False)
    metrics.client.worked("binding", 0.1, 0.2, is_retry=True)
    metrics.client.binding_conflicts.add()
    metrics.client.adds.of("binding").value += 1
    metrics.own.loop_lag.observe(0.1)
    metrics.leader.leads("kube-scheduler", is_leader=True)
    with metrics.access.fetching_token():
        pass
    metrics.access.looked_at_token(0.1, is_known=False)
    metrics.tell_build(lambda: "0.1", {"A": ("BETA", True)})


def families(page):
    """name -> (type, label names, bucket bounds)."""
    found = {}
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            found[name] = (kind, set(), [])
        elif not line.startswith("#"):
            sample, labels = re.match(r"([a-zA-Z_:0-9]+)(?:\{(.*)\})? ", line).groups()
            name = re.sub(r"_(bucket|sum|count)$", "", sample)
            name = name if name in found else sample
            pairs = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))
            bound = pairs.pop("le", None)
            found[name][1].update(pairs)
            if bound is not None and bound not in found[name][2]:
                found[name][2].append(bound)
    return found


def test_a_report_of_each_kind_leaves_no_family_empty():
    """A new family needs a report in `drive`; one that no method feeds is found here."""
    metrics = Metrics()
    drive(metrics)
    page = metrics.render().decode()
    ours = {name for name in families(page) if not name.startswith(("process_", "python_"))}
    for line in page.splitlines():
        sample, value = line.rsplit(" ", 1)
        if not line.startswith("#") and float(value):
            name = sample.split("{")[0]
            ours -= {name, re.sub(r"_(bucket|sum|count)$", "", name)}
    assert not ours


def wanted():
    digest = json.loads(recorded_text("outside/metrics/load.json"))
    return {
        row["name"]: row
        for row in digest
        if row["name"].startswith(WANTED)
        and row["name"] not in MEANINGLESS
        and row["name"] not in LOOKED_UP
    }


def test_every_family_has_the_recorded_labels_and_buckets():
    metrics = Metrics()
    drive(metrics)

    ours = families(metrics.render().decode())

    for name, row in wanted().items():
        kind, labels, bounds = ours[name]
        assert kind == row["type"], name
        assert labels == set(row["labels"]), name
        theirs = [b for b in row.get("buckets", ()) if "$" not in b]
        assert [float(b) for b in bounds if float(b) in map(float, theirs)] == [
            float(b) for b in theirs
        ], name
        assert len(bounds) == len(row.get("buckets", ())), name


def test_stability_is_told_as_recorded():
    metrics = Metrics()
    drive(metrics)
    helps = dict(re.findall(r"# HELP (\S+) \[(\w+)\]", metrics.render().decode()))

    assert {name: helps[name] for name in wanted()} == {
        name: row["stability"] for name, row in wanted().items()
    }


def test_what_is_there_before_anything_happened_is_there_at_rest():
    rest = json.loads(recorded_text("outside/metrics/rest.json"))
    names = {
        row["name"]
        for row in rest
        if row["name"].startswith("scheduler_") and row["name"] not in LOOKED_UP
    } - {"scheduler_event_handling_duration_seconds"}  # the recording had seen nodes
    metrics = Metrics()
    metrics.scheduler.know_plugins([("NodeName", "Filter", "p")])

    ours = {name for name in families(metrics.render().decode()) if name.startswith("scheduler_")}

    assert ours == names


def test_the_gated_families_are_missing_without_the_gate():
    page = Metrics().render().decode()

    assert "scheduler_async_api_call" not in page


def test_no_input_makes_the_page_grow_without_end():
    metrics = Metrics()
    for number in range(6_000):
        metrics.scheduler.fact_handled(f"Strange{number}", 0.1, NODE)

    children = metrics.scheduler.event_duration.children

    assert len(children) == 5_001
    assert sum(children["other",].counts) == 1_000


def test_promtool_finds_nothing_to_say():
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian's package prometheus has it)")
    metrics = Metrics()
    drive(metrics)

    said = subprocess.run(
        [promtool, "check", "metrics"], input=metrics.render(), capture_output=True, check=False
    )

    assert (said.returncode, said.stdout, said.stderr) == (0, b"", b"")


def test_pod_groups_have_families_of_their_own_behind_their_gate_alone():
    """Labels and buckets of kube-scheduler v1.36, pkg/scheduler/metrics/metrics.go."""
    metrics = Metrics()
    metrics.scheduler.group_attempt_ended("scheduled", "p", 0.5)
    metrics.scheduler.group_algorithm_ran(0.5)
    assert "podgroup" not in metrics.render().decode()

    metrics.scheduler.know_groups()
    metrics.scheduler.know_groups()  # a second time changes nothing
    metrics.scheduler.group_attempt_ended("waiting_on_preemption", "p", 0.5)
    metrics.scheduler.group_algorithm_ran(0.5)

    page = metrics.render().decode()
    labels = 'profile="p",result="waiting_on_preemption"'
    assert f"scheduler_podgroup_schedule_attempts_total{{{labels}}} 1.0" in page
    attempt = "scheduler_podgroup_scheduling_attempt_duration_seconds"
    assert f"{attempt}_count{{{labels}}} 1.0" in page
    algorithm = "scheduler_podgroup_scheduling_algorithm_duration_seconds"
    assert f"{algorithm}_count 1.0" in page
    bounds = re.findall(rf'^{algorithm}_bucket{{le="([^"]+)"}}', page, re.MULTILINE)
    assert bounds[-1] == "+Inf"
    assert [float(bound) for bound in bounds[:-1]] == [0.001 * 2**power for power in range(15)]


@pytest.mark.parametrize(
    ("minor", "line"),
    [
        ("1.36", 'scheduler_resourceclaim_creates_total{status="success"} 1.0'),
        (
            "1.37",
            (
                'dynamic_resource_allocation_resourceclaim_creates_total{admin_access="false",'
                'owner_api_group="",owner_api_kind="Pod",status="success"} 1.0'
            ),
        ),
    ],
)
def test_claims_count_under_the_name_of_the_version(minor: str, line: str) -> None:
    metrics = Metrics()
    metrics.follow(default_gates(minor))
    metrics.client.created_claim(is_created=True)
    found = [x for x in metrics.render().decode().splitlines() if "claim_creates_total{" in x]
    assert found == [line]


@pytest.mark.parametrize(("minor", "stage"), [("1.36", "ALPHA"), ("1.37", "BETA")])
def test_stages_of_families_by_version(minor: str, stage: str) -> None:
    metrics = Metrics()
    metrics.follow(default_gates(minor))
    metrics.scheduler.plugin_ran("NodeName", "Filter", "Success", 0.00001)
    metrics.scheduler.incoming("active", "NodeAdd")
    lines = metrics.render().decode().splitlines()
    for name in ("plugin_execution", "scheduling_algorithm"):
        text = f"# HELP scheduler_{name}_duration_seconds [{stage}] "
        assert any(line.startswith(text) for line in lines)
    has_entities = any("queue_incoming_entities_total" in line for line in lines)
    assert has_entities is (minor != "1.36")


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_victims_of_groups_by_version(minor: str) -> None:
    metrics = Metrics()
    metrics.follow(default_gates(minor))
    metrics.scheduler.know_groups()
    metrics.scheduler.group_preempting("Unschedulable", 0, 0.5, 0, 0)
    metrics.scheduler.group_preempting("Success", 3, 0.5, 0, 0)
    metrics.scheduler.preempted("error", 0.5, "pod")
    lines = metrics.render().decode().splitlines()
    is_apart = minor == "1.37"
    assert ("scheduler_workload_preemption_victims_sum 3.0" in lines) is is_apart
    assert f"scheduler_preemption_victims_sum {0.0 if is_apart else 3.0}" in lines
    attempts = 'scheduler_workload_preemption_attempts_total{result="%s"} 1.0'
    assert (attempts % "Success" in lines) is (attempts % "Unschedulable" in lines) is is_apart
    search = (
        'scheduler_preemption_evaluation_duration_seconds_sum{preemptor="podgroup",result="%s"}'
    )
    assert (f"{search % 'Success'} 0.5" in lines) is is_apart
    evictions = 'scheduler_preemption_execution_duration_seconds_bucket{le="%s",preemptor="pod",'
    assert (f'{evictions % "32.768"}result="error"}} 1.0' in lines) is is_apart


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_the_build_is_that_of_the_version_that_is_followed(minor: str) -> None:
    metrics = Metrics()
    metrics.tell_build(lambda: "0.1", {}, minor)
    (line,) = [
        line for line in metrics.render().decode().splitlines() if line.startswith("kubernetes_b")
    ]
    assert f'git_version="v{minor}.' in line
    assert f'minor="{minor.partition(".")[2]}"' in line
