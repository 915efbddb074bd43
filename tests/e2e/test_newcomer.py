"""What a newcomer does, with the commands of the pages: clone, demo, install, first pod, explain,
upgrade, roll back, uninstall. On a real control plane; asched runs in place of its image.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.deploy.clusters import Cluster, traces
from tests.deploy.distributions import added, built, installed, run
from tests.deploy.manifests import helm, kubectl
from tests.e2e.control_plane import ControlPlane
from tests.e2e.controllers import controllers
from tests.e2e.documented import block, command, commands
from tests.e2e.kubelet import a_kubelet
from tests.e2e.reference_scheduler import kube_scheduler
from tests.support import HANG_S, ROOT

#: A page, and how a command of it begins.
Step = tuple[str, str]

README, START = "README.md", "docs/index.md"
INSTALL, UPGRADE, REMOVE = "docs/install.md", "docs/upgrade.md", "docs/uninstall.md"
#: What `helm install` prints.
NOTES = "notes"
#: For the whole way, each step of which may take HANG_S.
WAY_S = 2 * HANG_S


class Way(NamedTuple):
    """How to install, and what follows from it; `prepare` and `change` are the reader's edits."""

    deployment: tuple[str, str]
    prepare: str
    install: tuple[Step, ...]
    check: tuple[Step, ...]
    explain: Step
    change: str
    upgrade: tuple[Step, ...]
    rollback: tuple[Step, ...]
    uninstall: tuple[Step, ...]


WAYS = {
    "helm": Way(
        deployment=("x", "y-asched"),
        prepare="cp config/default.yaml mine.yaml",
        install=((INSTALL, "helm template y"), (INSTALL, "helm install y")),
        check=((NOTES, "kubectl -n x rollout status"), (NOTES, "asched doctor")),
        explain=(NOTES, "asched explain POD"),
        change="cp config/high-load.yaml mine.yaml",
        upgrade=((UPGRADE, "helm upgrade y"), (UPGRADE, "kubectl -n x rollout status")),
        rollback=((UPGRADE, "helm rollback y"), (UPGRADE, "kubectl -n x rollout status")),
        uninstall=((REMOVE, "helm uninstall y"), (REMOVE, "kubectl delete namespace x")),
    ),
    "kustomize": Way(
        deployment=("asched-system", "asched"),
        prepare="true",
        install=(
            (README, "asched doctor"),
            (README, "mkdir my-cluster"),
            (README, "echo 'resources:"),
            (README, "echo 'images:"),
            (README, "kubectl apply -k my-cluster"),
        ),
        check=((INSTALL, "kubectl -n asched-system rollout status"), (README, "asched doctor")),
        explain=(START, ".venv/bin/asched explain"),
        change=f"""
            cp config/high-load.yaml my-cluster
            cat >> my-cluster/kustomization.yaml <<END\n{block(INSTALL, "configMapGenerator")}END
        """,
        upgrade=(
            (UPGRADE, "kubectl apply -k my-cluster"),
            (UPGRADE, "kubectl -n asched-system rollout status"),
        ),
        rollback=(
            (UPGRADE, "kubectl -n asched-system rollout undo"),
            (UPGRADE, "kubectl -n asched-system rollout status"),
        ),
        uninstall=((REMOVE, "kubectl delete -k my-cluster"),),
    ),
}


