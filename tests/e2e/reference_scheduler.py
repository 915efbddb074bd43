"""kube-scheduler beside our program."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from asched_lab.bench.processes import KUBE_SCHEDULER, Process
from tests.e2e.control_plane import ControlPlane, Plane


@asynccontextmanager
async def kube_scheduler(plane: Plane, *flags: str) -> AsyncIterator[Process]:
    """The real one; no lease, no pages."""
    assert isinstance(plane, ControlPlane)
    if not (plane.binaries / KUBE_SCHEDULER).exists():
        pytest.skip("KUBEBUILDER_ASSETS has no kube-scheduler")
    process = Process.of_kube_scheduler(
        plane.binaries, plane.kubeconfig, ("--secure-port=0", *flags), plane.folder
    )
    await process.start()
    try:
        yield process
    finally:
        await process.stop()
