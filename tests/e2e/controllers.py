"""kube-controller-manager beside an API server."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from asched_lab.bench.processes import Process
from tests.e2e.control_plane import ControlPlane, Plane

CONTROLLERS: Final = (
    "deployment-controller,replicaset-controller,garbage-collector-controller,job-controller,"
    "statefulset-controller,daemonset-controller,persistentvolume-binder-controller,"
    "namespace-controller,resourcequota-controller"
)


@asynccontextmanager
async def controllers(plane: Plane) -> AsyncIterator[None]:
    """kube-controller-manager on a real server; the embedded one has its own."""
    if not isinstance(plane, ControlPlane):
        yield
        return
    binary = shutil.which("kube-controller-manager", path=os.environ["KUBEBUILDER_ASSETS"])
    if binary is None:
        pytest.skip("KUBEBUILDER_ASSETS has no kube-controller-manager")
    command = (
        binary,
        f"--kubeconfig={plane.kubeconfig}",
        f"--controllers={CONTROLLERS}",
        "--leader-elect=false",
        "--secure-port=0",
    )
    process = Process("kube-controller-manager", command, plane.folder / "controllers.log")
    await process.start()
    try:
        yield
    finally:
        await process.stop()
