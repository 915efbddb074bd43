"""`asched bench` as a user meets it."""

import json
from pathlib import Path

import pytest
import yaml

from asched.cli.main import main

CASE = {
    "name": "Tiny",
    "workloadTemplate": [
        {"opcode": "createNodes", "count": 8},
        {"opcode": "createPods", "countParam": "$pods", "collectMetrics": True},
    ],
    "workloads": [
        {"name": "few", "labels": ["short"], "threshold": 1, "params": {"pods": 4}},
        {"name": "many", "params": {"pods": 200}},
        {
            "name": "gated",
            "params": {"pods": 1},
            "featureGates": {"DynamicResourceAllocation": False},
        },
        {"name": "full", "params": {"pods": 900}},
    ],
}


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump([CASE]))
    return str(file)


def test_a_table_with_the_threshold_beside_the_figure(config: str, capsys) -> None:
    assert main(["bench", "--config", config, "--label", "short"]) == 0
    out = capsys.readouterr().out
    assert "decide mode" in out
    (row,) = [line for line in out.splitlines() if line.startswith("Tiny/few")]
    assert row.split()[1] == "4"
    assert row.endswith("x")


def test_what_cannot_be_run_is_named_with_its_reason(config: str, capsys) -> None:
    assert main(["bench", "--config", config, "--workload", "gated"]) == 0
    out = capsys.readouterr().out
    assert "not run: Tiny/gated: feature gates:" in out
    assert "locked" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--test-case", "Huge"], "there are test cases Tiny"),
        (["--kubeconfig", "x"], "goes with --mode bind"),
        (["--json", "/nowhere/at/all"], "cannot write /nowhere/at/all"),
    ],
)
def test_wrong_usage_is_one_line(config: str, capsys, arguments: list[str], words: str) -> None:
    assert main(["bench", "--config", config, "--workload", "few", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.splitlines()) == 1


def test_devices_of_pods_that_went_are_free_for_those_that_come(tmp_path: Path) -> None:
    """There are two devices, and two pods at a time want one each, again and again."""
    wanted = {"name": "one", "exactly": {"deviceClassName": "test-class"}}
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "x"}]}}
    claims = [{"name": "x", "resourceClaimTemplateName": "template"}]
    files = {
        "class.yaml": {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "test-class"},
            "spec": {},
        },
        "template.yaml": {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "template"},
            "spec": {"spec": {"devices": {"requests": [wanted]}}},
        },
        "pod.yaml": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "pod-"},
            "spec": {"containers": [container], "resourceClaims": claims},
        },
    }
    for name, manifest in files.items():
        (tmp_path / name).write_text(yaml.safe_dump(manifest))
    driver = {"driverName": "driver", "nodes": "*", "maxClaimsPerNode": 2}
    pods = {
        "opcode": "createPods",
        "namespace": "test",
        "count": 2,
        "steadyState": True,
        "duration": "1s",
        "podTemplatePath": "pod.yaml",
        "collectMetrics": True,
    }
    case = {
        "name": "Again",
        "workloadTemplate": [
            {"opcode": "createNodes", "count": 1},
            {"opcode": "createResourceDriver", **driver},
            {"opcode": "createAny", "templatePath": "class.yaml"},
            {"opcode": "createAny", "templatePath": "template.yaml", "namespace": "test"},
            pods,
        ],
        "workloads": [{"name": "bound", "params": {}}],
    }
    config, out = tmp_path / "config.yaml", tmp_path / "o.json"
    config.write_text(yaml.safe_dump([case]))
    assert main(["bench", "--config", str(config), "--mode", "bind", "--json", str(out)]) == 0
    items = json.loads(out.read_text())["dataItems"]
    (found,) = [one for one in items if one["labels"]["Metric"] == "SchedulingThroughput"]
    assert int(found["labels"]["pods"]) > 2
