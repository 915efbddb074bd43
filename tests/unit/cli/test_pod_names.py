"""Completion offers names of pods, as kubectl does."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from asched.cli.pod_names import pod_names
from tests.deploy.manifests import kubectl
from tests.unit.cli.programs import World, a_kubeconfig
from tests.unit.kube.scripted import scripted


def a_world() -> World:
    world = World()
    for namespace, names in {"team": ("web-1", "web-2", "db"), "other": ("web-3",)}.items():
        pods = {"items": [{"metadata": {"name": name}} for name in names]}
        world.answers[f"/api/v1/namespaces/{namespace}/pods"] = (200, pods)
    return world


@pytest.mark.parametrize(
    ("before", "begun", "found"),
    [
        ((), "", ["db", "web-1", "web-2"]),
        ((), "we", ["web-1", "web-2"]),
        (("explain", "-o", "wide", "-n", "other"), "", ["web-3"]),
        ((), "other/w", ["other/web-3"]),
        ((), "podgroup/", []),
        (("-n",), "", []),
    ],
)
async def test_pods_of_the_namespace(
    before: tuple[str, ...], begun: str, found: list[str], tmp_path: Path
) -> None:
    async with scripted(a_world().answer) as server:
        words = [a_kubeconfig(tmp_path, server.url), *before]
        assert await asyncio.to_thread(pod_names, words, begun) == found


async def test_a_cluster_that_is_not_there_has_none(tmp_path: Path) -> None:
    words = [a_kubeconfig(tmp_path, "https://127.0.0.1:1")]
    assert await asyncio.to_thread(pod_names, words, "") == []
    assert await asyncio.to_thread(pod_names, [f"--kubeconfig={tmp_path}/absent"], "") == []


async def test_kubectl_offers_them(tmp_path: Path) -> None:
    folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{folder}:/usr/bin:/bin", "HOME": str(tmp_path)}
    async with scripted(a_world().answer) as server:
        file = a_kubeconfig(tmp_path, server.url).partition("=")[2]
        made = await asyncio.to_thread(
            subprocess.run,
            [kubectl(), "__complete", "asched", "explain", "web"],
            env={**environment, "KUBECONFIG": file},
            capture_output=True,
            text=True,
            check=False,
        )
    assert made.stdout.splitlines()[:3] == ["web-1", "web-2", ":4"]
