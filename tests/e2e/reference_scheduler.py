"""kube-scheduler beside our program."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from asched_lab.bench.processes import Process
from tests.e2e.control_plane import ControlPlane, Plane


@asynccontextmanager
async def kube_scheduler(plane: Plane, *flags: str) -> AsyncIterator[Process]:
    """The real one; no lease, no pages."""
    assert isinstance(plane, ControlPlane)
    binary = plane.binaries / "kube-scheduler"
    if not binary.exists():
        pytest.skip("KUBEBUILDER_ASSETS has no kube-scheduler")
    command = (
        str(binary),
        f"--authentication-kubeconfig={plane.kubeconfig}",
        f"--authorization-kubeconfig={plane.kubeconfig}",
        "--secure-port=0",
        *flags,
    )
    process = Process("kube-scheduler", command, plane.folder / "kube-scheduler.log")
    await process.start()
    try:
        yield process
    finally:
        await process.stop()
