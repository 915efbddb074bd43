"""`asched plan`: its words, its file, its exit status."""

import json
from pathlib import Path

import pytest

from asched.cli.main import main
from tests.lab.whatif.clusters import a_node, a_pod


@pytest.fixture
def dump(tmp_path: Path) -> str:
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
    items = [a_node("n1"), system]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return f"--snapshot={file}"


@pytest.fixture
def pod(tmp_path: Path) -> str:
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(a_pod("web")))
    return str(file)


def test_a_plan_is_written_for_its_owner_alone_and_can_be_checked(
    dump: str, pod: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "a.plan"
    assert main(["plan", dump, "-f", pod, "--out", str(plan)]) == 0
    assert capsys.readouterr().out.startswith("planned: 1 pods on 1 nodes\n")
    assert plan.stat().st_mode & 0o777 == 0o600
    assert main(["plan", dump, "--check", str(plan), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["pods"][0]["node"] == "n1"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((), 2, "give either -f FILE, or --check PLAN, or --apply PLAN"),
        (("-f", "x", "--check", "y"), 2, "give either -f FILE"),
        (("--apply", "x"), 2, "--apply needs the live cluster, not a --snapshot"),
        (("--check", "x", "--replicas", "3"), 2, "--replicas has no effect with x"),
        (("--check", "/nonexistent"), 1, "/nonexistent is refused\nasched plan: open /nonexistent"),
        (("-f", "{pod}", "--replicas", "9"), 1, "there is no plan\n"),
        (("-f", "{pod}", "--out", "/nonexistent/x"), 1, "cannot write /nonexistent/x"),
    ],
)
def test_what_cannot_be_is_told(
    words: tuple[str, ...],
    status: int,
    said: str,
    dump: str,
    pod: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["plan", dump, *(word.format(pod=pod) for word in words)]) == status
    assert said in capsys.readouterr().err
