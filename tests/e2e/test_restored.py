"""etcd is restored from a backup under a running scheduler. Skipped as `test_real.py` is."""

import shutil
from pathlib import Path

import pytest

from asched_lab.sim.checker import EndState
from tests.e2e.control_plane import ControlPlane, all_placed
from tests.e2e.inside import a_node, a_pod
from tests.e2e.outside import a_process
from tests.e2e.program_flags import flags

pytestmark = pytest.mark.real
PODS = 40


async def test_time_that_went_back_is_lived_again(tmp_path: Path) -> None:
    """1. Pods are created, and backed up. 2. They are bound, and others, which fill the nodes.
    3. The backup is restored: the bindings never were, the others are gone. 4. All are bound again,
    by what is true now.
    """
    backup = tmp_path / "backup"

    def back_up(store: Path) -> None:
        shutil.copytree(store, backup)

    def restore(store: Path) -> None:
        shutil.rmtree(store)
        shutil.copytree(backup, store)

    async with ControlPlane.here() as plane, plane.open_client():
        await plane.create("/api/v1/nodes", [a_node(f"n{i}", cpu="4") for i in range(10)])
        await plane.create_pods([a_pod(f"then-{i}", "500m") for i in range(PODS)])
        await plane.interrupted(back_up)
        async with a_process(tmp_path, *flags(plane)) as process:
            await plane.until(all_placed)
            await plane.create_pods([a_pod(f"later-{i}", "500m") for i in range(PODS)])
            await plane.until(lambda pods: len(pods) == 2 * PODS and all_placed(pods))

            await plane.interrupted(restore)
            assert len(await plane.every("/api/v1/pods")) == PODS
            await process.says("Starting over")
            pods = await plane.until(all_placed)
            nodes = await plane.every("/api/v1/nodes")
            assert "it was restored from a backup" in process.words
            assert "Traceback" not in process.words, process.words[-3000:]

    assert len(pods) == PODS
    assert EndState(nodes, pods).broken_rules() == []
