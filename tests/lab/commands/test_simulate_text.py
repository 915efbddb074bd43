"""What people read of a supposition."""

import json
from pathlib import Path

import pytest

from asched.cli.main import main
from tests.lab.whatif.clusters import a_deployment, a_node, a_pod


@pytest.fixture
def dump(tmp_path: Path) -> str:
    items = [
        a_node("n1"),
        a_node("n2"),
        a_pod("bare", on="n1"),
        a_pod("kept", on="n1", owner="Job/j"),
    ]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return f"--snapshot={file}"


@pytest.fixture
def web(tmp_path: Path) -> str:
    file = tmp_path / "web.json"
    file.write_text(json.dumps(a_deployment("web", 20)))
    return str(file)


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(["simulate", *words]) == status
    printed = capsys.readouterr()
    return printed.out if status == 0 else printed.err


def test_places_and_reasons_are_counted(dump: str, web: str, capsys) -> None:
    lines = said(capsys, dump, "-f", web, "--drain", "n1", "--like", "n1=1").splitlines()
    assert lines[0] == "1 new node: n1-like-1"
    assert lines[1] == "Deployment default/web: 7 of 20 placed on 2 nodes, 13 wait"
    assert lines[3].startswith("  13 wait: 0/3 nodes are available: 1 node(s) were unschedulable, ")
    assert "pods made in place of removed pods: 1 of 1 placed on 1 node" in lines
    assert "1 pod would be lost, no controller recreates them: default/bare" in lines
    cpu = next(line for line in lines if line.startswith("cpu"))
    assert cpu.split() == ["cpu", "8", "25.0%", "100.0%"]


def test_two_configurations_are_told_apart(dump: str, web: str, tmp_path: Path, capsys) -> None:
    packing = tmp_path / "packing.yaml"
    packing.write_text(
        """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins:
    multiPoint:
      disabled: [{name: NodeResourcesBalancedAllocation}, {name: PodTopologySpread}]
"""
    )
    words = (dump, "-f", web, "--replicas", "2", f"--against-config={packing}")
    printed = said(capsys, *words)
    assert f"against {packing}: 2 placed and 0 wait there, 2 and 0 here" in printed
    assert "1 pod differs" in printed
    assert ": n2, there n1" in printed
    body = json.loads(said(capsys, *words, "-o", "json"))
    assert [(one["here"], one["against"]) for one in body["differences"]] == [("n2", "n1")]


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("--drain", "n7"), 2, "asched simulate: there is no node 'n7'\n"),
        (("-f", "/nonexistent"), 1, "asched simulate: open /nonexistent: no such file"),
        (("--config", "/nonexistent"), 2, "asched simulate: open /nonexistent: no such file"),
        (("--picture", "/nonexistent/x"), 1, "asched simulate: cannot write /nonexistent/x"),
        (("--feature-gates", "A=b"), 2, "asched simulate: "),
    ],
)
def test_wrong_words_are_one_line(
    words: tuple[str, ...], status: int, told: str, dump: str, capsys
) -> None:
    printed = said(capsys, dump, *words, status=status)
    assert printed.startswith(told)
    assert printed.count("\n") == 1


def test_a_node_count_must_make_sense(dump: str, capsys) -> None:
    with pytest.raises(SystemExit):
        main(["simulate", dump, "--like", "n1"])
    assert "'n1' is not of the form NODE=N" in capsys.readouterr().err
