"""A real scheduler on a server that injects each of its faults by name: every pod is bound once,
and afterwards nothing is left over. All of them at once: test_burning_server.py.
"""

import asyncio
from pathlib import Path

import pytest

from asched.core.cycle import confirmation
from asched.kube import pace, watch
from asched_lab.apiserver import crud
from asched_lab.apiserver.faults import NAMES, named
from asched_lab.apiserver.resources import PODS as KIND
from tests.e2e.inside import Cluster, a_cluster
from tests.e2e.placements import assert_placed_once, settled
from tests.support import HANG_S

PODS = 40
#: Events of others that happen while the fault lasts, so that watches have something to say.
NEIGHBOURS = 20
RATES = {"black-hole": 0.1, "half-open": 0.1, "delay": 0.3, "slow-answer": 0.3}
RATE = 0.25
#: The server's side of connections that the client keeps for its next requests.
SPARE_TASKS = 40


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is noticed, and lists are made again, sooner than in production."""
    monkeypatch.setattr(pace, "STREAM_S", 1.0)
    monkeypatch.setattr(watch, "STREAM_SLACK_S", 1.0)
    monkeypatch.setattr(pace, "PROBE_S", 1.0)
    # A binding that was lost three times is held for so long; this server is done sooner.
    monkeypatch.setattr(confirmation, "LANDS_WITHIN_S", 3.0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("hurried")
async def test_every_pod_is_bound_once_with(name: str, tmp_path: Path) -> None:
    async with a_cluster(tmp_path, nodes=3) as cluster:
        tasks_before = len(asyncio.all_tasks())
        fault = cluster.server.faults.add(named(name, rate=RATES.get(name, RATE)))
        if name in {"stale-list", "lower-version"}:  # lists have to be made for that
            cluster.server.faults.add(named("expire-watch", rate=0.5))
        cluster.add_pods(PODS // 2)
        await churn(cluster)
        cluster.add_pods(PODS // 2, prefix="later")
        await cluster.until_bound(PODS)
        async with asyncio.timeout(HANG_S):
            while not fault.hits:
                await churn(cluster)

        await settled(cluster)
        assert_placed_once(cluster)
        # Whom the fault kept from an answer has given up or heard by now: what runs on is as much
        # as before, but for the streams and connections that a busy client may keep.
        async with asyncio.timeout(HANG_S):
            while len(asyncio.all_tasks()) > tasks_before + SPARE_TASKS:  # noqa: ASYNC110
                await asyncio.sleep(0.1)


async def churn(cluster: Cluster) -> None:
    """Pods of somebody else come and go."""
    for number in range(NEIGHBOURS):
        cluster.server.create(
            "pods",
            {
                "metadata": {"name": f"other-{number}", "namespace": "default"},
                "spec": {"schedulerName": "other", "containers": [{"name": "c", "image": "i"}]},
            },
        )
        await asyncio.sleep(0)
    for number in range(NEIGHBOURS):
        record = cluster.server.ctx.get(KIND, "default", f"other-{number}")
        assert record is not None
        crud.delete(cluster.server.ctx, KIND, record, {"gracePeriodSeconds": 0})
        await asyncio.sleep(0)