class Newcomer:
    """A shell in a clone, and a page beside it."""

    def __init__(self, clone: Path, environment: dict[str, str]) -> None:
        self._clone = clone
        self._environment = environment
        self.notes = ""

    async def run(self, text: str) -> str:
        """What a command prints; a test fails if the command does."""
        process = await asyncio.create_subprocess_shell(
            text,
            cwd=self._clone,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        told, _ = await process.communicate()
        assert process.returncode == 0, f"{text}\n{told.decode()}"
        return told.decode()

    async def follow(self, *steps: Step, **changes: str) -> str:
        """Run commands of pages, with these words replaced; what the last one prints."""
        told = ""
        for page, beginning in steps:
            if page == NOTES:
                (text,) = commands(self.notes, beginning)
            else:
                text = command(page, beginning)
            for word, value in {"REGISTRY": "registry.example", **changes}.items():
                text = text.replace(word, value)
            told = await self.run(text)
        return told


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with a `.venv` of the tests' own packages, so that nothing is downloaded."""
    folder = tmp_path_factory.mktemp("newcomer")
    made = folder / "asched"
    run("git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", made)
    installed(built("asched", folder, "wheel", made), made / ".venv")
    added(built("asched-lab", folder, "wheel", made), made / ".venv")
    (made / ".venv/.ready").touch()
    return made


@asynccontextmanager
async def a_newcomer(clone: Path, folder: Path) -> AsyncIterator[tuple[Newcomer, Cluster]]:
    """With a cluster of one node."""
    programs = [str(Path(program).parent) for program in (helm(), kubectl())]
    path = os.pathsep.join((str(clone / ".venv/bin"), *programs, os.environ["PATH"]))
    async with (
        ControlPlane.here() as plane,
        plane.open_client(),
        controllers(plane),
        kube_scheduler(plane, f"--kubeconfig={plane.kubeconfig}", "--leader-elect=false"),
        a_kubelet(plane, folder, clone / ".venv/bin/python"),
    ):
        changed = {"KUBECONFIG": plane.kubeconfig, "HOME": str(folder), "PYTHONPATH": ""}
        yield Newcomer(clone, {**os.environ, "PATH": path, **changed}), Cluster(plane.kubeconfig)


async def bound(cluster: Cluster, name: str) -> None:
    while not cluster.do("get", "pod", name, "-o=jsonpath={.spec.nodeName}"):  # noqa: ASYNC110
        await asyncio.sleep(0.1)


def configuration(cluster: Cluster, way: Way) -> str:
    """What the Deployment mounts."""
    namespace, name = way.deployment
    text = cluster.do("-n", namespace, "get", "deployment", name, "-o=json")
    (volume,) = json.loads(text)["spec"]["template"]["spec"]["volumes"]
    config = ("get", "configmap", volume["configMap"]["name"], r"-o=jsonpath={.data.config\.yaml}")
    return cluster.do("-n", namespace, *config)


@pytest.mark.real
@pytest.mark.timeout(WAY_S + HANG_S)
@pytest.mark.parametrize("tool", WAYS)
async def test_from_the_clone_to_an_empty_cluster(clone: Path, tool: str, tmp_path: Path) -> None:
    way = WAYS[tool]
    async with asyncio.timeout(WAY_S), a_newcomer(clone, tmp_path) as (newcomer, cluster):
        told = await newcomer.run(f"{command(START, 'make demo')} NODES=100 PODS=500")
        assert "nothing overcommitted, every pod that can be placed is placed" in told

        await newcomer.run(way.prepare)
        newcomer.notes = await newcomer.follow(*way.install)
        assert "no problem found" in await newcomer.follow(*way.check)

        await newcomer.follow((START, "kubectl run web"), (START, "kubectl run big"))
        await bound(cluster, "web")
        assert "Insufficient cpu" in await newcomer.follow(way.explain, POD="big")

        first = configuration(cluster, way)
        await newcomer.run(way.change)
        await newcomer.follow(*way.upgrade)
        second = configuration(cluster, way)
        assert second == (clone / "config/high-load.yaml").read_text(encoding="utf-8")
        await newcomer.follow((START, "kubectl run web"), web="upgraded")
        await bound(cluster, "upgraded")

        await newcomer.follow(*way.rollback)
        assert configuration(cluster, way) == first
        await newcomer.follow((START, "kubectl run web"), web="back")
        await bound(cluster, "back")

        await newcomer.follow(*way.uninstall)
        assert traces(cluster) == []
