"""The life of a release on a real API server: `helm install`, `upgrade`, `rollback`, `uninstall`.

There are no kubelets: the test runs what the pods of the Deployment would.
"""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.deploy.clusters import Cluster, account_of, started, traces
from tests.deploy.manifests import DEPLOY, LOADER, JsonObject, helm, one
from tests.e2e.inside import a_node, a_pod
from tests.e2e.outside import a_process
from tests.support import HANG_S, real_api_server

SPACE = "x"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with real_api_server() as path:
        yield Cluster(path)


class Release:
    """The release y of the chart."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def run(self, command: str, *words: str) -> str:
        given = [helm(), f"--kubeconfig={self._cluster.kubeconfig}", f"--namespace={SPACE}"]
        ran = subprocess.run(
            [*given, *command.split(), "y", *words], capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def install(self) -> list[JsonObject]:
        self.run("install", str(DEPLOY / "chart"), "--create-namespace")
        return self.objects()

    def objects(self) -> list[JsonObject]:
        return [obj for obj in yaml.load_all(self.run("get manifest"), LOADER) if obj]

    def configuration(self) -> dict[str, str]:
        """The ConfigMaps that exist, of which the Deployment must name the only one."""
        made = json.loads(self._cluster.do("-n", SPACE, "get", "configmaps", "-o=json"))["items"]
        maps = {one["metadata"]["name"]: one["data"]["config.yaml"] for one in made}
        path = "-o=jsonpath={.spec.template.spec.volumes[0].configMap.name}"
        assert self._cluster.do("-n", SPACE, "get", "deployment", "y-asched", path) in maps
        assert len(maps) == 1
        return maps


async def bound(cluster: Cluster, name: str) -> None:
    """Create a pod for asched, and wait until it has a node."""
    cluster.do("apply", "-f", "-", send=[{"apiVersion": "v1", "kind": "Pod", **a_pod(name)}])
    while not cluster.do("get", "pod", name, "-o=jsonpath={.spec.nodeName}"):  # noqa: ASYNC110
        await asyncio.sleep(0.1)


def lease(cluster: Cluster) -> JsonObject:
    return dict(json.loads(cluster.do("-n", SPACE, "get", "lease", "asched", "-o=json")))


@pytest.mark.real
async def test_install_upgrade_roll_back_uninstall_install(
    cluster: Cluster, tmp_path: Path
) -> None:
    release = Release(cluster)
    node = {"apiVersion": "v1", "kind": "Node", **a_node("node")}
    cluster.do("apply", "-f", "-", send=[node])
    status = json.dumps({"status": node["status"]})
    cluster.do("patch", "node", "node", "--subresource=status", f"--patch={status}")
    objects = release.install()
    mine = tmp_path / "mine.yaml"
    mine.write_text(
        f"{one(objects, 'ConfigMap')['data']['config.yaml']}parallelism: 8\n", encoding="utf-8"
    )
    async with asyncio.timeout(HANG_S), a_leader(cluster, objects, tmp_path) as leader:
        await bound(cluster, "first")
        first, holder = release.configuration(), lease(cluster)["spec"]["holderIdentity"]

        release.run("upgrade", str(DEPLOY / "chart"), f"--set-file=config={mine}")

        second = release.configuration()
        assert first.keys() != second.keys()
        assert list(second.values()) == [mine.read_text(encoding="utf-8")]

        release.run("rollback", "1")

        assert release.configuration() == first
        assert lease(cluster)["spec"]["holderIdentity"] == holder
        await bound(cluster, "second")

        # The pods end after Helm has deleted their rights.
        release.run("uninstall")
        leader.signal(signal.SIGTERM)
        await leader.ended()

        assert traces(cluster) == []

    async with (
        asyncio.timeout(HANG_S),
        a_leader(cluster, release.install(), tmp_path) as leader,
    ):
        await bound(cluster, "third")
        # It took a Lease without a holder: no wait for a leader that is gone.
        assert lease(cluster)["spec"]["leaseTransitions"] == 1
        assert "forbidden" not in leader.words.lower(), leader.words
    release.run("uninstall")
    assert traces(cluster) == []


def a_leader(cluster: Cluster, objects: list[JsonObject], folder: Path):
    environment = {"KUBECONFIG": cluster.account(SPACE, account_of(objects), folder)}
    return a_process(folder, *started(objects, folder), environment=environment)
