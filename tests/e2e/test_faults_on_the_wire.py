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
#: What answers one connection of the server: how many the client keeps open for its next requests
#: is not counted, since a busy machine lets it open more, and its watches keep them in use.
A_CONNECTION = "RequestHandler.start"


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
        before = under_way()
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
        # Whom the fault kept from an answer has given up or heard by now.
        async with asyncio.timeout(HANG_S):
            while under_way() > before:  # noqa: ASYNC110
                await asyncio.sleep(0.1)


def under_way() -> int:
    """How many tasks run: loops of the scheduler, and requests at either end."""
    names = (getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks())
    return sum(name != A_CONNECTION for name in names)


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
