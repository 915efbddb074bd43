"""What `asched simulate` says of pods that were not tried, and of kinds that it does not read."""

import json
from pathlib import Path
from typing import Any

import pytest

from asched.cli.main import main
from tests.builders import a_node, a_pod

NODE = {"apiVersion": "v1", "kind": "Node", **a_node("n").allocatable(cpu="4", pods="9").json}
GROUP = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "default"},
    "spec": {"minMember": 2},
}
VOLCANO_JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "v", "namespace": "default"},
    "spec": {"minAvailable": 2},
}
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: Coscheduling}], disabled: [{name: PrioritySort}]}
"""


def member(name: str) -> dict[str, Any]:
    pod = a_pod(name).labels({"scheduling.x-k8s.io/pod-group": "g"})
    return {"apiVersion": "v1", "kind": "Pod", **pod.spec(schedulerName="default-scheduler").json}


def simulated(folder: Path, dump: list[Any], manifests: list[Any]) -> int:
    (folder / "cluster.json").write_text(json.dumps({"kind": "List", "items": dump}))
    (folder / "more.json").write_text(json.dumps({"kind": "List", "items": manifests}))
    (folder / "config.yaml").write_text(CONFIG)
    words = ["--dump", str(folder / "cluster.json"), "--config", str(folder / "config.yaml")]
    return main(["simulate", *words, "-f", str(folder / "more.json")])


def test_an_incomplete_gang_says_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulated(tmp_path, [NODE, GROUP], [member("p")]) == 0

    printed = capsys.readouterr().out
    assert "1 waits: the gang is incomplete: 1 of minMember 2 pods exist" in printed
    assert "not tried" not in printed


def test_a_gang_without_its_pod_group_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulated(tmp_path, [NODE], [member("p")]) == 0

    printed = capsys.readouterr().out
    assert "waits for its PodGroup g of scheduling.x-k8s.io, which does not exist" in printed


def test_a_kind_that_is_not_read_is_named_with_its_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulated(tmp_path, [NODE, VOLCANO_JOB], [VOLCANO_JOB]) == 0

    printed = capsys.readouterr()
    assert "note: Job.batch.volcano.sh default/v is left out: asched does not read" in printed.out
    assert "not read: Job.batch.volcano.sh: asched does not use this kind" in printed.err
