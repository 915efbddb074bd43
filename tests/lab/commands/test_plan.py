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


@pytest.fixture
def pieces(tmp_path: Path) -> list[str]:
    """Two nodes with three free CPUs each, a pod that asks for four, and a configuration."""
    items = [a_node("n1", cpu="4"), a_node("n2", cpu="4"), a_pod("large", "4")]
    for name, node in (("web", "n1"), ("db", "n2")):
        metadata = {"name": name, "namespace": "default", "uid": f"uid-set-{name}"}
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}}
        kind = {"apiVersion": "apps/v1", "kind": "ReplicaSet"}
        items.append({**kind, "metadata": metadata, "spec": spec})
        pod = a_pod(name, "1")
        pod["spec"]["nodeName"] = node
        owner = {**kind, "name": name, "uid": f"uid-set-{name}", "controller": True}
        pod["metadata"] |= {
            "ownerReferences": [owner],
            "creationTimestamp": "2020-01-01T00:00:00Z",
        }
        items.append(pod)
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    config = tmp_path / "config.json"
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "Rebalance"}]}},
        "pluginConfig": [{"name": "Rebalance", "args": {"namespaces": ["default"]}}],
    }
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(json.dumps({**kind, "profiles": [profile]}))
    return ["plan", "--rebalance", f"--snapshot={file}", f"--config={config}"]


def test_moves_are_shown_for_pods_that_wait(
    pieces: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*pieces, "-o", "json"]) == 0
    (unit,) = json.loads(capsys.readouterr().out)
    (move,) = unit["moves"]
    assert (unit["unit"], unit["places"]) == (
        "pod default/large",
        [{"pod": "default/large", "node": move["from"]}],
    )
    assert {move["from"], move["to"]} == {"n1", "n2"}
    assert main(pieces) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == "pod default/large (priority 0): 1 move"
    assert lines[0] == f"  {move['pod']}  {move['from']} -> {move['to']}"


def test_moves_need_a_profile_with_the_plugin(
    pieces: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(pieces[:-1]) == 1
    assert "no profile of the configuration has the plugin Rebalance" in capsys.readouterr().err


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
