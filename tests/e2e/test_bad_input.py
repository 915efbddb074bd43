"""Bad input gets one clear line that says what, where and what to do. Never a traceback."""

import sys
from pathlib import Path

import pytest
import yaml

from asched_lab.apiserver.call import User
from asched_lab.apiserver.resources import NODES, PODS
from asched_lab.apiserver.server import ApiServer
from tests.e2e.inside import SCHEDULER, a_cluster, a_node, a_pod
from tests.e2e.outside import PROGRAM, a_process

FLAGS = ("--leader-elect=false", "--secure-port=0", f"--scheduler-name={SCHEDULER}")


async def complaint(
    folder: Path, *arguments: str, program: tuple[str, ...] = PROGRAM
) -> tuple[int, str]:
    """Exit status and everything said by a process that ends by itself."""
    async with a_process(folder, *FLAGS, *arguments, program=program) as process:
        status = await process.ended()
        words = process.words
    assert "Traceback" not in words
    return status, words


def last_line(words: str) -> str:
    return words.strip().splitlines()[-1]


def a_kubeconfig(folder: Path, url: str, token: str = "") -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": token} if token else {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return f"--kubeconfig={path}"


async def test_no_kubeconfig_anywhere(tmp_path: Path) -> None:
    status, words = await complaint(tmp_path)

    assert status == 1
    assert "kubeconfig" in last_line(words)
    assert "KUBECONFIG" in last_line(words)


@pytest.mark.parametrize("text", ["{", "clusters: 7"])
async def test_a_kubeconfig_that_makes_no_sense(text: str, tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_text(text, encoding="utf-8")
    status, words = await complaint(tmp_path, f"--kubeconfig={path}")

    assert status == 1
    assert str(path) in last_line(words)


async def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    status, words = await complaint(tmp_path, a_kubeconfig(tmp_path, "http://127.0.0.1:1"))

    assert status == 1
    assert "127.0.0.1:1" in last_line(words)
    assert "check the address" in last_line(words)


async def test_a_token_that_nobody_knows(tmp_path: Path) -> None:
    server = ApiServer(anonymous=False)
    await server.start(token="right")
    try:
        status, words = await complaint(tmp_path, a_kubeconfig(tmp_path, server.url, "wrong"))
    finally:
        await server.stop()

    assert status == 1
    assert "does not accept the credentials" in last_line(words)
    assert "renew the token" in last_line(words)


#: `asched` that waits half a second for rights, not 15.
IMPATIENT = """
import sys
from asched.cli.main import main
from asched.kube import watchdog
watchdog.REFUSED_S = 0.5
sys.exit(main())
"""


async def test_a_user_who_may_not_list(tmp_path: Path) -> None:
    server = ApiServer(users={"weak": User("somebody", ("system:authenticated",))})
    await server.start()
    try:
        status, words = await complaint(
            tmp_path,
            a_kubeconfig(tmp_path, server.url, "weak"),
            program=(sys.executable, "-c", IMPATIENT),
        )
    finally:
        await server.stop()

    assert status == 1
    line = last_line(words)
    assert "may not list or watch" in line
    assert "grant the verbs list and watch" in line
    assert '"somebody" cannot' in line


@pytest.mark.parametrize("quantity", ["a lot", "1..5", "--1", "1e", "12xyz"])
async def test_a_pod_with_a_broken_quantity_suffers_alone(quantity: str, tmp_path: Path) -> None:
    """1. A stored pod asks for nonsense. 2. The others are placed. 3. An event says what is wrong.

    No status can be written to it: the server cannot read the stored pod either.
    """
    async with a_cluster(tmp_path) as cluster:
        pod = a_pod("odd", schedulingGates=[{"name": "x.y/z"}])
        made = cluster.server.create("pods", pod)
        container = {**made["spec"]["containers"][0], "resources": {"requests": {"cpu": quantity}}}
        spec = {k: v for k, v in made["spec"].items() if k != "schedulingGates"}
        spec["containers"] = [container]
        cluster.server.store.put(PODS.storage, ("default", "odd"), {**made, "spec": spec})
        cluster.add_pods(10)
        await cluster.until_bound(10)
        await cluster.until_told("default", "odd", quantity)


def a_broken_node(server: ApiServer) -> None:
    node = server.create("nodes", a_node("odd"))
    status = {**node["status"], "allocatable": {"cpu": "plenty", "pods": "10"}}
    server.store.put(NODES.storage, ("", "odd"), {**node, "status": status})


async def test_a_node_with_a_broken_quantity_takes_no_pods(tmp_path: Path) -> None:
    """One broken node does not stop the others."""
    async with a_cluster(tmp_path, prepare=a_broken_node) as cluster:
        cluster.add_pods(10)
        await cluster.until_bound(10)

        assert all(pod["spec"]["nodeName"] != "odd" for pod in cluster.placed())
