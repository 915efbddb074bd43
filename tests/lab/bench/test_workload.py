"""Workload files: what they mean, and what is refused."""

import os
from pathlib import Path

import pytest
import yaml

from asched_lab.bench.workload import WorkloadError, read_file


def case(**more) -> dict:
    base = {
        "name": "Case",
        "workloadTemplate": [{"opcode": "createNodes", "countParam": "$nodes"}],
        "workloads": [{"name": "small", "params": {"nodes": 3}}],
    }
    return {**base, **more}


def write(tmp_path: Path, document: object) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def test_a_workloads_gates_override_its_cases(tmp_path) -> None:
    document = case(featureGates={"A": True, "B": True})
    document["workloads"][0]["featureGates"] = {"B": False}
    (workload,) = read_file(write(tmp_path, [document]))
    assert workload.gates == {"A": True, "B": False}


def test_sets_of_pods_are_unrolled(tmp_path) -> None:
    template = [
        {"opcode": "createNodes", "count": 1},
        {
            "opcode": "createPodSets",
            "countParam": "$sets",
            "namespacePrefix": "ns",
            "createPodsOp": {"opcode": "createPods", "countParam": "$each"},
        },
    ]
    document = case(workloadTemplate=template)
    document["workloads"] = [{"name": "w", "params": {"sets": 2, "each": 5}}]
    (workload,) = read_file(write(tmp_path, [document]))
    assert [(op.opcode, op.values.get("namespace")) for op in workload.ops] == [
        ("createNodes", None),
        ("createPods", "ns-0"),
        ("createPods", "ns-1"),
    ]


def pods(**fields) -> dict:
    return {"opcode": "createPods", "count": 1, **fields}


def ops(*operations: dict) -> dict:
    return case(workloadTemplate=list(operations))


def workload(**fields) -> dict:
    return case(workloads=[{"name": "w", "params": {"nodes": 1}, **fields}])


BOTH = pods(skipWaitToCompletion=True, collectMetrics=True)
UNDOLLARED = {"opcode": "createNodes", "countParam": "nodes"}
ENDLESS = {"opcode": "churn", "mode": "recreate", "templatePaths": []}
STAGE = {"opcode": "barrier", "stageRequirement": "Done"}

FAULTS = [
    ("an unknown key of a case", case(speed=1), "unknown key 'speed'"),
    ("an unknown field", ops(pods(size=1)), "unknown field 'size'"),
    ("an unknown opcode", ops({"opcode": "fly"}), "unknown opcode 'fly'"),
    ("an unused parameter", ops(pods()), "no operation uses nodes"),
    ("a missing parameter", workload(params={}), "no parameter 'nodes'"),
    ("a parameter without its dollar", ops(UNDOLLARED), r"must be \$"),
    ("a missing count", ops({"opcode": "createPods"}), "count is required"),
    ("a text as a count", workload(params={"nodes": "many"}), "must be a whole number"),
    ("a wait that is skipped and measured", ops(BOTH), "skipWaitToCompletion"),
    ("a volume without claim", ops(pods(persistentVolumeTemplatePath="pv.yaml")), "go together"),
    ("a recreating churn without a number", ops(ENDLESS), "number is required"),
    ("a negative threshold", workload(threshold=-1), "0 or more"),
    ("a gate that is no boolean", case(featureGates={"A": "yes"}), "must be true or false"),
    ("a duration without a unit", ops({"opcode": "sleep", "duration": "10"}), "must be a duration"),
    ("an unknown stage", ops(STAGE), "must be Scheduled or Attempted"),
]


@pytest.mark.parametrize(("document", "words"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_a_fault_is_one_line_that_names_the_file(tmp_path, document: dict, words: str) -> None:
    with pytest.raises(WorkloadError, match=words) as caught:
        read_file(write(tmp_path, [document]))
    text = str(caught.value)
    assert "config.yaml" in text
    assert "\n" not in text


def test_files_that_are_no_workload_files(tmp_path) -> None:
    with pytest.raises(WorkloadError, match="must be a list"):
        read_file(write(tmp_path, {"name": "x"}))
    with pytest.raises(WorkloadError, match="cannot be read"):
        read_file(tmp_path / "gone.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text("- [")
    with pytest.raises(WorkloadError, match="is no YAML"):
        read_file(broken)


def test_upstreams_files_are_understood() -> None:
    folder = os.environ.get("SCHEDULER_PERF")
    if not folder:
        pytest.skip("SCHEDULER_PERF does not name Kubernetes' test/integration/scheduler_perf")
    files = sorted(Path(folder).rglob("performance-config.yaml"))
    names = {workload.full_name for file in files for workload in read_file(file)}
    assert {"SchedulingBasic/5000Nodes_10000Pods", "EventHandlingPodUpdate/1Node_1000Pods"} <= names
