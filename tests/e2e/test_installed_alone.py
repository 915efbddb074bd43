"""A wheel of asched, installed without the lab, schedules."""

import signal
from pathlib import Path

import pytest

from tests.deploy.distributions import built, installed
from tests.e2e.control_plane import SERVERS, a_plane, all_placed
from tests.e2e.inside import SCHEDULER, a_node, a_pod
from tests.e2e.outside import a_process


@pytest.mark.parametrize("kind", SERVERS)
async def test_asched_alone_binds_pods(kind: str, tmp_path: Path) -> None:
    async with a_plane(kind) as plane:
        program = installed(built("asched", tmp_path, "wheel"), tmp_path / "environment")
        await plane.create("/api/v1/nodes", (a_node(f"node-{n}", cpu="4") for n in range(5)))
        await plane.create_pods(a_pod(f"pod-{n}", "100m") for n in range(50))
        flags = (
            f"--kubeconfig={plane.kubeconfig}",
            "--secure-port=0",
            f"--scheduler-name={SCHEDULER}",
        )
        alone = {"environment": {"PYTHONPATH": ""}, "program": (str(program),)}
        async with a_process(tmp_path, *flags, **alone) as process:
            pods = await plane.until(all_placed)
            process.signal(signal.SIGTERM)
            assert await process.ended() == 0
            assert "Traceback" not in process.words

    assert len(pods) == 50
