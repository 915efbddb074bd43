"""What tests of PodGroups share: gates, kube-scheduler with them, and what a group was told."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.e2e.control_plane import ControlPlane, Plane
from tests.e2e.reference_scheduler import kube_scheduler

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


@asynccontextmanager
async def theirs(folder: Path, plane: Plane) -> AsyncIterator[None]:
    """kube-scheduler, for pods that name `theirs`."""
    assert isinstance(plane, ControlPlane)
    config = folder / "theirs.yaml"
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": plane.kubeconfig},
        "profiles": [{"schedulerName": "theirs"}],
    }
    config.write_text(json.dumps(document), encoding="utf-8")
    async with kube_scheduler(plane, f"--config={config}", f"--feature-gates={plane.gates}"):
        yield
