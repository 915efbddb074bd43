"""A control plane with PodGroups, and kube-scheduler on it."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from asched_lab.measure.real import assets
from tests.e2e.control_plane import ControlPlane

Json = dict[str, Any]
GATES: Final = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
GROUP_VERSION: Final = "scheduling.k8s.io/v1alpha2"
PROOF: Final = re.compile(": (there is no place|no place was found) for it: .*")


def condition_of(group: Json | None) -> Json:
    """What the PodGroup was told, without times, and without the proof that only asched adds."""
    for condition in (group or {}).get("status", {}).get("conditions") or ():
        if condition["type"] == "PodGroupScheduled":
            told = {k: v for k, v in condition.items() if k != "lastTransitionTime"}
            told["message"] = PROOF.sub("", told["message"])
            return told
    return {}


class PlaneWithGroups(ControlPlane):
    """A real API server with the alpha kinds."""

    gates = GATES

    async def _spawn(self, name: str, *arguments: str) -> Any:
        if name == "kube-apiserver":
            more = (f"--feature-gates={self.gates}", f"--runtime-config={GROUP_VERSION}=true")
            arguments = (*arguments, *more)
        return await super()._spawn(name, *arguments)


@asynccontextmanager
async def kube_scheduler(folder: Path, plane: PlaneWithGroups) -> AsyncIterator[None]:
    """Upstream's own, for pods that name `theirs`."""
    binary = (assets() or Path()) / "kube-scheduler"
    if not binary.exists():
        pytest.skip("KUBEBUILDER_ASSETS has no kube-scheduler")
    config = folder / "theirs.yaml"
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": plane.kubeconfig},
        "profiles": [{"schedulerName": "theirs"}],
    }
    config.write_text(json.dumps(document), encoding="utf-8")
    clean = {k: v for k, v in os.environ.items() if not k.startswith("KUBE")}
    child = await asyncio.create_subprocess_exec(
        str(binary),
        f"--config={config}",
        f"--feature-gates={plane.gates}",
        "--secure-port=0",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=clean,
    )
    try:
        yield
    finally:
        child.terminate()
        await child.wait()
