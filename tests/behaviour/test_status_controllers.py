"""The status of PodGroups and ElasticQuotas is written where it is asked for, and not elsewhere."""

import asyncio
import json
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from asched.cli.main import main
from asched_lab.apiserver.context import Options
from asched_lab.apiserver.resources import POD_GROUPS
from asched_lab.apiserver.server import ApiServer
from tests.builders import a_node, a_pod
from tests.deploy.manifests import DEPLOY, container, one, rendered
from tests.e2e.outside import Asched, a_process
from tests.support import HANG_S

GROUP: Final = "scheduling.x-k8s.io"
CONFIG: Final = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "profiles": [
        {
            "schedulerName": "asched",
            "plugins": {
                "multiPoint": {
                    "enabled": [{"name": "Coscheduling"}, {"name": "CapacityScheduling"}],
                    "disabled": [{"name": "PrioritySort"}],
                },
                "postFilter": {
                    "enabled": [{"name": "CapacityScheduling"}],
                    "disabled": [{"name": "*"}],
                },
            },
        }
    ],
}
OBJECTS: Final = (
    (
        f"podgroups.{GROUP}",
        {
            "apiVersion": f"{GROUP}/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": "job", "namespace": "default"},
            "spec": {"minMember": 1},
        },
    ),
    (
        f"elasticquotas.{GROUP}",
        {
            "apiVersion": f"{GROUP}/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": "quota", "namespace": "default"},
            "spec": {"min": {"cpu": "2"}, "max": {"cpu": "2"}},
        },
    ),
)


class World:
    def __init__(self, server: ApiServer, asched: Asched) -> None:
        self._server = server
        self.asched = asched

    def status(self, plural: str, name: str) -> dict[str, Any]:
        found = self._server.get(f"{plural}.{GROUP}", "default", name) or {}
        status: dict[str, Any] = found.get("status", {})
        return status

    @property
    def is_bound(self) -> bool:
        pod = self._server.get("pods", "default", "web") or {}
        return bool(pod["spec"].get("nodeName"))


@asynccontextmanager
async def running(folder: Path, *flags: str) -> AsyncIterator[World]:
    """A group of one pod in a namespace with a quota, and asched as a process."""
    server = ApiServer(kubelet=True, options=Options(alpha=POD_GROUPS))
    await server.start()
    (folder / "kubeconfig").write_text(server.kubeconfig(), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    server.create("nodes", a_node("n").allocatable(cpu="4", pods="10").json)
    for plural, manifest in OBJECTS:
        server.create(plural, dict(manifest))
    pod = a_pod("web").labels(**{f"{GROUP}/pod-group": "job"}).spec(schedulerName="asched")
    server.create("pods", pod.json)
    environment = {"KUBECONFIG": str(folder / "kubeconfig")}
    words = (f"--config={folder / 'config.json'}", "--secure-port=0", *flags)
    try:
        async with a_process(folder, *words, environment=environment) as asched:
            yield World(server, asched)
    finally:
        await server.stop()


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_S):
        while not reached():  # noqa: ASYNC110 - another process acts
            await asyncio.sleep(0.05)


async def test_statuses_are_written_with_the_flag(tmp_path: Path) -> None:
    async with running(tmp_path, "--status-controllers") as world:
        await until(lambda: world.status("podgroups", "job").get("phase", "") == "Running")
        await until(lambda: "used" in world.status("elasticquotas", "quota"))


async def test_no_status_is_written_without_the_flag(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await until(lambda: world.is_bound)
        world.asched.signal(signal.SIGTERM)
        assert await world.asched.ended() == 0
        assert not world.status("podgroups", "job")
        assert not world.status("elasticquotas", "quota")


def test_args_that_need_the_flag_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config: dict[str, Any] = json.loads(json.dumps(CONFIG))
    args = [{"name": "Coscheduling", "args": {"statusController": True}}]
    config["profiles"][0]["pluginConfig"] = args
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    words = [f"--config={tmp_path / 'config.json'}", f"--write-config-to={tmp_path / 'out'}"]

    warned = "statusController: true has no effect without --status-controllers"
    assert main(["run", *words]) == 0
    assert warned in capsys.readouterr().err
    assert main(["run", "--status-controllers", *words]) == 0
    assert warned not in capsys.readouterr().err


def test_the_component_turns_the_flag_on(tmp_path: Path) -> None:
    shutil.copytree(DEPLOY, tmp_path / "deploy", ignore=shutil.ignore_patterns("*.lock"))
    overlay = tmp_path / "deploy/overlays/chosen"
    overlay.mkdir()
    components = ["../../components/status-controllers"]
    (overlay / "kustomization.yaml").write_text(
        json.dumps({"resources": ["../single"], "components": components}), encoding="utf-8"
    )
    objects = rendered(overlay)
    assert "--status-controllers" in container(one(objects, "Deployment", "asched"))["args"]
    assert one(objects, "ClusterRole", "asched-status-controllers")
